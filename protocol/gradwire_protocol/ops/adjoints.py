"""Primitives that derivatives of views, reductions and indexing are written in.

Each puts a gradient back where a view or an index took values from, into zeros elsewhere, and is differentiable
in turn: its own derivative is the view or the index. The rule of that says which gradients fit. Clients offer none of
them by name.
"""

from __future__ import annotations

from ..errors import ArgumentError, IndexOutOfRange, ShapeError
from ..meta import UNKNOWN, Inference, Meta, Shape, meta, new, view
from ..shapes import broadcast, canonical_dim, canonical_dims, check_size, common_device, reduced_shape
from ..table import FreePosition, Ints, Tensor, gradients, op
from .indexing import PLACE, Selection, check_along, need_extent, need_index, need_mask, need_vector
from .matrix import fits
from .views import diagonal, extent_of, extent_of_memory, unfold, with_entry


def _sized(grad: Meta, size: Ints) -> Meta:
    """What the gradient was taken from."""
    return meta(check_size(size), grad.dtype, grad.device)


def _need_shape(name: str, grad: Meta, size: Ints, wanted: Shape) -> None:
    """Check that a gradient has the shape of what was read from a tensor of this size."""
    if len(grad.shape) != len(wanted) or not all(fits(n, m) for n, m in zip(grad.shape, wanted, strict=True)):
        raise ShapeError(
            f"{name}: a gradient of shape {list(grad.shape)} does not fit what is read of a size {list(size)}, "
            f"{list(wanted)}"
        )


def _into(grad: Meta, size: Ints, *indices: Meta | None) -> Inference:
    """Zeros of the given size that take the gradient up, where the indices say if there are any."""
    inferred = new(check_size(size), grad.dtype, common_device(grad, *indices))
    if indices:
        inferred.scratch = PLACE * max(grad.numel, 0)
    return inferred


@op(grad_fn="ExpandBackward0", internal=True, linear=True, view=True)
@gradients("sum(grad) if dim is None and not keepdim else sum_dim(grad)")
def spread(self: Tensor, size: Ints, dim: Ints | int | None = None, keepdim: bool = False) -> Inference:
    """A view that gives every element of a dimension what a reduction over ``dim`` made of them all."""
    gone = canonical_dims(dim, len(size)) if check_size(size) else ()
    if self.shape != reduced_shape(size, gone, keepdim):
        raise ShapeError(f"spread: {self!r} is not what a reduction of {list(size)} over {list(gone)} makes")
    kept = iter(s for i, s in enumerate(self.stride) if not (keepdim and i in gone))
    return view(self, size, [0 if i in gone else next(kept) for i in range(len(size))])


@op(grad_fn="SelectBackwardBackward0", exposed=(), linear=True)
@gradients("select(grad0)")
def select_backward(grad: Tensor, size: Ints, dim: int, index: FreePosition) -> Inference:
    """Zeros of the given size with ``grad`` at one index of a dimension."""
    at = _need_dim("select_backward", size, dim)
    _need_shape("select_backward", grad, size, with_entry(check_size(size), at))
    return _into(grad, size)


def _need_dim(name: str, size: Ints, dim: int) -> int:
    """The dimension, of those that the size has."""
    if not size:
        raise IndexOutOfRange(f"{name}: a 0-dim tensor has no dimension {dim}")
    return canonical_dim(dim, len(size))


@op(grad_fn="SliceBackwardBackward0", exposed=(), linear=True)
@gradients("slice(grad0)")
def slice_backward(
    grad: Tensor, size: Ints, dim: int, start: FreePosition | None, end: FreePosition | None, step: int
) -> Inference:
    """Zeros of the given size with ``grad`` at a slice of a dimension."""
    at = _need_dim("slice_backward", size, dim)
    if step <= 0:
        raise ArgumentError(f"slice_backward: step {step} is not positive")
    _need_shape("slice_backward", grad, size, with_entry(check_size(size), at, UNKNOWN))
    return _into(grad, size)


@op(grad_fn="DiagonalBackwardBackward0", exposed=(), linear=True)
@gradients("diagonal(grad0)")
def diagonal_backward(grad: Tensor, size: Ints, offset: int, dim1: int, dim2: int) -> Inference:
    """Zeros of the given size with ``grad`` on a diagonal."""
    read = diagonal(_sized(grad, size), offset, dim1, dim2)
    _need_shape("diagonal_backward", grad, size, read.outs[0].shape)
    return _into(grad, size)


@op(grad_fn="UnfoldBackwardBackward0", exposed=(), linear=True)
@gradients("unfold(grad0)")
def unfold_backward(grad: Tensor, input_size: Ints, dimension: int, size: int, step: int) -> Inference:
    """Windows added up at the places they came from."""
    read = unfold(_sized(grad, input_size), dimension, size, step)
    _need_shape("unfold_backward", grad, input_size, read.outs[0].shape)
    return new(input_size, grad.dtype, grad.device, compute=grad.dtype)


