"""Operations that put several tensors, or several copies, together."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DType
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..meta import UNKNOWN, Inference, Meta, Shape, meta, new
from ..promotion import result_type
from ..shapes import canonical_dim, channels_last_order, channels_last_stride, common_device, view_stride
from ..table import Out, Tensor, gradients, op
from .views import extent_of, with_entry


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
    stride = _joined_stride(tensors, shape)
    return new(shape, dtype, device, compute=dtype, stride=stride)


def _joined_stride(tensors: Sequence[Meta], shape: Shape) -> Shape | None:
    """Channels last where all tensors are."""
    kept = UNKNOWN not in shape and all(channels_last_stride(t, t.shape) is not None for t in tensors)
    return channels_last_order(shape) if kept else None


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
    if at < first.ndim:  # in PyTorch they are joined along that dimension, which is then divided
        joined = with_entry(first.shape, at, first.shape[at] * len(tensors))
        order = _joined_stride(tensors, joined)
        stride = None if order is None else view_stride(meta(joined, dtype, device, order), shape)
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
