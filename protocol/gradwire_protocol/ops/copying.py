"""Copies: to another dtype, device or memory order, and writes of plain values into a tensor."""

from __future__ import annotations

from ..dtypes import BOOLEAN, COMPLEX, FLOATING, DType
from ..errors import DTypeError, ShapeError
from ..meta import Inference, Meta, new, nothing, view
from ..promotion import ScalarKind
from ..shapes import broadcast, copied_stride
from ..table import Element, Expanded, Tensor, gradients, op


@op(
    grad_fn="CloneBackward0", linear=True, elementwise=True, duplicates=True,
    keyword_only=("row_major", "channels_last"),
)  # fmt: skip
@gradients("grad")
def clone(self: Tensor, row_major: bool = False, channels_last: bool = False) -> Inference:
    """A copy in new memory: in row-major or channels-last order, else in the memory order of ``self`` where that is
    dense."""
    return new(self.shape, self.dtype, self.device, stride=copied_stride(self, row_major, channels_last))


@op(grad_fn="CloneBackward0", exposed=("method",), linear=True, batched=True)
@gradients("grad")
def contiguous(self: Tensor) -> Inference:
    """The tensor in row-major order: as it is where it already is, else a copy."""
    if self.contiguous:
        return view(self, self.shape, self.stride).named("AliasBackward0")
    return new(self.shape, self.dtype, self.device)


@op(grad_fn="ToCopyBackward0", exposed=(), casts=True, linear=True, elementwise=True, duplicates=True)
@gradients("grad")
def to(
    self: Tensor, dtype: DType | None = None, device: str | None = None, copy: bool = False, row_major: bool = False,
    channels_last: bool = False,
) -> Inference:  # fmt: skip
    """A copy of ``self`` in another dtype or on another device, in the same memory order unless one is asked for.

    Where neither changes it is still a copy (clients hand back the tensor itself, unless ``copy``). Floats become
    integers by dropping the fraction, complex numbers real ones by dropping the imaginary part.
    """
    stride = copied_stride(self, row_major, channels_last)
    return new(self.shape, dtype or self.dtype, device or self.device, stride=stride)


@op(
    grad_fn="CopyBackwards", mutates=0, results=0, exposed=("method",), casts=True, total=True,
    expanded=Expanded.ITSELF,
)  # fmt: skip
@gradients(self="c", src="grad", broadcasts=("src",))
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Inference:
    """Write the values of ``src`` into ``self``: it broadcasts, and is cast to the dtype and device of ``self``."""
    if broadcast(self.shape, src.shape) != self.shape:
        raise ShapeError(f"copy_: shape {list(src.shape)} does not broadcast to {list(self.shape)}")
    return nothing()


@op(grad_fn="FillBackward2", mutates=0, results=0, copied=("value",), expanded=Expanded.NUMBERS)
@gradients(self="c", value="grad", broadcasts=("value",))
def fill_(self: Tensor, value: Tensor | Element) -> Inference:
    """Write one value, a number or a 0-dim tensor, into every element."""
    if isinstance(value, Meta):
        if value.shape:
            raise ShapeError(f"fill_: value is a number or a 0-dim tensor, not one of shape {list(value.shape)}")
        return nothing().named("FillBackward3")
    if isinstance(value, ScalarKind) and value.category == COMPLEX and FLOATING >= self.dtype.category > BOOLEAN:
        raise DTypeError(f"fill_: a complex value does not fit into a {self.dtype.name} tensor")
    return nothing()


@op(grad_fn="ZeroBackward0", mutates=0, results=0, expanded=Expanded.NUMBERS, elementwise=True)
@gradients("c")
def zero_(self: Tensor) -> Inference:
    """Write 0 into every element."""
    return nothing()
