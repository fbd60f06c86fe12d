"""Operations that put several tensors, or several copies, together."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DType
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..meta import UNKNOWN, Inference, Meta, Shape, new
from ..promotion import result_type
from ..shapes import canonical_dim, common_device
from ..table import Out, Tensor, gradients, op
from .views import extent_of, with_entry

CHANNELS_LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
"""The order of dimensions, outermost first, of images and volumes whose channels are innermost."""


def channels_last_stride(shape: Shape) -> Shape:
    """Strides that keep the channels of a 4- or 5-dimensional tensor together."""
    stride, step = [0] * len(shape), 1
    for dim in reversed(CHANNELS_LAST[len(shape)]):
        stride[dim] = step
        step *= max(shape[dim], 1)
    return tuple(stride)


def is_channels_last(self: Meta) -> bool:
    """Whether a tensor is laid out with its channels innermost, and not in row-major order, too."""
    return (
        self.ndim in CHANNELS_LAST and self.known and not self.contiguous
        and self.stride == channels_last_stride(self.shape)
    )  # fmt: skip


def joined_dtype(tensors: Sequence[Meta]) -> DType:
    return result_type([(t.dtype, t.ndim) for t in tensors])


@op(grad_fn="CatBackward0", exposed=("function",), linear=True, out=Out.APART | Out.JOINS)
@gradients("slice(grad)")
def cat(tensors: list[Tensor], dim: int = 0) -> Inference:
    """The tensors one after the other along a dimension. Dtypes are promoted; empty vectors fit everything."""
    if not tensors:
        raise ArgumentValueError("cat needs at least one tensor")
    for i, tensor in enumerate(tensors):
        if not tensor.shape:
            raise ShapeError(f"cat: tensor {i} has no dimension to join along; use stack")
    real = [t for t in tensors if t.shape != (0,)]
    dtype, device = joined_dtype(tensors), common_device(*tensors)
    if not real:
        return new((0,), dtype, device, compute=dtype)
    first = real[0]
    at = canonical_dim(dim, first.ndim)
    for tensor in real:
        same = tensor.ndim == first.ndim and all(
            i == at or n == m or UNKNOWN in (n, m) for i, (n, m) in enumerate(zip(tensor.shape, first.shape))
        )
        if not same:
            raise ShapeError(
                f"cat: shapes {list(first.shape)} and {list(tensor.shape)} must agree in all dimensions but {at}"
            )
    extents = [t.shape[at] for t in real]
    shape = with_entry(first.shape, at, UNKNOWN if UNKNOWN in extents else sum(extents))
    stride = channels_last_stride(shape) if all(is_channels_last(t) for t in tensors) else None
    return new(shape, dtype, device, compute=dtype, stride=stride)


@op(grad_fn="StackBackward0", exposed=("function",), linear=True, out=Out.APART | Out.JOINS)
@gradients("select(grad)")
def stack(tensors: list[Tensor], dim: int = 0) -> Inference:
    """Tensors of one shape, side by side along a new dimension. Dtypes are promoted."""
    if not tensors:
        raise ArgumentError("stack needs at least one tensor")
    first = tensors[0]
    at = canonical_dim(dim, first.ndim + 1)
    for i, tensor in enumerate(tensors):
        if tensor.shape != first.shape:
            raise ShapeError(
                f"stack: all tensors must have one shape, got {list(first.shape)} and, at {i}, {list(tensor.shape)}"
            )
    shape = (*first.shape[:at], len(tensors), *first.shape[at:])
    dtype, device = joined_dtype(tensors), common_device(*tensors)
    stride = None
    if at == 0 and all(is_channels_last(t) for t in tensors):
        inner = channels_last_stride(first.shape)
        stride = (max(first.numel, 1), *inner)
    return new(shape, dtype, device, compute=dtype, stride=stride)


@op(grad_fn="ViewBackward0", linear=True)
@gradients("reshape(sum_dim(reshape(grad)))")
def repeat_interleave(self: Tensor, repeats: int, dim: int | None = None) -> Inference:
    """Every element ``repeats`` times in a row, along ``dim`` or of the flattened tensor."""
    if repeats < 0:
        raise ArgumentError(f"repeat_interleave: {repeats} is negative")
    if dim is None:
        return new((UNKNOWN if not self.known else self.numel * repeats,), self.dtype, self.device)
    at = canonical_dim(dim, self.ndim)
    extent = extent_of(self, at)
    grown = UNKNOWN if extent == UNKNOWN else extent * repeats
    return new(with_entry(self.shape, at, grown) if self.shape else (grown,), self.dtype, self.device)


@op(dynamic=True, exposed=())
def repeated_positions(repeats: Tensor) -> Inference:
    """0 ``repeats[0]`` times, then 1 ``repeats[1]`` times, and so on: the index of an interleaving by a tensor."""
    if repeats.ndim != 1 or repeats.dtype.category != 1:
        raise ArgumentError(f"repeat_interleave: repeats must be a vector of integers, got {repeats!r}")
    return new((UNKNOWN,), repeats.dtype, repeats.device)
