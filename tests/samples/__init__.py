"""Sample inputs for every op of the table, and the oracle of each.

A family's samples are in the file named after it and register themselves with :func:`samples`::

    @samples("add")
    def add(make):
        yield Sample(make(2, 3), make(3))
        yield Sample(make(2, 3), 2.5, alpha=2)

Arguments are those of the *table's* op, with torch tensors and torch dtypes. ``tests/engine/test_parity.py`` turns
each sample into calls of the engine and of the oracle.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
COMPLEXES = ("complex64", "complex128")
INTS = ("uint8", "int8", "int16", "int32", "int64")
BOOL = ("bool",)
REALS = (*FLOATS, *HALVES)
ALL = (*BOOL, *INTS, *HALVES, *FLOATS, *COMPLEXES)


class Sample:
    """One call of an op: arguments as the table's op takes them.

    ``Sample(...).fails()`` says that the oracle raises, and that the op must raise the same class of error.
    ``Sample(...).values_only()`` compares nothing but values, dtype and shape: no strides, no gradients.
    """

    __slots__ = ("args", "expects_error", "gradients", "kwargs", "strides")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.expects_error = False
        self.strides = True
        self.gradients = True

    def fails(self) -> Sample:
        self.expects_error = True
        return self

    def expecting(self, failure: bool) -> Sample:
        """:meth:`fails` on a condition."""
        self.expects_error = failure
        return self

    def values_only(self) -> Sample:
        self.strides = self.gradients = False
        return self

    def __repr__(self) -> str:
        given = [_describe(a) for a in self.args] + [f"{k}={_describe(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(given)})"


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        layout = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        text = f"{name}{list(value.shape)}{layout}"
        if value.numel() <= 12:
            text += f"={value.detach().tolist()}"
        return text
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return "[" + ", ".join(_describe(v) for v in value) + "]"
    return repr(value)


class Make:
    """Makes fresh tensors of the dtype under test: ``make(2, 3)``, ``make(2, 3, low=0.1, high=2)``.

    Floats are uniform in [-3, 3), integers in [-5, 5) or [0, 10) if unsigned; ``low`` and ``high`` change that
    (they are cut to what the dtype holds). ``transposed`` keeps the shape but gives column-major strides.
    ``requires_grad`` counts for float and complex dtypes only. ``dtype`` (a name) makes another than the one
    under test. ``make.dtype`` is that one; ``make.is_float`` and its kin say what it is.
    """

    def __init__(self, dtype: str, seed: int) -> None:
        self.name = dtype
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.generator = torch.Generator().manual_seed(seed)

    @property
    def is_float(self) -> bool:
        return self.dtype.is_floating_point

    @property
    def is_complex(self) -> bool:
        return self.dtype.is_complex

    @property
    def is_bool(self) -> bool:
        return self.dtype is torch.bool

    @property
    def is_int(self) -> bool:
        return not (self.is_float or self.is_complex or self.is_bool)

    def __call__(
        self, *shape: int, low: float | None = None, high: float | None = None, requires_grad: bool = True,
        transposed: bool = False, dtype: str | None = None,
    ) -> torch.Tensor:  # fmt: skip
        kind: torch.dtype = getattr(torch, dtype) if dtype else self.dtype
        laid = tuple(reversed(shape)) if transposed else shape
        value = self._values(laid, kind, low, high)
        if transposed:
            value = value.permute(*range(len(shape) - 1, -1, -1)) if shape else value
        return value.requires_grad_(requires_grad and (kind.is_floating_point or kind.is_complex))

    def _values(self, shape: tuple[int, ...], kind: torch.dtype, low: Any, high: Any) -> torch.Tensor:
        if kind is torch.bool:
            return torch.randint(0, 2, shape, generator=self.generator).bool()
        if kind.is_complex:
            low, high = -3 if low is None else low, 3 if high is None else high
            part = torch.rand((2, *shape), generator=self.generator, dtype=torch.float64) * (high - low) + low
            return torch.complex(part[0], part[1]).to(kind)
        if kind.is_floating_point:
            low, high = -3 if low is None else low, 3 if high is None else high
            drawn = torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low) + low
            return drawn.to(kind)
        info = torch.iinfo(kind)
        first = (0 if info.min == 0 else -5) if low is None else max(int(low), info.min)
        last = (10 if info.min == 0 else 5) if high is None else min(int(high), info.max)
        return torch.randint(first, max(last, first + 1), shape, generator=self.generator).to(kind)

    def plain(self) -> Callable[..., torch.Tensor]:
        """The same, without gradients: for a tensor that is written into."""
        return lambda *shape, **kwargs: self(*shape, **{"requires_grad": False, **kwargs})

    def index(self, *shape: int, high: int, low: int = 0) -> torch.Tensor:
        """int64 indices in [low, high)."""
        return torch.randint(low, high, shape, generator=self.generator)

    def mask(self, *shape: int) -> torch.Tensor:
        """Bools."""
        return torch.randint(0, 2, shape, generator=self.generator).bool()

    def permutation(self, n: int) -> torch.Tensor:
        return torch.randperm(n, generator=self.generator)

    def distinct(self, *shape: int, requires_grad: bool = True) -> torch.Tensor:
        """Values without ties, spaced widely enough for every dtype (shuffled whole numbers around 0)."""
        count = 1
        for n in shape:
            count *= n
        value = (torch.randperm(count, generator=self.generator) - count // 2).reshape(shape).to(self.dtype)
        return value.requires_grad_(requires_grad and (self.is_float or self.is_complex))


class _ByName:
    """Stands for the oracle found by the op's own name."""

    def __repr__(self) -> str:
        return "torch's function of that name"


