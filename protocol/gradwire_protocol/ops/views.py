"""Other shapes of the same elements: views, and reshapes that may have to copy."""

from __future__ import annotations

from math import prod
from typing import Final

from ..errors import ArgumentError, ArgumentValueError, IndexOutOfRange, LimitExceeded, ShapeError
from ..meta import UNKNOWN, Inference, Meta, Shape, contiguous_stride, new, several
from ..meta import view as shows
from ..shapes import canonical_dim, canonical_dims, check_size, infer_size, view_stride
from ..table import Ints, Position, Tensor, gradients, op


def with_entry(values: Shape, at: int, *instead: int) -> Shape:
    """A tuple with one entry replaced by others (none, one or several)."""
    return (*values[:at], *instead, *values[at + 1 :])


def extent_of(self: Meta, dim: int) -> int:
    """The extent of a canonical dimension; a 0-dim tensor has 1."""
    return self.shape[dim] if self.shape else 1


# Reshaping


def _target(self: Meta, shape: Ints) -> Shape:
    """The wanted shape with its -1 filled in."""
    if self.known:
        return infer_size(shape, self.numel)
    return tuple(UNKNOWN if n == -1 else n for n in shape)


@op(grad_fn="ViewBackward0", variadic="size", exposed=("method",), view=True)
@gradients("reshape(grad)")
def view(self: Tensor, size: Ints) -> Inference:
    """The same memory under another shape, one extent of which may be -1 (found from the others).

    Raises where the strides do not allow it: ``reshape`` copies then.
    """
    shape = _target(self, size)
    if not self.known:
        return shows(self, shape, contiguous_stride(shape))
    stride = view_stride(self, shape)
    if stride is None:
        raise ShapeError(
            f"a view of shape {list(shape)} cannot show a tensor of shape {list(self.shape)} with strides "
            f"{list(self.stride)} without a copy; use reshape"
        )
    return shows(self, shape, stride)


def _reshaped(self: Meta, shape: Shape) -> Inference:
    if not self.known:
        return shows(self, shape, contiguous_stride(shape))
    stride = view_stride(self, shape)
    if stride is None:
        return new(shape, self.dtype, self.device, grad_fn="UnsafeViewBackward0")
    shown = shows(self, shape, stride)
    return shown if self.contiguous else shown.named("ReshapeAliasBackward0")


@op(grad_fn="ViewBackward0", variadic="shape", linear=True, view=True)
@gradients("reshape(grad)")
def reshape(self: Tensor, shape: Ints) -> Inference:
    """The elements in another shape, one extent of which may be -1. A view where strides allow it, else a copy."""
    return _reshaped(self, _target(self, shape))


@op(grad_fn="ViewBackward0", linear=True, view=True)
@gradients("reshape(grad)")
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Inference:
    """Dimensions ``start_dim`` to ``end_dim`` merged into one. A view where strides allow it, else a copy."""
    if not self.shape:
        return _reshaped(self, (1,))
    start, end = canonical_dim(start_dim, self.ndim), canonical_dim(end_dim, self.ndim)
    if start > end:
        raise ArgumentError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    merged = self.shape[start : end + 1]
    extent = UNKNOWN if UNKNOWN in merged else prod(merged)
    return _reshaped(self, (*self.shape[:start], extent, *self.shape[end + 1 :]))


@op(grad_fn="ViewBackward0", linear=True, view=True)
@gradients("reshape(grad)")
def unflatten(self: Tensor, dim: int, sizes: Ints) -> Inference:
    """One dimension split into several of the given extents, one of which may be -1."""
    at = canonical_dim(dim, self.ndim)
    if not sizes:
        raise ArgumentError("unflatten: sizes must name at least one extent")
    extent = extent_of(self, at)
    if extent == UNKNOWN:
        return _reshaped(self, with_entry(self.shape, at, *(UNKNOWN if n == -1 else n for n in sizes)))
    try:
        inner = infer_size(sizes, extent)
    except ShapeError as error:
        raise ShapeError(f"unflatten: dimension {at} of extent {extent} cannot become {list(sizes)}") from error
    return _reshaped(self, with_entry(self.shape, at, *inner)).named("ViewBackward0")


