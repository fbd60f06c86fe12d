"""``torch._foreach_add`` and its kin: an op for each tensor of a list. They are recorded, and nothing waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from ..context.modes import no_grad
from ..dispatch.rows import RowRecorder
from ..surface.methods import FUNCTIONS
from ..tensor.tensor import Tensor
from .matrices import vector_norm

UNARY: Final = frozenset({
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
})  # fmt: skip
BINARY: Final = frozenset({"add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max"})
OTHER: Final = frozenset({"addcmul", "addcdiv", "lerp", "norm", "copy", "max", "zero"})
_BOUNDS: Final = {"clamp_min": "maximum", "clamp_max": "minimum"}


@lru_cache(maxsize=128)
def function(name: str) -> Callable[..., Any] | None:
    """The function ``_foreach_<name>``; ``None`` where PyTorch's is not one of these."""
    base = name.removesuffix("_")
    if base not in UNARY | BINARY | OTHER or name in ("norm_", "max_", "zero", "copy"):
        return None
    made = _writer(base) if name.endswith("_") else _maker(base)
    made.__name__ = made.__qualname__ = f"_foreach_{name}"
    made.__doc__ = f"``{name}`` of each tensor of a list."
    return made


def _rows(tensors: Sequence[Tensor], arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The arguments of each tensor: those that are lists give one each, others are the same for all.

    Raises:
        RuntimeError: for lists of different lengths.
    """
    for each in arguments:
        if isinstance(each, (list, tuple)) and len(each) != len(tensors):
            raise RuntimeError(f"the lists have different lengths: {len(tensors)} and {len(each)}")
    columns = [a if isinstance(a, (list, tuple)) else [a] * len(tensors) for a in arguments]
    return list(zip(tensors, *columns, strict=True))


def _one(base: str, row: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if base == "norm":
        return vector_norm(row[0], *row[1:], **options)
    if base in _BOUNDS and isinstance(row[1], Tensor):
        base = _BOUNDS[base]
    elif base in ("maximum", "minimum") and not isinstance(row[1], Tensor):
        base = "clamp_min" if base == "maximum" else "clamp_max"
    if base in ("addcmul", "addcdiv") and len(row) > 3:  # the factor comes last
        return FUNCTIONS[base](*row[:3], value=row[3], **options)
    if base == "pow" and isinstance(row[0], (int, float)):
        return FUNCTIONS["pow"](*row)
    return FUNCTIONS[base](*row, **options)


def _maker(base: str) -> Callable[..., Any]:
    def made(self: Any, *arguments: Any, **options: Any) -> list[Tensor]:
        listed = self if isinstance(self, (list, tuple)) else [self] * len(arguments[0])
        named = [options.pop(name) for name in _POSITIONS.get(base, ()) if name in options]
        return [_one(base, row, options) for row in _rows(listed, (*arguments, *named))]

    return made


_POSITIONS: Final = {
    "addcmul": ("tensor1", "tensor2", "scalars", "value"), "addcdiv": ("tensor1", "tensor2", "scalars", "value"),
    "lerp": ("tensors1", "weight", "weights"), "pow": ("exponent",), "norm": ("ord",),
    **dict.fromkeys(("add", "sub", "mul", "div"), ("other", "scalar", "scalars", "tensor")),
    **dict.fromkeys(("maximum", "minimum", "clamp_min", "clamp_max"), ("other", "scalar", "scalars")),
}  # fmt: skip
"""Arguments that may be lists, in order."""


def _writer(base: str) -> Callable[..., Any]:
    one = {"maximum": "clamp_min_", "minimum": "clamp_max_"}.get(base, f"{base}_")
    in_place = RowRecorder(one).record if base != "copy" else None

    def made(self: Sequence[Tensor], *arguments: Any, **options: Any) -> Sequence[Tensor]:
        named = [options.pop(name) for name in _POSITIONS.get(base, ()) if name in options]
        options.pop("non_blocking", None)
        rows = _rows(self, (*arguments, *named, *options.values()))
        with no_grad():
            if in_place is None:
                for target, source in rows:
                    target.copy_(source)
            else:
                in_place(rows)
        return self

    return made