@op(grad_fn="RestrideBackward0", internal=True, linear=True)
@gradients("restride(grad)")
def restride(
    self: Tensor,
    stride: Ints,
    storage_offset: int,
    to_size: Ints,
    to_stride: Ints,
    to_offset: int,
    average: str | None = None,
) -> Inference:
    """Write the elements into flat memory with one geometry and read them back with another.

    Elements written to one place add up; a place never written to reads as 0. ``average`` is ``"to"`` or ``"from"``
    where that geometry shows places several times and each is to carry its share.
    """
    inferred = _into(self, to_size)
    starts, ends = zip(
        extent_of_memory(self.shape, stride, storage_offset), extent_of_memory(to_size, to_stride, to_offset)
    )
    inferred.scratch = (max(ends) - min(starts)) * self.dtype.itemsize + PLACE * max(self.numel, 0)
    return inferred


@op(grad_fn="GatherBackwardBackward0", differentiable=("grad",), exposed=(), along=True)
@gradients("gather(grad0)", saves="index")
def gather_backward(grad: Tensor, size: Ints, dim: int, index: Tensor, distinct: bool = False) -> Inference:
    """Zeros of the given size with the elements of ``grad`` added at the indices along ``dim``.

    ``distinct`` promises that no place is named twice: of elements with one place, one is kept.
    """
    check_along("gather_backward", _sized(grad, size), dim, index)
    _need_shape("gather_backward", grad, size, index.shape)
    return _into(grad, size, index)


@op(grad_fn="IndexBackwardBackward0", differentiable=("grad",), exposed=())
@gradients("index(grad0)", saves="indices")
def index_backward(grad: Tensor, size: Ints, indices: list[Tensor | None]) -> Inference:
    """Zeros of the given size with the elements of ``grad`` added where ``index`` read them."""
    _need_shape("index_backward", grad, size, Selection(_sized(grad, size), indices).shape)
    return _into(grad, size, *indices)


@op(grad_fn="IndexSelectBackwardBackward0", differentiable=("grad",), exposed=())
@gradients("index_select(grad0)", saves="index")
def index_select_backward(grad: Tensor, size: Ints, dim: int, index: Tensor) -> Inference:
    """Zeros of the given size with the slices of ``grad`` added at the indices along ``dim``."""
    made, at = _sized(grad, size), canonical_dim(dim, len(size))
    length = need_vector("index_select_backward", index)
    need_index("index_select_backward", index)
    need_extent("index_select_backward", made, extent_of(made, at), index)
    if not size and length != 1:
        raise ShapeError(f"index_select_backward: a 0-dim tensor has one element, the index names {length}")
    _need_shape("index_select_backward", grad, size, with_entry(made.shape, at, length) if size else ())
    return _into(grad, size, index)


@op(grad_fn="TakeBackwardBackward0", differentiable=("grad",), exposed=())
@gradients("take(grad0)", saves="index")
def take_backward(grad: Tensor, size: Ints, index: Tensor) -> Inference:
    """Zeros of the given size with the elements of ``grad`` added at flat indices."""
    made = _sized(grad, size)
    need_index("take_backward", index)
    need_extent("take_backward", made, made.numel, index)
    _need_shape("take_backward", grad, size, index.shape)
    return _into(grad, size, index)


@op(grad_fn="MaskedSelectBackwardBackward0", differentiable=("grad",), exposed=())
@gradients("masked_scatter_backward(grad0)", saves="mask")
def masked_select_backward(grad: Tensor, size: Ints, mask: Tensor) -> Inference:
    """Zeros of the given size with the elements of ``grad`` where the mask is true; what is left over is dropped."""
    _need_mask_of("masked_select_backward", check_size(size), mask)
    return new(size, grad.dtype, common_device(grad, mask))


def _need_mask_of(name: str, shape: Shape, mask: Meta) -> None:
    need_mask(name, mask)
    if UNKNOWN not in (*shape, *mask.shape) and broadcast(shape, mask.shape) != shape:
        raise ShapeError(f"{name}: a mask of shape {list(mask.shape)} does not broadcast to {list(shape)}")


@op(grad_fn="MaskedScatterBackwardBackward0", differentiable=("grad",), exposed=())
@gradients("masked_select_backward(reshape(grad0))", saves="mask")
def masked_scatter_backward(grad: Tensor, size: Ints, mask: Tensor) -> Inference:
    """The elements of ``grad`` where the mask is true, followed by zeros, in the given size."""
    _need_mask_of("masked_scatter_backward", grad.shape, mask)
    return new(check_size(size), grad.dtype, common_device(grad, mask))


@op(grad_fn="EmbeddingDenseBackwardBackward0", differentiable=("grad",), exposed=())
@gradients(
    "(masked_fill((s := embedding(grad0)), c) if grad.ndim == 2 else s) if not scale_grad_by_freq"
    " else masked_fill(s / c, c)",
    saves="indices",
)
def embedding_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Inference:
    """The rows of ``grad`` added up by index into a table of ``num_weights`` rows. The row ``padding_idx`` (-1: none)
    stays 0; ``scale_grad_by_freq`` divides each row by the number of times it is named."""
    name = "embedding_backward"
    if not grad.ndim:
        raise ShapeError(f"{name}: the gradient of a row has a dimension; a 0-dim tensor has none")
    need_index(name, indices)
    size = check_size((num_weights, grad.shape[-1]))
    need_extent(name, meta(size, grad.dtype, grad.device), num_weights, indices)
    _need_shape(name, grad, size, (*indices.shape, grad.shape[-1]))
    return _into(grad, size, indices)
