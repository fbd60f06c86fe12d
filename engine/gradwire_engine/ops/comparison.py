"""Comparisons, tests of a number, logic, operations on bits."""

from __future__ import annotations

from typing import Any

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..runtime.arrays import Array, Namespace
from ..runtime.casting import saturated
from .pointwise import is_number

_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
_TWO_OPERANDS = {
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
}  # fmt: skip
_ONE_OPERAND = {
    "logical_not": "logical_not", "bitwise_not": "invert", "isnan": "isnan", "isinf": "isinf",
    "isfinite": "isfinite",
}  # fmt: skip


def _truth(x: Any) -> Any:
    """A complex operand as a bool: CuPy's logic has no complex numbers."""
    return x != 0 if isinstance(x, complex) or (not is_number(x) and x.dtype.kind == "c") else x


def _register(name: str, function: str, operands: int) -> None:
    prepared = _truth if function.startswith("logical") else lambda x: x
    if operands == 1:

        @kernel(name)
        def one(xp: Namespace, x: Array) -> Array:
            return getattr(xp, function)(prepared(x))

    else:

        @kernel(name)
        def two(xp: Namespace, x: Array | int, y: Array | int) -> Array:
            return getattr(xp, function)(prepared(x), prepared(y))


def _register_comparison(name: str, function: str) -> None:
    @kernel(name, half=True)
    def compare(xp: Namespace, x: Array, y: Any) -> Array:
        if x.dtype.itemsize <= 2 and x.dtype.kind in "fV":
            # A number is compared as the short float it becomes: 0.1 equals the float16 nearest to it.
            if is_number(y):
                y = float(x.dtype.type(saturated(y, x.dtype)))
            else:
                y = y.astype("f")
            x = x.astype("f")
        return getattr(xp, function)(x, y)


for _name, _function in _COMPARISONS.items():
    _register_comparison(_name, _function)
for _name, _function in _TWO_OPERANDS.items():
    _register(_name, _function, 2)
for _name, _function in _ONE_OPERAND.items():
    _register(_name, _function, 1)


@kernel("isposinf")
def isposinf(xp: Namespace, x: Array) -> Array:
    return xp.isinf(x) & (x > 0)


@kernel("isneginf")
def isneginf(xp: Namespace, x: Array) -> Array:
    return xp.isinf(x) & (x < 0)


@kernel("isreal")
def isreal(xp: Namespace, x: Array) -> Array:
    return x.imag == 0 if x.dtype.kind == "c" else xp.ones(x.shape, bool)


@kernel("signbit")
def signbit(xp: Namespace, x: Array) -> Array:
    return xp.signbit(x) if x.dtype.kind == "f" else x < 0


@kernel("isclose")
def isclose(xp: Namespace, x: Array, y: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    same = x == y
    if equal_nan:
        same = same | ((x != x) & (y != y))
    if rtol == 0 and atol == 0:
        return same
    if x.dtype.kind in "biu":
        x, y = x.astype("d"), y.astype("d")
    distance = xp.absolute(x - y)
    return same | (xp.isfinite(distance) & (distance <= atol + xp.absolute(y) * rtol))


def _shift_limits(x: Any, y: Any) -> tuple[int, int]:
    """The width in bits of the operands, and the largest shift to the right that means anything."""
    dtype = (x if is_number(y) else y).dtype
    width = 8 * dtype.itemsize
    return width, width - (dtype.kind == "i")


def _out_of_range(xp: Namespace, y: Array | int, last: int) -> Array | bool:
    return not 0 <= y <= last if is_number(y) else (y < 0) | (y > last)


@kernel("bitwise_left_shift")
def bitwise_left_shift(xp: Namespace, x: Array | int, y: Array | int) -> Array:
    last = _shift_limits(x, y)[0] - 1
    if is_number(y):
        return xp.zeros_like(x) if _out_of_range(xp, y, last) else xp.left_shift(x, y)
    return xp.where(_out_of_range(xp, y, last), 0, xp.left_shift(x, xp.clip(y, 0, last)))


@kernel("bitwise_right_shift")
def bitwise_right_shift(xp: Namespace, x: Array | int, y: Array | int) -> Array:
    width, most = _shift_limits(x, y)
    last = width - 1
    if is_number(y):
        far = _out_of_range(xp, y, last)
        shifted = xp.right_shift(x, min(most, last) if far else y)
        return xp.zeros_like(x) if far and most > last else shifted
    far = _out_of_range(xp, y, last)
    shifted = xp.right_shift(x, xp.where(far, last, y))
    return xp.where(far, 0, shifted) if most > last else shifted


# Written over the operand, a comparison cuts it off from what it was before.
for _name in ("eq_", "ne_", "lt_", "le_", "gt_", "ge_"):
    derivative(_name, self=lambda s, g: F.zeros_like(g), other=lambda s, g: F.zeros_like(g))
