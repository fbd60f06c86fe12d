"""Copies, and writes of plain values into a tensor."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import KernelError
from gradwire_protocol.meta import Meta

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tensor import Tensor
from ..runtime import casting
from ..runtime.arrays import Array, Namespace, Native, native


@kernel("clone")
def clone(xp: Namespace, x: Array, row_major: bool, channels_last: bool) -> Array:
    if channels_last:  # copied in the order of memory, seen in that of dimensions
        return xp.moveaxis(xp.moveaxis(x, 1, -1).copy(order="C"), -1, 1)
    return x.copy(order="C" if row_major else "K")


@kernel("contiguous")
def contiguous(xp: Namespace, x: Array) -> Array:
    return xp.array(x, order="C")


def cast(x: Array, dtype: Native) -> Array:
    """A copy in another native dtype; of complex numbers the real part where it is not complex."""
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return casting.cast(x, dtype)


@kernel("to", announced=True, across=True)
def to(
    xp: Namespace, out: Meta, x: Array, dtype: DType | None, device: str | None, copy: bool, row_major: bool,
    channels_last: bool,
) -> Array:  # fmt: skip
    return cast(x, native(out.dtype))


@kernel("copy_", across=True)
def copy_(xp: Namespace, x: Array, source: Array, non_blocking: bool) -> None:
    x[...] = source if source.dtype == x.dtype else cast(source, x.dtype)


@kernel("fill_", across=True)
def fill_(xp: Namespace, x: Array, value: Any) -> None:
    x[...] = cast(value, x.dtype) if hasattr(value, "dtype") else fitting(value, x.dtype)


def fitting(value: Any, dtype: Native) -> complex:
    """A Python number as a dtype can take it.

    Raises:
        KernelError: when it lies outside the dtype's range. Negative numbers wrap around in unsigned types.
    """
    kind = dtype.kind
    if kind == "b":
        return bool(value)
    if kind not in "iu":
        if dtype.num < casting.FOREIGN or isinstance(value, complex):
            return value
        return casting.saturated(float(value), dtype)  # ml_dtypes takes no integers above 63 bits
    if value != value or value in (float("inf"), float("-inf")):
        raise KernelError(f"{value} does not fit into {dtype}")
    value = int(value)
    bits = 8 * dtype.itemsize
    if kind == "u" and -(1 << bits) < value < 0:
        return value + (1 << bits)
    low, high = (0, 1 << bits) if kind == "u" else (-(1 << (bits - 1)), 1 << (bits - 1))
    if not low <= value < high:
        raise KernelError(f"{value} does not fit into {dtype}, whose range is {low} to {high - 1}")
    return value


@kernel("zero_")
def zero_(xp: Namespace, x: Array) -> None:
    x[...] = 0


derivative("clone", self=lambda s, g: g)
derivative("contiguous", self=lambda s, g: g)
derivative("to", self=lambda s, g: _back(s.meta("self"), g))
derivative("copy_", self=lambda s, g: F.zeros_like(g), src=lambda s, g: _back(s.meta("src"), g))
derivative("fill_", self=lambda s, g: F.zeros_like(g), value=lambda s, g: _back(s.meta("value"), g))
derivative("zero_", self=lambda s, g: F.zeros_like(g))


def _back(operand: Meta, gradient: Tensor) -> Tensor:
    """The gradient on the operand's device; its dtype is the driver's business."""
    return gradient if gradient.device == operand.device else F.to(gradient, device=operand.device)