# Dimensions in another order


def _permuted(self: Meta, order: Ints) -> Inference:
    return shows(self, [self.shape[i] for i in order], [self.stride[i] for i in order])


@op(grad_fn="TransposeBackward0", view=True)
@gradients("grad if self.ndim == 0 else transpose(grad)")
def transpose(self: Tensor, dim0: int, dim1: int) -> Inference:
    """A view with two dimensions exchanged."""
    a, b = canonical_dim(dim0, self.ndim), canonical_dim(dim1, self.ndim)
    order = list(range(self.ndim))
    if order:
        order[a], order[b] = b, a
    return _permuted(self, tuple(order))


@op(grad_fn="TBackward0", view=True)
@gradients("t(grad)")
def t(self: Tensor) -> Inference:
    """The transposed view of a matrix; a tensor of fewer dimensions as it is."""
    if self.ndim > 2:
        raise ShapeError(f"t takes a tensor of at most 2 dimensions, got {self!r}; use transpose or permute")
    return _permuted(self, tuple(reversed(range(self.ndim))))


@op(grad_fn="PermuteBackward0", variadic="dims", view=True)
@gradients("permute(grad)")
def permute(self: Tensor, dims: Ints) -> Inference:
    """A view with its dimensions in the given order."""
    if len(dims) != self.ndim:
        raise ShapeError(f"permute: {list(dims)} does not order the {self.ndim} dimensions of {self!r}")
    return _permuted(self, canonical_dims(dims, self.ndim))


@op(grad_fn="PermuteBackward0", view=True)
@gradients("movedim(grad)")
def movedim(self: Tensor, source: Ints | int, destination: Ints | int) -> Inference:
    """A view with the dimensions ``source`` moved to the places ``destination``, the others kept in order."""
    return _permuted(self, moved(self, source, destination))


def moved(self: Meta, source: Ints | int, destination: Ints | int) -> Ints:
    """The order of dimensions that ``movedim`` makes."""
    sources = (source,) if isinstance(source, int) else source
    places = (destination,) if isinstance(destination, int) else destination
    if len(sources) != len(places):
        raise ArgumentError(f"movedim: {len(sources)} dimensions cannot move to {len(places)} places")
    come = canonical_dims(sources, self.ndim) if sources else ()
    go = canonical_dims(places, self.ndim) if places else ()
    if not self.shape:
        return ()
    taken = dict(zip(go, come, strict=True))
    rest = iter(i for i in range(self.ndim) if i not in come)
    return tuple(taken[i] if i in taken else next(rest) for i in range(self.ndim))


# Dimensions of extent 1


@op(grad_fn="SqueezeBackward0", view=True)
@gradients("reshape(grad)")
def squeeze(self: Tensor, dim: Ints | int | None = None) -> Inference:
    """A view without its dimensions of extent 1: all of them, or those among ``dim``."""
    if dim is None:
        candidates, name = tuple(range(self.ndim)), "SqueezeBackward0"
    elif isinstance(dim, int):
        candidates, name = (canonical_dim(dim, self.ndim),), "SqueezeBackward1"
    else:
        candidates, name = canonical_dims(dim, self.ndim) if dim else (), "SqueezeBackward2"
    if any(i in candidates for i, n in enumerate(self.shape) if n == UNKNOWN):
        raise ShapeError(f"squeeze: whether a dimension of {self!r} has extent 1 is not known yet")
    kept = [i for i in range(self.ndim) if self.shape[i] != 1 or i not in candidates]
    return _permuted(self, tuple(kept)).named(name)


