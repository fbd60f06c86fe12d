"""Careless or hostile arguments of ops, derived from the op table and its samples.

One place of a sample changes: a number, attribute or dtype becomes an extreme one, an operand gets another shape or
dtype, or an extent that several operands share becomes 0 or 1.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin

import torch

from gradwire_protocol.dtypes import DType
from gradwire_protocol.table import Kind, Op, Param
from tests.samples import REGISTERED, Sample, Samples, load

DTYPES = ("float32", "int64", "bool", "complex64")
NUMBERS = (2 + 1j, math.nan, math.inf, -math.inf, 2**62, 2**63, 10**400, -3, 0, 0.5, True, 1e300, "x", None)
INTS = (-3, -1, 0, 5, 2**62, -(2**62), 2**63, 0.5, True, 1j, "x", None)
FLOATS = (2 + 1j, math.nan, math.inf, -math.inf, -1.0, 0, 2**63, 10**400, True, "x", None)
TUPLES = ((), (0,), (-1,), (1, 2, 3), (0, 0), (2**62, 2**62), (0.5,), (True,), (1j,), ("x",), -1, 7)
BY_TYPE: dict[Any, tuple[Any, ...]] = {
    bool: (2, None, "x", 0.5), int: INTS, float: FLOATS, complex: (2 + 1j,), str: ("nonsense", "", 3, None),
    DType: (torch.int64, torch.bool, torch.complex64, torch.float16),
}  # fmt: skip


class Case:
    """One call: arguments as the table's op takes them, and what is special about them."""

    def __init__(self, label: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.label = label
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        return f"{self.label} in {Sample(*self.args, **self.kwargs)!r:.300}"


def values_for(param: Param) -> list[Any]:
    """What to try for a parameter that is no tensor."""
    if param.kind in (Kind.SCALAR, Kind.OPERAND):
        return list(NUMBERS)
    if param.kind is Kind.POSITION:
        return list(INTS)
    found: list[Any] = []
    for member in param.check:
        found.extend(TUPLES if get_origin(member) is tuple and int in get_args(member) else BY_TYPE.get(member, ()))
    return list({(type(v), repr(v)): v for v in found}.values())


def over_tensors(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """The value with its tensors, if any, replaced."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return type(value)(over_tensors(change, v) for v in value)
    return value


def _requires(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    carries = tensor.is_floating_point() or tensor.is_complex()
    return tensor.requires_grad_(carries and like.requires_grad)


def in_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return _requires(tensor.detach().to(dtype), tensor)


def in_shape(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor's values, repeated or cut, in another shape."""
    flat, count = tensor.detach().reshape(-1), math.prod(shape)
    if count and not flat.numel():
        flat = torch.zeros(1, dtype=tensor.dtype)
    repeated = flat.repeat(-(-count // max(1, flat.numel()))) if count else flat
    return _requires(repeated[:count].reshape(shape).clone(), tensor)


def variants(op: Op, sample: Sample) -> Iterator[Case]:
    """The sample itself, and all changes of it in one place."""
    args, kwargs = list(sample.args), dict(sample.kwargs)

    def put(at: int | str, value: Any, label: str) -> Case:
        changed, named = list(args), dict(kwargs)
        if isinstance(at, int) and at < len(changed):
            changed[at] = value
        else:
            named[op.params[at].name if isinstance(at, int) else at] = value
        return Case(label, changed, named)

    yield Case("as it is", args, kwargs)
    for i, param in enumerate(op.params):
        now = args[i] if i < len(args) else kwargs.get(param.name)
        if param.kind in (Kind.SCALAR, Kind.POSITION, Kind.ATTRIBUTE) or (
            param.kind is Kind.OPERAND and not isinstance(now, torch.Tensor) and (now is not None or i < len(args))
        ):
            if param.name != "device":
                yield from (put(i, value, f"{param.name}={value!r:.30}") for value in values_for(param))
    operands: dict[int | str, torch.Tensor] = {i: a for i, a in enumerate(args) if isinstance(a, torch.Tensor)}
    operands |= {name: a for name, a in kwargs.items() if isinstance(a, torch.Tensor)}
    for at, tensor in operands.items():
        name = op.params[at].name if isinstance(at, int) else at
        without = [tuple(0 if d == e else n for e, n in enumerate(tensor.shape)) for d in range(tensor.ndim)]
        for shape in dict.fromkeys([(), (1,), (0,), *without, (*tensor.shape, 1), (1, *tensor.shape)]):
            if shape != tuple(tensor.shape):
                yield put(at, in_shape(tensor, shape), f"{name} of shape {list(shape)}")
        for dtype in DTYPES:
            yield put(at, in_dtype(tensor, getattr(torch, dtype)), f"{name} of {dtype}")
    extents = {n for a in [*args, *kwargs.values()] for t in _tensors(a) for n in t.shape}
    for extent in sorted(extents):
        for new in (0, 1):

            def change(t: torch.Tensor, extent: int = extent, new: int = new) -> torch.Tensor:
                return in_shape(t, tuple(new if n == extent else n for n in t.shape))

            changed = [over_tensors(change, a) for a in args]
            yield Case(f"extent {extent} -> {new}", changed, {k: over_tensors(change, v) for k, v in kwargs.items()})


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    over_tensors(lambda t: found.append(t) or t, value)  # type: ignore[func-returns-value]
    return found


def drawn(op: Op, dtype: str, seed: int) -> list[tuple[Samples, Sample]]:
    """The op's samples in a dtype; where they are not meant for it, those in float32, cast."""
    load()
    found = []
    for samples in REGISTERED.get((op.base or op).name, []):
        use = dtype if dtype in samples.dtypes else "float32"
        if use in samples.dtypes:
            found.extend((samples, _cast(sample, getattr(torch, dtype))) for sample in samples.draw(use, seed))
    return found


def _cast(sample: Sample, dtype: torch.dtype) -> Sample:
    def cast(t: torch.Tensor) -> torch.Tensor:
        carries = t.is_floating_point() or t.is_complex()
        return in_dtype(t, dtype if carries else t.dtype).clone().detach().requires_grad_(
            t.requires_grad and (dtype.is_floating_point or dtype.is_complex)
        )  # fmt: skip

    made = Sample(*[over_tensors(cast, a) for a in sample.args], **sample.kwargs)
    made.kwargs = {name: over_tensors(cast, value) for name, value in sample.kwargs.items()}
    return made


def some(op: Op, seed: int, count: int | None) -> Iterator[tuple[Samples, Case]]:
    """``count`` cases, drawn at random; all there are for ``None``."""
    if count is None:
        for dtype in DTYPES:
            for samples, sample in drawn(op, dtype, seed):
                yield from ((samples, case) for case in variants(op, sample))
        return
    pick = random.Random(zlib.crc32(f"{op.name}{seed}".encode()))
    by_dtype = {dtype: drawn(op, dtype, seed) for dtype in DTYPES}
    for _ in range(count):
        there = by_dtype[pick.choice(DTYPES)]
        if there:
            samples, sample = pick.choice(there)
            yield samples, pick.choice(list(variants(op, sample)))
