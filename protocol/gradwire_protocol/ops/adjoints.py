"""Primitives that derivatives of views, reductions and indexing are written in.

Each puts a gradient back where a view or an index took values from, into zeros elsewhere, and is differentiable
in turn: its own derivative is the view or the index.
"""

from __future__ import annotations

from ..errors import ShapeError
from ..meta import Inference, Meta, new, view
from ..shapes import canonical_dims, check_size, reduced_shape
from ..table import FreePosition, Ints, Tensor, gradients, op
from .indexing import PLACE
from .views import extent_of_memory


def _into(grad: Meta, size: Ints, added: bool = False) -> Inference:
    """Zeros of the given size that take the gradient up; ``added`` where indices say where."""
    inferred = new(check_size(size), grad.dtype, grad.device)
    if added:
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


@op(grad_fn="SelectBackwardBackward0", internal=True, linear=True)
@gradients("select(grad0)")
def select_backward(grad: Tensor, size: Ints, dim: int, index: FreePosition) -> Inference:
    """Zeros of the given size with ``grad`` at one index of a dimension."""
    return _into(grad, size)


@op(grad_fn="SliceBackwardBackward0", internal=True, linear=True)
@gradients("slice(grad0)")
def slice_backward(
    grad: Tensor, size: Ints, dim: int, start: FreePosition | None, end: FreePosition | None, step: int
) -> Inference:
    """Zeros of the given size with ``grad`` at a slice of a dimension."""
    return _into(grad, size)


@op(grad_fn="DiagonalBackwardBackward0", internal=True, linear=True)
@gradients("diagonal(grad0)")
def diagonal_backward(grad: Tensor, size: Ints, offset: int, dim1: int, dim2: int) -> Inference:
    """Zeros of the given size with ``grad`` on a diagonal."""
    return _into(grad, size)


@op(grad_fn="UnfoldBackwardBackward0", internal=True, linear=True)
@gradients("unfold(grad0)")
def unfold_backward(grad: Tensor, input_size: Ints, dimension: int, size: int, step: int) -> Inference:
    """Windows added up at the places they came from."""
    return new(check_size(input_size), grad.dtype, grad.device, compute=grad.dtype)


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


@op(grad_fn="GatherBackwardBackward0", differentiable=("grad",), internal=True, along=True)
@gradients("gather(grad0)", saves="index")
def gather_backward(grad: Tensor, size: Ints, dim: int, index: Tensor, distinct: bool = False) -> Inference:
    """Zeros of the given size with the elements of ``grad`` added at the indices along ``dim``.

    ``distinct`` promises that no place is named twice.
    """
    return _into(grad, size, added=True)


@op(grad_fn="IndexBackwardBackward0", differentiable=("grad",), internal=True)
@gradients("index(grad0)", saves="indices")
def index_backward(grad: Tensor, size: Ints, indices: list[Tensor | None]) -> Inference:
    """Zeros of the given size with the elements of ``grad`` added where ``index`` read them."""
    return _into(grad, size, added=True)


@op(grad_fn="IndexSelectBackwardBackward0", differentiable=("grad",), internal=True)
@gradients("index_select(grad0)", saves="index")
def index_select_backward(grad: Tensor, size: Ints, dim: int, index: Tensor) -> Inference:
    """Zeros of the given size with the slices of ``grad`` added at the indices along ``dim``."""
    return _into(grad, size, added=True)


@op(grad_fn="TakeBackwardBackward0", differentiable=("grad",), internal=True)
@gradients("take(grad0)", saves="index")
def take_backward(grad: Tensor, size: Ints, index: Tensor) -> Inference:
    """Zeros of the given size with the elements of ``grad`` added at flat indices."""
    return _into(grad, size, added=True)


@op(grad_fn="MaskedSelectBackwardBackward0", differentiable=("grad",), internal=True)
@gradients("masked_scatter_backward(grad0)", saves="mask")
def masked_select_backward(grad: Tensor, size: Ints, mask: Tensor) -> Inference:
    """Zeros of the given size with the elements of ``grad`` where the mask is true; what is left over is dropped."""
    return _into(grad, size)


@op(grad_fn="MaskedScatterBackwardBackward0", differentiable=("grad",), internal=True)
@gradients("masked_select_backward(reshape(grad0))", saves="mask")
def masked_scatter_backward(grad: Tensor, size: Ints, mask: Tensor) -> Inference:
    """The elements of ``grad`` where the mask is true, followed by zeros, in the given size."""
    return _into(grad, size)


@op(grad_fn="EmbeddingDenseBackwardBackward0", differentiable=("grad",), internal=True)
@gradients(
    "(masked_fill((s := embedding(grad0)), c) if grad.ndim == 2 else s) if not scale_grad_by_freq"
    " else masked_fill(s / c, c)",
    saves="indices",
)
def embedding_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Inference:
    """The rows of ``grad`` added up by index into a table of ``num_weights`` rows."""
    return _into(grad, (num_weights, grad.shape[-1]), added=True)