@op(grad_fn="UnsqueezeBackward0", view=True)
@gradients("reshape(grad)")
def unsqueeze(self: Tensor, dim: int) -> Inference:
    """A view with a dimension of extent 1 inserted at ``dim``."""
    at = canonical_dim(dim, self.ndim + 1)
    step = self.shape[at] * self.stride[at] if at < self.ndim else 1
    return shows(self, (*self.shape[:at], 1, *self.shape[at:]), (*self.stride[:at], step, *self.stride[at:]))


# Repetition


def expanded(self: Meta, size: Ints) -> Inference:
    """The view that repeats extents of 1 by strides of 0."""
    lead = len(size) - self.ndim
    if lead < 0:
        raise ShapeError(f"expand: size {list(size)} has fewer dimensions than the tensor {self!r}")
    shape, stride = [0] * len(size), [0] * len(size)
    for i in range(len(size) - 1, -1, -1):
        if i >= lead:
            extent, step = self.shape[i - lead], self.stride[i - lead]
        else:
            extent, step = 1, shape[i + 1] * stride[i + 1] if i + 1 < len(size) else 1
        wanted = size[i]
        if wanted == -1 and i >= lead:
            wanted = extent
        if wanted < 0:
            raise ShapeError(f"expand: size {list(size)} has a negative extent in dimension {i}")
        if wanted != extent and extent != UNKNOWN:
            if extent != 1:
                raise ShapeError(
                    f"expand: {self!r} cannot become {list(size)}: dimension {i} has extent {extent}, not 1"
                )
            step = 0
        shape[i], stride[i] = wanted, step
    return shows(self, shape, stride)


@op(grad_fn="ExpandBackward0", variadic="size", exposed=("method",), view=True)
@gradients(
    "sum_to_size.SumBackward0(grad) if self.ndim == 0 else sum_to_size.ViewBackward0(grad)"
    " if self.ndim == 1 else sum_to_size(grad)"
)
def expand(self: Tensor, size: Ints) -> Inference:
    """A view that repeats dimensions of extent 1 to the given size, without memory; -1 keeps an extent.

    New dimensions appear in front.
    """
    if UNKNOWN in self.shape and len(size) >= self.ndim:
        lead = len(size) - self.ndim
        shape = tuple(self.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(size))
        return shows(self, shape, contiguous_stride(shape))
    return expanded(self, size)


@op(grad_fn="ExpandBackward0", variadic="size", view=True)
@gradients("sum_to_size.ViewBackward0(grad)")
def broadcast_to(self: Tensor, size: Ints) -> Inference:
    """Same as :meth:`expand`, as a function."""
    return expanded(self, size)


def _repeated(self: Meta, repeats: Ints) -> Inference:
    if any_negative(repeats):
        raise ArgumentError(f"repeat: {list(repeats)} has a negative number")
    lead = len(repeats) - self.ndim
    shape = (1,) * lead + self.shape
    return new([UNKNOWN if n == UNKNOWN else n * r for n, r in zip(shape, repeats)], self.dtype, self.device)


def any_negative(values: Ints) -> bool:
    return any(v < 0 for v in values)


@op(grad_fn="RepeatBackward0", variadic="repeats", exposed=("method",), linear=True)
@gradients("reshape(sum_dim(reshape(grad)))")
def repeat(self: Tensor, repeats: Ints) -> Inference:
    """A copy that contains the tensor ``repeats[i]`` times along dimension ``i``; new dimensions appear in front."""
    if len(repeats) < self.ndim:
        raise ShapeError(f"repeat: {list(repeats)} names fewer dimensions than {self!r} has")
    return _repeated(self, repeats)


@op(grad_fn="RepeatBackward0", variadic="dims", linear=True)
@gradients("reshape(grad if keeps_shape(self) else sum_dim(reshape(grad)))")
def tile(self: Tensor, dims: Ints) -> Inference:
    """Like :meth:`repeat`, for the last ``len(dims)`` dimensions if there are more."""
    return _repeated(self, (1,) * (self.ndim - len(dims)) + dims)


