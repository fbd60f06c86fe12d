"""The same elements in another order or among zeros, copied: flips, rolls, triangles, diagonals."""

from __future__ import annotations

from ..dtypes import INTEGRAL, int64
from ..errors import ArgumentError, IndexOutOfRange, ShapeError
from ..meta import Inference, Meta, new
from ..meta import view as shows
from ..shapes import canonical_dim, canonical_dims, like
from ..table import Expanded, Ints, Out, Tensor, gradients, op
from .views import diagonal_of, extent_of_memory


@op(grad_fn="FlipBackward0", variadic="dims", linear=True)
@gradients("flip(grad)")
def flip(self: Tensor, dims: Ints) -> Inference:
    """A copy with the order along the given dimensions reversed."""
    if dims:
        canonical_dims(dims, self.ndim)
    return like(self)


@op(grad_fn="RollBackward0", linear=True)
@gradients("roll(grad)")
def roll(self: Tensor, shifts: Ints | int, dims: Ints | int | None = None) -> Inference:
    """A copy with elements moved along dimensions, those that fall off coming in again at the other end.

    Without ``dims`` the tensor is rolled as if it were flat.
    """
    count = 1 if isinstance(shifts, int) else len(shifts)
    if dims is None or dims == ():
        if count != 1:
            raise ArgumentError(f"roll: {count} shifts need as many dims")
    else:
        named = (dims,) if isinstance(dims, int) else dims
        if len(named) != count:
            raise ArgumentError(f"roll: {count} shifts do not match {len(named)} dims")
        for dim in named:
            if not self.ndim:
                raise IndexOutOfRange(f"roll: a 0-dim tensor has no dimension {dim}")
            canonical_dim(dim, self.ndim)
    return new(self.shape, self.dtype, self.device)


@op(grad_fn="Rot90Backward0", linear=True)
@gradients("rot90(grad)")
def rot90(self: Tensor, k: int = 1, dims: Ints = (0, 1)) -> Inference:
    """A copy rotated ``k`` times by 90 degrees in the plane of two dimensions, from the first towards the second."""
    if len(dims) != 2 or self.ndim < 2:
        raise ArgumentError(f"rot90 turns a plane of two dimensions, got dims {list(dims)} of {self!r}")
    a, b = canonical_dim(dims[0], self.ndim), canonical_dim(dims[1], self.ndim)
    if a == b:
        raise ArgumentError(f"rot90: dims {list(dims)} contain a duplicate")
    if k % 4 == 0:
        return new(self.shape, self.dtype, self.device)
    if k % 2 == 0:
        return like(self)
    before = like(self).outs[0]
    order = list(range(self.ndim))
    order[a], order[b] = b, a
    shape, stride = tuple(before.shape[i] for i in order), tuple(before.stride[i] for i in order)
    return new(shape, self.dtype, self.device, stride=stride)


def _triangle(name: str, self: Meta) -> Inference:
    if self.ndim < 2:
        raise ShapeError(f"{name} needs a matrix or a batch of matrices, got {self!r}")
    return new(self.shape, self.dtype, self.device)


@op(
    grad_fn="TrilBackward0", inplace=True, expanded=Expanded.NUMBERS, linear=True, batched=True,
    out=Out.EXACT | Out.OVERLAPPING,
)  # fmt: skip
@gradients("tril(grad)")
def tril(self: Tensor, diagonal: int = 0) -> Inference:
    """The lower triangles of matrices, up to the given diagonal; zeros elsewhere."""
    return _triangle("tril", self)


@op(
    grad_fn="TriuBackward0", inplace=True, expanded=Expanded.NUMBERS, linear=True, batched=True,
    out=Out.EXACT | Out.OVERLAPPING,
)  # fmt: skip
@gradients("triu(grad)")
def triu(self: Tensor, diagonal: int = 0) -> Inference:
    """The upper triangles of matrices, from the given diagonal on; zeros elsewhere."""
    return _triangle("triu", self)


@op(grad_fn="DiagonalBackward0_copy", linear=True, out=Out.EXACT)
@gradients("diagonal(grad) if self.ndim == 1 else diagonal_backward(grad)")
def diag(self: Tensor, diagonal: int = 0) -> Inference:
    """The diagonal of a matrix, copied, or the matrix that has a vector on its diagonal."""
    if self.ndim == 1:
        n = self.shape[0] + abs(diagonal)
        return new((n, n), self.dtype, self.device, grad_fn="DiagEmbedBackward0")
    if self.ndim != 2:
        raise ShapeError(f"diag takes a vector or a matrix, got {self!r}")
    return new((diagonal_of(self, diagonal, 0, 1)[2],), self.dtype, self.device)


@op(grad_fn="DiagEmbedBackward0", linear=True)
@gradients("diagonal(grad)")
def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Inference:
    """Matrices that have the last dimension on their diagonal and zeros elsewhere, in dimensions ``dim1, dim2``."""
    if not self.shape:
        raise IndexOutOfRange("diag_embed: a 0-dim tensor has no dimension for a diagonal")
    a, b = canonical_dim(dim1, self.ndim + 1), canonical_dim(dim2, self.ndim + 1)
    if a == b:
        raise ArgumentError(f"diag_embed: dim1 and dim2 are both {a}")
    n = self.shape[-1] + abs(offset)
    rest = iter(self.shape[:-1])
    return new([n if i in (a, b) else next(rest) for i in range(self.ndim + 1)], self.dtype, self.device)


@op(grad_fn="SumBackward1", variadic="size", exposed=("method",), linear=True)
@gradients("expand(grad)")
def sum_to_size(self: Tensor, size: Ints) -> Inference:
    """The sum over the dimensions that broadcasting added or stretched, so that the result has the given size."""
    lead = self.ndim - len(size)
    if lead < 0 or any(n not in (1, self.shape[lead + i]) for i, n in enumerate(size)):
        raise ShapeError(f"sum_to_size: size {list(size)} does not broadcast to {list(self.shape)}")
    if size == self.shape and size:
        return shows(self, self.shape, self.stride).named("AliasBackward0")
    name = "SumBackward0" if not size else "ViewBackward0" if lead else None
    dtype = int64 if self.dtype.category <= INTEGRAL else self.dtype  # sums of integers are int64
    return new(size, dtype, self.device, compute=dtype, grad_fn=name)


@op(grad_fn="AsStridedScatterBackward0")
@gradients(self="grad - restride((s := restride(grad)))", src="s")
def as_strided_scatter(self: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: int = 0) -> Inference:
    """A copy of ``self`` with ``src`` written into the part that :func:`as_strided` shows."""
    start, end = extent_of_memory(size, stride, storage_offset)
    held = extent_of_memory(self.shape, self.stride, 0)[1] if self.known else end
    if src.shape != size:
        raise ShapeError(f"as_strided_scatter: src has shape {list(src.shape)}, the part {list(size)}")
    if start < 0 or (end > held and 0 not in size):
        raise ShapeError(f"as_strided_scatter: the part covers elements {start} to {end} of {self!r}, which has {held}")
    inferred = like(self)
    inferred.scratch = held * self.dtype.itemsize + 8 * (max(self.numel, 0) + max(src.numel, 0))
    return inferred