BY_NAME: Any = _ByName()


def oracle(name: str) -> Callable[..., Any]:
    """torch's function of this name, from ``torch`` or one of its modules, or the method."""
    for place in (torch, torch.nn.functional, torch.special, torch.linalg, torch.fft, torch.Tensor):
        found = getattr(place, name, None)
        if callable(found):
            return found
    raise LookupError(f"torch has no {name}: give the samples of {name!r} a ref=")


@dataclass
class Samples:
    """What one generator declares; see :func:`samples`."""

    op: str
    generate: Callable[[Make], Iterator[Sample]]
    dtypes: tuple[str, ...]
    ref: Callable[..., Any] | None
    inplace_ref: Callable[..., Any] | None
    grad: bool | tuple[str, ...]
    gradgrad: bool
    strides: bool
    grad_fn: bool
    tol: tuple[float, float] | None
    grad_tol: tuple[float, float] | None
    check: Callable[..., None] | None
    label: str = field(default="")

    def draw(self, dtype: str, seed: int) -> list[Sample]:
        return list(self.generate(Make(dtype, seed)))


REGISTERED: dict[str, list[Samples]] = {}


def samples(
    *names: str,
    dtypes: tuple[str, ...] = ALL,
    ref: Callable[..., Any] | str | None = BY_NAME,
    inplace_ref: Callable[..., Any] | None = None,
    grad: bool | tuple[str, ...] = True,
    gradgrad: bool = True,
    strides: bool = True,
    grad_fn: bool = True,
    tol: tuple[float, float] | None = None,
    grad_tol: tuple[float, float] | None = None,
    check: Callable[..., None] | None = None,
) -> Callable[[Callable[[Make], Iterator[Sample]]], Callable[[Make], Iterator[Sample]]]:
    """Register a generator of samples for one or several ops. An op may have several generators.

    Args:
        dtypes: the dtypes to run under; a sample that torch does not implement for a dtype is passed over.
        ref: the oracle: a callable, or the name of torch's function; by default the op's own name. ``None``
            where values cannot be compared (random numbers): then only what can be said without an oracle is
            checked, and ``check``.
        inplace_ref: the oracle of the in-place form; by default the method ``name_`` of ``torch.Tensor``.
        grad: compare gradients: of every operand, of the named ones, or not at all.
        gradgrad: compare gradients of gradients, too (in float64 and complex128).
        strides: compare the results' strides.
        grad_fn: compare the name of ``grad_fn``.
        tol: (rtol, atol) of values in float64 and float32, where the usual ones are too narrow.
        grad_tol: the same for gradients.
        check: ``check(results, *args, **kwargs)`` is called with the results as torch tensors.
    """

    def register(generate: Callable[[Make], Iterator[Sample]]) -> Callable[[Make], Iterator[Sample]]:
        for name in names:
            found = oracle(ref if isinstance(ref, str) else name) if ref is BY_NAME or isinstance(ref, str) else ref
            declared = Samples(
                name, generate, dtypes, found, inplace_ref, grad, gradgrad, strides, grad_fn, tol, grad_tol, check
            )
            REGISTERED.setdefault(name, []).append(declared)
        return generate

    return register


def load() -> dict[str, list[Samples]]:
    """All samples there are, by op."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return REGISTERED