# Parts


@op(grad_fn="SelectBackward0", view=True)
@gradients("select_backward(grad)")
def select(self: Tensor, dim: int, index: Position) -> Inference:
    """A view of one index along a dimension, which disappears."""
    if not self.shape:
        raise IndexOutOfRange("select: a 0-dim tensor has no dimension to select from")
    at = canonical_dim(dim, self.ndim)
    offset = place_in(self, at, index) * self.stride[at]
    return shows(self, with_entry(self.shape, at), with_entry(self.stride, at), offset)


def place_in(self: Meta, dim: int, index: int) -> int:
    """An index along a canonical dimension, counted from the front."""
    extent = self.shape[dim]
    if extent == UNKNOWN:
        return 0
    if not -extent <= index < extent:
        raise IndexOutOfRange(f"index {index} is out of range for dimension {dim} of {self!r}")
    return index + extent if index < 0 else index


def span_in(extent: int, start: int | None, end: int | None, step: int) -> tuple[int, int]:
    """(first index, number of indices) of a slice, clamped to the extent as Python does."""
    if step <= 0:
        raise ArgumentValueError(f"slice: step {step} is not positive")
    if extent == UNKNOWN:
        return 0, UNKNOWN
    first, stop, _ = slice(start, end).indices(extent)
    return first, max(0, -(-(stop - first) // step))


@op(name="slice", grad_fn="SliceBackward0", exposed=(), view=True)
@gradients("slice_backward(grad)")
def slice_(
    self: Tensor, dim: int = 0, start: Position | None = None, end: Position | None = None, step: int = 1
) -> Inference:
    """A view of every ``step``-th index from ``start`` up to ``end`` along a dimension; ``x[start:end:step]``.

    Ends beyond the dimension are cut off.
    """
    if not self.shape:
        raise IndexOutOfRange("slice: a 0-dim tensor has no dimension to slice")
    at = canonical_dim(dim, self.ndim)
    first, extent = span_in(self.shape[at], start, end, step)
    stride = self.stride[at]
    return shows(self, with_entry(self.shape, at, extent), with_entry(self.stride, at, stride * step), first * stride)


@op(grad_fn="SliceBackward0", view=True)
@gradients("slice_backward(grad)")
def narrow(self: Tensor, dim: int, start: Position, length: int) -> Inference:
    """A view of ``length`` indices from ``start`` along a dimension; unlike a slice, it must lie inside."""
    if not self.shape:
        raise ShapeError("narrow: a 0-dim tensor has no dimension to narrow")
    at = canonical_dim(dim, self.ndim)
    extent = self.shape[at]
    if length < 0:
        raise ArgumentError(f"narrow: length {length} is negative")
    if extent != UNKNOWN:
        if not -extent <= start <= extent:
            raise IndexOutOfRange(f"narrow: start {start} is out of range for dimension {at} of {self!r}")
        start += extent if start < 0 else 0
        if start + length > extent:
            raise ArgumentError(f"narrow: {start} + {length} exceeds dimension {at} of {self!r}")
    return shows(self, with_entry(self.shape, at, length), self.stride, start * self.stride[at])


def diagonal_of(self: Meta, offset: int, dim1: int, dim2: int) -> tuple[int, int, int, int]:
    """(first dimension, second, extent of the diagonal, distance of its first element)."""
    a, b = canonical_dim(dim1, self.ndim), canonical_dim(dim2, self.ndim)
    if not self.shape:
        raise IndexOutOfRange("diagonal: a 0-dim tensor has no diagonal")
    if a == b:
        raise ArgumentError(f"diagonal: dim1 and dim2 are both {a}")
    rows, columns = self.shape[a], self.shape[b]
    if UNKNOWN in (rows, columns):
        raise ShapeError(f"diagonal: the extents of {self!r} are not known yet")
    if offset >= 0:
        extent, start = min(rows, columns - offset), offset * self.stride[b]
    else:
        extent, start = min(rows + offset, columns), -offset * self.stride[a]
    return (a, b, extent, start) if extent > 0 else (a, b, 0, 0)


@op(grad_fn="DiagonalBackward0", view=True)
@gradients("diagonal_backward(grad)")
def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Inference:
    """A view of the elements whose indices along ``dim1`` and ``dim2`` differ by ``offset``, as a last dimension."""
    a, b, extent, start = diagonal_of(self, offset, dim1, dim2)
    kept = [i for i in range(self.ndim) if i not in (a, b)]
    shape = [*(self.shape[i] for i in kept), extent]
    stride = [*(self.stride[i] for i in kept), self.stride[a] + self.stride[b]]
    return shows(self, shape, stride, start)


@op(grad_fn="UnfoldBackward0", exposed=("method",), view=True)
@gradients("unfold_backward(grad)")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Inference:
    """A view of all windows of ``size`` elements along a dimension, ``step`` apart, as a last dimension."""
    at = canonical_dim(dimension, self.ndim)
    extent = extent_of(self, at)
    if size < 0 or size > extent:
        raise ArgumentError(f"unfold: a window of {size} does not fit dimension {at} of {self!r}")
    if step <= 0:
        raise ArgumentError(f"unfold: step {step} is not positive")
    if not self.shape:
        return shows(self, (size,), (1,))
    stride = self.stride[at]
    return shows(
        self,
        (*with_entry(self.shape, at, (extent - size) // step + 1), size),
        (*with_entry(self.stride, at, stride * step), stride),
    )


@op(grad_fn="AsStridedBackward0", keyword_only=("absolute",), view=True)
@gradients("restride(grad)")
def as_strided(
    self: Tensor, size: Ints, stride: Ints, storage_offset: int = 0, absolute: bool = False
) -> Inference:  # fmt: skip
    """A view of the tensor's memory with any size and strides, both in elements.

    ``storage_offset`` counts from the tensor's own first element; with ``absolute`` from that of the storage, as in
    PyTorch.
    """
    if absolute and storage_offset < 0:
        raise ArgumentError(f"as_strided: storage_offset {storage_offset} must not be negative")
    extent_of_memory(size, stride, storage_offset)
    return shows(self, size, stride, storage_offset)


def extent_of_memory(size: Ints, stride: Ints, offset: int) -> tuple[int, int]:
    """(first element, one past the last) that a view of this geometry shows.

    Raises:
        ShapeError, ArgumentError: for a geometry that is none.
    """
    check_size(size)
    if len(size) != len(stride):
        raise ShapeError(f"as_strided: size {list(size)} and stride {list(stride)} differ in length")
    if any_negative(stride):
        raise ArgumentError(f"as_strided: strides {list(stride)} must not be negative")
    return offset, offset + (0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride)))


@op(grad_fn="AliasBackward0", exposed=(), elementwise=True, view=True)
@gradients("grad")
def alias(self: Tensor) -> Inference:
    """A view of the whole tensor."""
    return shows(self, self.shape, self.stride)


@op(elementwise=True, view=True)
def detach(self: Tensor) -> Inference:
    """A view without history: no gradient flows through it. It shares memory and version with ``self``."""
    return shows(self, self.shape, self.stride)


# Several parts

MAX_PARTS: Final = 1 << 20
"""Views that one op makes at most. An expanded tensor may have any extent."""


def _check_parts(name: str, count: int) -> None:
    if count > MAX_PARTS:
        raise LimitExceeded(f"{name} would return {count:,} tensors; the limit is {MAX_PARTS:,}",
                            limit=MAX_PARTS, value=count)  # fmt: skip


def _pieces(self: Meta, dim: int, sizes: Ints) -> Inference:
    stride = self.stride[dim]
    parts, start = [], 0
    for size in sizes:
        parts.append(shows(self, with_entry(self.shape, dim, size), self.stride, start * stride))
        start += size
    return several(*parts)


def _splittable(name: str, self: Meta, dim: int) -> int:
    if not self.shape:
        raise ShapeError(f"{name}: a 0-dim tensor has no dimension to split")
    at = canonical_dim(dim, self.ndim)
    if self.shape[at] == UNKNOWN:
        raise ShapeError(f"{name}: the extent of dimension {at} is not known yet")
    return at


@op(grad_fn="SplitBackward0", results=None, view=True)
@gradients("slice_backward(grad) if is_empty(self) or keeps_shape(self) else cat(grads)")
def split(self: Tensor, split_size_or_sections: Ints | int, dim: int = 0) -> Inference:
    """Views of consecutive parts along a dimension: of one size (the last may be smaller), or of given sizes."""
    at = _splittable("split", self, dim)
    extent = self.shape[at]
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        if sizes < 0 or (sizes == 0 and extent):
            raise ArgumentError(f"split: a part cannot have {sizes} of {extent} elements")
        count = max(1, -(-extent // sizes)) if sizes else 1
        _check_parts("split", count)
        return _pieces(self, at, tuple(min(sizes, extent - i * sizes) for i in range(count)))
    if any_negative(sizes) or sum(sizes) != extent:
        raise ArgumentError(f"split: sizes {list(sizes)} do not add up to the extent of dimension {at}, {extent}")
    return _pieces(self, at, sizes).named("SplitWithSizesBackward0")


@op(grad_fn="UnsafeSplitBackward0", results=None, untracked=True, exposed=(), view=True)
@gradients("slice_backward(grad) if is_empty(self) else cat(grads)")
def unsafe_split(self: Tensor, split_size_or_sections: Ints | int, dim: int = 0) -> Inference:
    """:func:`split` without autograd's knowledge that the parts share memory: they may be changed in place, and whether
    that spoils what others have saved for backward goes unnoticed."""
    named = split(self, split_size_or_sections, dim)
    sizes = split_size_or_sections
    return named.named("UnsafeSplitBackward0" if isinstance(sizes, int) else "UnsafeSplitWithSizesBackward0")


def chunk_sizes(extent: int, chunks: int) -> Ints:
    """The extents of at most ``chunks`` parts of nearly equal size."""
    if extent == 0:
        return (0,) * chunks
    size = -(-extent // chunks)
    return tuple(min(size, extent - i) for i in range(0, extent, size))


@op(grad_fn="SplitBackward0", results=None, view=True)
@gradients("cat(grads)")
def chunk(self: Tensor, chunks: int, dim: int = 0) -> Inference:
    """Views of at most ``chunks`` consecutive parts along a dimension, of equal size except the last."""
    at = _splittable("chunk", self, dim)
    if chunks <= 0:
        raise ArgumentError(f"chunk: chunks must be positive, not {chunks}")
    _check_parts("chunk", min(chunks, self.shape[at] or chunks))
    parts = _pieces(self, at, chunk_sizes(self.shape[at], chunks))
    return parts if self.shape[at] else parts.named("SplitWithSizesBackward0")


@op(grad_fn="UnbindBackward0", results=None, view=True)
@gradients("stack(grads)")
def unbind(self: Tensor, dim: int = 0) -> Inference:
    """Views of every index along a dimension, which disappears."""
    if not self.shape:
        raise IndexOutOfRange("unbind: a 0-dim tensor has no dimension to take apart")
    at = _splittable("unbind", self, dim)
    _check_parts("unbind", self.shape[at])
    step = self.stride[at]
    shape, stride = with_entry(self.shape, at), with_entry(self.stride, at)
    return several(*(shows(self, shape, stride, i * step) for i in range(self.shape[at])))
