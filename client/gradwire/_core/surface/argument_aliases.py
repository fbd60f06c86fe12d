"""Other ways to write a call: NumPy's names of arguments, which PyTorch takes, too; and a number as first operand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, Unsupported
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import Kind, Op

from ..context.layouts import strided
from ..tensor.tensor import Tensor
from .creation import tensor
from .predicates import result_type

NUMPY: Final = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
"""NumPy's names of arguments and PyTorch's."""

OF_ONE: Final[dict[str, dict[str, str]]] = {
    "copy_": {"other": "src"},
    "isin": {"element": "elements", "test_element": "test_elements"},
    "split": {"split_size": "split_size_or_sections", "tensor": "input"},
    "split_copy": {"split_size": "split_size_or_sections"},
    "tensordot": {"b": "other"},
    "transpose": {"axis0": "dim0", "axis1": "dim1"},
    "uniform_": {"from": "low", "to": "high"},
}
"""Names that arguments of one function have besides."""

_MADE: Final[dict[str, Any]] = {"layout": (None, strided), "pin_memory": (None, False), "requires_grad": (False,)}
ONE_VALUE: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    **{name: {"out_dtype": ()} for name in ("addmm", "baddbmm", "bmm", "mm")},
    "embedding": {"sparse": (False,)},
    "gather": {"sparse_grad": (False,)},
    "tril_indices": _MADE,
    "triu_indices": _MADE,
}
"""Arguments that have one meaning here, in these ways to write it, or none, and need not be passed on."""

HINTS: Final[dict[str, tuple[str, ...]]] = {
    "expand": ("implicit",),
    "group_norm": ("cudnn_enabled",),
    "layer_norm": ("cudnn_enable",),
}
"""Arguments that say how to compute, and change no result."""

REFUSED: Final[dict[str, str]] = {
    "layout": "tensors are strided",
    "out_dtype": "PyTorch has it for some kernels of CUDA alone",
    "pin_memory": "memory is the server's",
    "requires_grad": "indices are integers, which have no gradient",
    "sparse": "sparse gradients are not supported",
    "sparse_grad": "sparse gradients are not supported",
}
"""Why such an argument has no other value."""

FACTORS: Final = {"alpha", "beta", "value"}
"""Keyword-only factors that PyTorch once took before the tensors they go with, and still takes there with a warning."""


def takes_factors_first(op: Op) -> bool:
    """Whether an op takes tensors, and such factors alone by name."""
    tensors = (Kind.TENSOR, Kind.OPERAND, Kind.SCALAR)
    return bool(op.keyword_only) and FACTORS.issuperset(op.keyword_only) and all(p.kind in tensors for p in op.params)


def has_older_method(op: Op) -> bool:
    """Whether PyTorch's method of this name takes factors after its tensor, where its function takes them first."""
    return takes_factors_first(op) and "beta" in op.positions


def respelled(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], method: bool = False
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """A call that the table's op did not take, as it takes it; None where it cannot be written another way."""
    known = NUMPY | OF_ONE.get(op.name, {})
    changed = {k: known[k] for k in kwargs if k in known and k not in op.positions}
    if not kwargs.keys().isdisjoint(changed.values()):
        return None
    if changed:
        kwargs = {changed.get(k, k): v for k, v in kwargs.items()}
        if "input" in kwargs and op.params and op.params[0].name == "self":
            kwargs["self"] = kwargs.pop("input")
    if not kwargs and takes_factors_first(op):
        in_front = bool(args) and ScalarKind.of(args[0]) is not None
        again = _factors_last(op, args) if in_front == (not method and has_older_method(op)) else None
        if again is not None:
            return again
    spare = {*ONE_VALUE.get(op.name, {}), *HINTS.get(op.name, ())}.intersection(kwargs)
    for name, values in ONE_VALUE.get(op.name, {}).items():
        if name in kwargs and kwargs[name] not in values:
            kind = ArgumentError if name == "requires_grad" else Unsupported
            raise kind(f"{op.name}: {name}={kwargs[name]!r:.40} is refused, since {REFUSED[name]}; leave out {name}")
    if spare:
        kwargs = {k: v for k, v in kwargs.items() if k not in spare}
    # PyTorch has these ops for tensors alone, and takes a number for either.
    number = bool(op.wrapped == ("other",) and args and ScalarKind.of(args[0]) is not None)
    if op.name == "copy_" and len(args) > 1 and ScalarKind.of(args[1]) is not None:
        number, args = True, (args[0], tensor_of_number(args[1], args[0]), *args[2:])
    elif number:
        args = (tensor_of_number(args[0], args[1] if len(args) > 1 else kwargs.get("other")), *args[1:])
    return (args, kwargs) if changed or spare or number else None


def _factors_last(op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """A call whose factors come before the tensors that they go with, as the table's op takes it."""
    names = [p.name for p in op.params if p.kind is Kind.SCALAR]
    if op.params[-len(names) - 1].kind is Kind.OPERAND:  # it may be a number, and the factor a tensor of one
        last = len(args) - 1
        numbers = [arg for arg in args[1:last] if ScalarKind.of(arg) is not None or _is_plain_number(arg)]
        tensors = [*args[:1], *args[last:]]
    else:
        last = len(args)
        numbers = [arg for arg in args if ScalarKind.of(arg) is not None]
        tensors = [arg for arg in args if ScalarKind.of(arg) is None]
    if not numbers or len(numbers) > len(names) or len(tensors) != len(op.params) - len(names):
        return None
    if ScalarKind.of(args[-1]) is not None and last == len(args):
        return None
    warnings.warn(
        f"{op.name}: factors before the tensors that they go with are an old form: pass {' and '.join(names)} by name",
        UserWarning,
        stacklevel=4,
    )
    return tuple(tensors), dict(zip(names, numbers))


def _is_plain_number(value: Any) -> bool:
    """Whether it is a tensor that stands for a number: without dimensions, and without a gradient."""
    return getattr(value, "ndim", None) == 0 and not getattr(value, "requires_grad", False)


def tensor_of_number(number: Any, other: Any) -> Any:
    """A 0-dim tensor that changes no dtype that the number would not."""
    if isinstance(other, Tensor):
        return tensor(number, dtype=result_type(other, number), device=other.device)
    return tensor(number)


Function = TypeVar("Function", bound=Callable[..., Any])


def by_numpy_names(function: Function) -> Function:
    """Let a function written by hand take NumPy's names of its arguments.

    Raises:
        ArgumentTypeError: by the function made, for an argument under both of its names.
    """

    @wraps(function)
    def taking(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not NUMPY.keys().isdisjoint(kwargs):
            if any(NUMPY.get(k) in kwargs for k in kwargs):
                raise ArgumentTypeError(f"{function.__name__} got one argument under two names: {sorted(kwargs)}")
            kwargs = {NUMPY.get(k, k): v for k, v in kwargs.items()}
        return function(*args, **kwargs)

    return taking  # type: ignore[return-value]
