"""Reading and writing elements named by index tensors and masks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..autocast import CPU_WIDEST, GPU_WIDEST
from ..dtypes import INTEGRAL, DType, bool_, float32, float64, int32, int64, uint8
from ..errors import ArgumentError, DTypeError, GradwireError, IndexOutOfRange, ShapeError, Unsupported
from ..meta import UNKNOWN, Inference, Meta, Shape, new
from ..promotion import ScalarKind
from ..shapes import broadcast, canonical_dim, common_device, elementwise_stride, like
from ..table import Element, Expanded, Factor, Out, Position, Tensor, gradients, op
from .views import diagonal_of, extent_of, place_in, span_in, with_entry

MASKS = (bool_, uint8)
INDICES = (int32, int64)
PLACE = 16
"""Bytes of working memory per element that is added at a place named by an index."""


# What index tensors may be


def need_index(name: str, index: Meta, kinds: Sequence[DType] = INDICES) -> None:
    if index.dtype not in kinds:
        raise DTypeError(f"{name}: an index must be {' or '.join(k.name for k in kinds)}, got {index.dtype.name}")


def need_vector(name: str, index: Meta) -> int:
    """The length of a one-dimensional index; a 0-dim one counts as one element."""
    if index.ndim > 1:
        raise IndexOutOfRange(f"{name}: the index must be a vector, got shape {list(index.shape)}")
    return extent_of(index, 0)


def need_extent(name: str, of: Meta, extent: int, index: Meta, kind: type[GradwireError] = ShapeError) -> None:
    """Whatever the values of an index, it names nothing where there is nothing."""
    if extent == 0 and index.known and index.numel:
        raise kind(f"{name}: {index.numel} indices name elements of {of!r} along an extent of 0")


def need_same_dtype(name: str, self: Meta, other: Meta | ScalarKind, what: str) -> None:
    if isinstance(other, Meta) and other.dtype is not self.dtype:
        raise DTypeError(f"{name}: {what} is {other.dtype.name}, the tensor {self.dtype.name}; they must be equal")


class Selection:
    """What a list of index tensors means for a tensor: which dimensions it consumes, and the result's shape.

    Attributes:
        dims: the dimensions that index tensors stand for, in order.
        shape: the shape of the result.
        at: where in the result the broadcast shape of the indices begins.
        common: that broadcast shape.
    """

    __slots__ = ("at", "common", "dims", "rest", "shape")

    def __init__(self, self_: Meta, indices: Sequence[Meta | None]) -> None:
        dims: list[int] = []
        shapes: list[Shape] = []
        dim = 0
        for place, index in enumerate(indices):
            if index is None:
                dim += 1
                continue
            if index.dtype in MASKS:
                covered = tuple(range(dim, dim + index.ndim))
                _check_mask(self_, index, dim, place)
                shapes.append((UNKNOWN,))
            elif index.dtype.category == INTEGRAL and index.dtype in INDICES:
                covered = (dim,)
                shapes.append(index.shape)
                if index.numel > 0 and dim < self_.ndim and self_.shape[dim] == 0:
                    raise IndexOutOfRange(
                        f"index {place} names elements of dimension {dim} of {self_!r}, which has none"
                    )
            else:
                raise IndexOutOfRange(f"an index must hold integers or bools, index {place} is {index.dtype.name}")
            dims.extend(covered)
            dim += len(covered)
        if dim > self_.ndim:
            raise IndexOutOfRange(f"{dim} dimensions are indexed, {self_!r} has {self_.ndim}")
        if not dims:
            raise IndexOutOfRange("at least one index must be a tensor")
        try:
            self.common = broadcast(*shapes)
        except ShapeError as error:
            raise IndexOutOfRange(f"the index tensors do not fit each other: {error}") from None
        self.dims = tuple(dims)
        adjacent = dims[-1] - dims[0] == len(dims) - 1
        self.at = dims[0] if adjacent else 0
        self.rest = tuple(i for i in range(self_.ndim) if i not in dims)
        kept = [self_.shape[i] for i in self.rest]
        self.shape = (*kept[: self.at], *self.common, *kept[self.at :])

    def stride(self, self_: Meta, indices: Sequence[Meta | None]) -> Shape | None:
        """The result's strides: PyTorch lays it out like an elementwise result of the source and the indices."""
        if UNKNOWN in self.shape:
            return None
        kept = [self_.stride[i] for i in self.rest]
        behind = len(kept) - self.at
        strides = (*kept[: self.at], *(0 for _ in self.common), *kept[self.at :])
        operands = [Meta(self.shape, strides, self_.dtype, self_.device)]
        for index in indices:
            if index is not None:
                shape = (*index.shape, *(1,) * behind)
                operands.append(Meta(shape, (*index.stride, *(0,) * behind), index.dtype, index.device))
        return elementwise_stride(self.shape, operands)


def _check_mask(self: Meta, mask: Meta, dim: int, place: int) -> None:
    if not mask.shape:
        raise IndexOutOfRange(f"index {place} is a 0-dim mask; give it and the tensor a dimension (unsqueeze) first")
    for i, extent in enumerate(mask.shape):
        if dim + i >= self.ndim or (extent != self.shape[dim + i] and UNKNOWN not in (extent, self.shape[dim + i])):
            raise IndexOutOfRange(
                f"index {place} is a mask of shape {list(mask.shape)}, which does not match {self!r} "
                f"from dimension {dim} on"
            )


# Lists of index tensors: x[i, j], x[mask]


@op(grad_fn="IndexBackward0", differentiable=("self",), dynamic=True, exposed=(), linear=True)
@gradients("index_backward(grad)", saves="indices")
def index(self: Tensor, indices: list[Tensor | None]) -> Inference:
    """Elements named by integer tensors and masks, one per dimension or group of dimensions; null skips one.

    Integer tensors broadcast together, a mask stands for the indices of its true elements (so that the extent it
    makes depends on data). Their common shape takes the place of the indexed dimensions, or the front if these
    are not neighbours. Negative integers count from the end.
    """
    selection = Selection(self, indices)
    return new(selection.shape, self.dtype, self.device, stride=selection.stride(self, indices))


@op(
    grad_fn="IndexPutBackward0", differentiable=("self", "values"), inplace=True, apart=True, expanded=Expanded.WARNED,
    inplace_function=True, autocast=GPU_WIDEST,
)  # fmt: skip
@gradients(
    self="index_put(grad, c) if not accumulate else grad", values="index(grad)", saves="indices", broadcasts=("values",)
)
def index_put(self: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Inference:
    """A copy with ``values``, broadcast, written to (or, with ``accumulate``, added at) the elements that
    :func:`index` would read. Where an element is named twice, one of its values stays, or all are added."""
    need_same_dtype("index_put", self, values, "values")
    if not any(index is not None for index in indices):
        raise ArgumentError("index_put: indices is empty; it must have at least one tensor")
    selected = Selection(self, indices).shape
    if values.ndim > len(selected):
        raise ShapeError(
            f"index_put: values of shape {list(values.shape)} have more dimensions than the selection, {list(selected)}"
        )
    fits(selected, values, "index_put")
    inferred = like(self)
    if accumulate and UNKNOWN not in selected:
        inferred.scratch = PLACE * prod(selected)
    return inferred


def fits(shape: Shape, values: Meta, name: str) -> None:
    """Check that values broadcast to the part that they are written to."""
    lead = len(shape) - values.ndim
    given = values.shape[-lead:] if lead < 0 else values.shape
    extra = values.shape[:-lead] if lead < 0 else ()
    wanted = shape[max(lead, 0) :]
    bad = any(n not in (1, m, UNKNOWN) and m != UNKNOWN for n, m in zip(given, wanted, strict=True))
    if bad or any(n != 1 for n in extra):
        raise ShapeError(f"{name}: values of shape {list(values.shape)} do not broadcast to {list(shape)}")


# Along one dimension, an index per element


def check_along(name: str, self: Meta, dim: int, index: Meta, src: Meta | ScalarKind | None = None) -> int:
    """Check an index that names, for each of its elements, a place along one dimension."""
    at = canonical_dim(dim, self.ndim)
    if index.numel == 0:
        return at
    need_index(name, index)
    need_extent(name, self, extent_of(self, at), index)
    shape, wanted = self.shape or (1,), index.shape or (1,)
    if len(shape) != len(wanted):
        raise ShapeError(f"{name}: the index has {index.ndim} dimensions, the tensor {self.ndim}")
    for i, (n, m) in enumerate(zip(shape, wanted, strict=True)):
        if i != at and m > n and n != UNKNOWN:
            raise ShapeError(
                f"{name}: an index of shape {list(index.shape)} passes {self!r} in dimension {i}, which is not the "
                f"indexed one"
            )
    if isinstance(src, Meta):
        given = src.shape or (1,)
        if len(given) != len(wanted) or any(m > n and n != UNKNOWN for n, m in zip(given, wanted, strict=True)):
            raise ShapeError(f"{name}: src of shape {list(src.shape)} is smaller than the index, {list(index.shape)}")
    return at


@op(grad_fn="GatherBackward0", differentiable=("self",), linear=True, along=True, out=Out.EXACT | Out.APART)
@gradients("gather_backward(grad)", saves="index")
def gather(self: Tensor, dim: int, index: Tensor) -> Inference:
    """For each element of ``index`` the element of ``self`` that it names along ``dim``, at the same place in the
    other dimensions. Indices start at 0; negative ones raise."""
    check_along("gather", self, dim, index)
    return new(index.shape, self.dtype, self.device)


@op(grad_fn="GatherBackward0", differentiable=("self",), out=Out.EXACT | Out.APART)
@gradients("take_backward(grad) if dim is None else gather_backward(grad)", saves="indices", broadcasts=True)
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Inference:
    """Like :func:`gather`, with ``self`` and ``indices`` broadcast in the other dimensions; flat without ``dim``."""
    need_index("take_along_dim", indices, (int64,))
    if dim is None:
        need_extent("take_along_dim", self, self.numel, indices)
        return new((indices.numel,), self.dtype, self.device)
    if self.ndim != indices.ndim:
        raise ShapeError(f"take_along_dim: the tensor has {self.ndim} dimensions, the indices {indices.ndim}")
    at = canonical_dim(dim, self.ndim)
    need_extent("take_along_dim", self, extent_of(self, at), indices)
    shape = broadcast(with_entry(self.shape, at, 1), with_entry(indices.shape, at, 1)) if self.shape else ()
    return new(with_entry(shape, at, indices.shape[at]) if shape else (), self.dtype, self.device)


@op(grad_fn="ScatterBackward0", differentiable=("self", "src"), inplace=True, apart=True, along=True, out=Out.EXACT)
@gradients(self="scatter.ScatterBackward1(grad, c)", src="gather(grad)", saves={"self": "index", "src": "index"})
def scatter(self: Tensor, dim: int, index: Tensor, src: Tensor | Factor) -> Inference:
    """A copy with the elements of ``src`` (or one number) written to the places along ``dim`` that ``index`` names.

    Where a place is named twice, one of its values stays.
    """
    need_same_dtype("scatter", self, src, "src")
    check_along("scatter", self, dim, index, src)
    return new(self.shape, self.dtype, self.device, grad_fn=None if isinstance(src, Meta) else "ScatterBackward1")


@op(
    grad_fn="ScatterAddBackward0", differentiable=("self", "src"), inplace=True, apart=True, along=True, out=Out.EXACT,
    autocast=GPU_WIDEST,
)  # fmt: skip
@gradients(self="grad", src="gather(grad)", saves={"src": "index"})
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Inference:
    """A copy with the elements of ``src`` added at the places along ``dim`` that ``index`` names."""
    need_same_dtype("scatter_add", self, src, "src")
    check_along("scatter_add", self, dim, index, src)
    return new(self.shape, self.dtype, self.device)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@op(
    grad_fn="ScatterReduceBackward0", differentiable=("self", "src"), inplace=True, apart=True,
    keyword_only=("include_self",), along=True, out=Out.EXACT,
)  # fmt: skip
@gradients(
    self=(
        "scatter.ScatterBackward1((u := grad * scatter_reduce((s := masked_fill(self, c)), src) / s"
        " if reduce == 'prod' else (t := grad / c) if reduce == 'mean' else grad if reduce == 'sum'"
        " else c * t), c) if not include_self else u"
    ),
    src=(
        "where((w := gather(grad * scatter_reduce(self, (v := masked_fill(src, c))))), gather(grad * result)"
        " / v) + masked_fill(w * (gather(scatter_add(c, to(v))) - src), c) if reduce == 'prod'"
        " else (x := gather(t)) if reduce == 'mean' else gather(grad) if reduce == 'sum' else c * x"
    ),
    saves="self index src result",
)
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
) -> Inference:
    """A copy in which the elements of ``src`` that ``index`` sends to one place are combined there.

    ``reduce`` is ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``; with ``include_self`` the element
    that was there counts, too. Places that nothing is sent to keep it.
    """
    if reduce not in REDUCTIONS:
        raise ArgumentError(f"scatter_reduce: reduce is {reduce!r}; it must be one of {', '.join(REDUCTIONS)}")
    need_same_dtype("scatter_reduce", self, src, "src")
    if self.dtype.is_complex and reduce not in ("sum", "mean", "prod"):
        raise Unsupported(f"scatter_reduce: {reduce} is not defined for {self.dtype.name}, which has no order")
    check_along("scatter_reduce", self, dim, index, src)
    return new(self.shape, self.dtype, self.device)


# Along one dimension, whole slices


@op(grad_fn="IndexSelectBackward0", differentiable=("self",), linear=True, out=Out.EXACT | Out.APART)
@gradients("index_select_backward(grad)", saves="index")
def index_select(self: Tensor, dim: int, index: Tensor) -> Inference:
    """The slices of ``self`` that a vector of indices names along ``dim``. Negative indices raise."""
    at = canonical_dim(dim, self.ndim)
    length = need_vector("index_select", index)
    need_index("index_select", index)
    need_extent("index_select", self, extent_of(self, at), index, IndexOutOfRange if self.ndim == 1 else ShapeError)
    if not self.shape:
        if length != 1:
            raise ShapeError(f"index_select: a 0-dim tensor has one element, the index names {length}")
        return new((), self.dtype, self.device)
    return new(with_entry(self.shape, at, length), self.dtype, self.device)


def _check_slices(name: str, self: Meta, dim: int, index: Meta, source: Meta) -> None:
    at = canonical_dim(dim, self.ndim)
    length = need_vector(name, index)
    need_same_dtype(name, self, source, "source")
    if source.ndim > 1 or self.ndim > 1 or source.shape:
        expected = with_entry(self.shape, at, length) if self.shape else (length,)
        given = source.shape or (1,)
        if given != expected and UNKNOWN not in (*given, *expected):
            raise ShapeError(
                f"{name}: source has shape {list(source.shape)}, for {length} indices along dimension {at} of {self!r} "
                f"it must be {list(expected)}"
            )


@op(
    grad_fn="IndexAddBackward0", differentiable=("self", "source"), inplace=True, apart=True, keyword_only=("alpha",),
    out=Out.EXACT,
)  # fmt: skip
@gradients(self="grad", source="times_alpha(reshape(index_select(grad)))", saves={"source": "index"})
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Factor = 1) -> Inference:
    """A copy with the slices of ``alpha * source`` added at the indices along ``dim``; repeated ones add up."""
    need_index("index_add", index)
    _check_slices("index_add", self, dim, index, source)
    inferred = new(self.shape, self.dtype, self.device)
    inferred.scratch = PLACE * max(source.numel, 0)
    return inferred


@op(
    grad_fn="IndexCopyBackward0", differentiable=("self", "source"), inplace=True, apart=True, out=Out.EXACT,
    autocast=CPU_WIDEST,
)  # fmt: skip
@gradients(self="index_fill(grad, c)", source="reshape(index_select(grad))", saves={"self": "index", "source": "index"})
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Inference:
    """A copy with the slices of ``source`` written at the indices along ``dim``."""
    need_index("index_copy", index, (int64,))
    _check_slices("index_copy", self, dim, index, source)
    need_extent("index_copy", self, extent_of(self, canonical_dim(dim, self.ndim)), index)
    return new(self.shape, self.dtype, self.device)


@op(
    grad_fn="IndexFillBackward0", differentiable=("self", "value"), inplace=True, apart=True, copied=("value",),
    expanded=Expanded.WARNED,
)  # fmt: skip
@gradients(self="index_fill(grad, c)", value="sum(masked_fill(grad, c))", saves={"self": "index", "value": "index"})
def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor | Element) -> Inference:
    """A copy with the slices at the indices along ``dim`` filled with one number or a 0-dim tensor."""
    at = canonical_dim(dim, self.ndim)
    if index.dtype is not int64:
        raise IndexOutOfRange(f"index_fill: the index must be int64, got {index.dtype.name}")
    if index.ndim > 1:
        raise ShapeError(f"index_fill: the index must be a vector, got shape {list(index.shape)}")
    need_extent("index_fill", self, extent_of(self, at), index)
    if isinstance(value, Meta):
        if value.ndim:
            raise ShapeError(f"index_fill: value must be a number or a 0-dim tensor, got shape {list(value.shape)}")
        return like(self, grad_fn="IndexFillBackward1")
    if value is ScalarKind.COMPLEX and not self.dtype.is_complex:
        raise DTypeError(f"index_fill: a complex number does not fit into a {self.dtype.name} tensor")
    return like(self)


# Flat indices


@op(grad_fn="TakeBackward0", differentiable=("self",), linear=True, out=Out.EXACT | Out.APART)
@gradients("take_backward(grad)", saves="index")
def take(self: Tensor, index: Tensor) -> Inference:
    """The elements that ``index`` names in the flattened tensor, in the shape of ``index``. Negative indices count
    from the end."""
    need_index("take", index, (int64,))
    need_extent("take", self, self.numel, index, IndexOutOfRange)
    return new(index.shape, self.dtype, self.device)


@op(grad_fn="PutBackward0", differentiable=("self", "source"), inplace=True, apart=True)
@gradients(
    self="put(grad, c) if not accumulate else grad",
    source="reshape(take(grad))",
    saves={"self": "index", "source": "index"},
)
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Inference:
    """A copy with ``source`` written to (or added at) the places that ``index`` names in the flattened tensor."""
    need_index("put", index, (int64,))
    need_extent("put", self, self.numel, index, IndexOutOfRange)
    need_same_dtype("put", self, source, "source")
    if index.numel != source.numel and index.known and source.known:
        raise IndexOutOfRange(f"put: {index.numel} indices come with {source.numel} elements")
    return like(self)


# Masks


def need_mask(name: str, mask: Meta) -> None:
    if mask.dtype is not bool_:
        raise DTypeError(f"{name}: the mask must be bool, got {mask.dtype.name}")


@op(grad_fn="MaskedSelectBackward0", differentiable=("self",), dynamic=True, out=Out.EXACT | Out.APART)
@gradients("masked_select_backward(grad)", saves="mask", broadcasts=True)
def masked_select(self: Tensor, mask: Tensor) -> Inference:
    """The elements where the mask is true, as a vector; tensor and mask broadcast."""
    need_mask("masked_select", mask)
    broadcast(self.shape, mask.shape)
    return new((UNKNOWN,), self.dtype, common_device(self, mask))


@op(grad_fn="MaskedScatterBackward0", differentiable=("self", "source"), inplace=True, copied=("mask", "source"))
@gradients(
    self="masked_fill(grad, c)", source="masked_scatter_backward(grad)", saves={"self": "mask", "source": "mask"}
)
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Inference:
    """A copy with the places where the mask is true filled from ``source``, one element after the other."""
    need_mask("masked_scatter", mask)
    need_same_dtype("masked_scatter", self, source, "source")
    return new(broadcast(self.shape, mask.shape), self.dtype, self.device)


@op(dynamic=True, out=Out.EXACT)
def nonzero(self: Tensor) -> Inference:
    """The indices of all elements that are not zero: int64, one row per element, one column per dimension."""
    return new((UNKNOWN, self.ndim), int64, self.device)


@op(keyword_only=("size", "fill_value"))
def nonzero_static(self: Tensor, size: int, fill_value: int = -1) -> Inference:
    """The indices of the first ``size`` elements that are not zero, a row each; rows beyond hold ``fill_value``.
    Unlike that of :func:`nonzero`, the result's shape does not depend on data."""
    if size < 0:
        raise ArgumentError(f"nonzero_static: size {size} is negative")
    return new((size, self.ndim), int64, self.device)


@op(dynamic=True)
def argwhere(self: Tensor) -> Inference:
    """Same as :func:`nonzero`."""
    return new((UNKNOWN, self.ndim), int64, self.device)


# Tables


@op(grad_fn="EmbeddingBackward0", differentiable=("weight",), exposed=("function",), linear=True)
@gradients("embedding_backward(grad)", saves="indices")
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Inference:
    """The rows of a table that integer indices name. The row ``padding_idx`` (-1: none) receives no gradient;
    ``scale_grad_by_freq`` divides each row's gradient by the number of times it was named."""
    if weight.ndim != 2:
        raise ShapeError(f"embedding: the table must be a matrix, got {weight!r}")
    need_index("embedding", indices)
    need_extent("embedding", weight, weight.shape[0], indices)
    return new((*indices.shape, weight.shape[1]), weight.dtype, weight.device)


@op(exposed=("nn.functional",), dynamic=True)
def one_hot(self: Tensor, num_classes: int = -1) -> Inference:
    """Each integer as a vector of ``num_classes`` elements, int64, with a 1 at its place and 0 elsewhere.

    By default there are as many classes as the largest integer needs, so that the shape depends on data.
    """
    if self.dtype is not int64:
        raise DTypeError(f"one_hot takes int64, got {self.dtype.name}")
    if num_classes < 1 and num_classes != -1:
        raise ArgumentError(f"one_hot: num_classes must not be {num_classes}")
    if num_classes == -1 and self.numel == 0:
        raise ArgumentError("one_hot: without integers num_classes must be given")
    return new((*self.shape, num_classes), int64, self.device)


@op(dynamic=True)
def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Inference:
    """How often each of 0, 1, 2, ... occurs in a vector of integers, or the sum of the weights where it does.

    The result has ``max(self) + 1`` elements, at least ``minlength``.
    """
    if self.ndim != 1 or self.dtype.category != INTEGRAL:
        kind = Unsupported if self.ndim == 1 else ShapeError
        raise kind(f"bincount takes a vector of integers, got {self!r}")
    if minlength < 0:
        raise ArgumentError(f"bincount: minlength {minlength} is negative")
    if weights is None:
        return new((UNKNOWN,), int64, self.device)
    if weights.shape != self.shape:
        raise ShapeError(f"bincount: weights have shape {list(weights.shape)}, the tensor {list(self.shape)}")
    return new((UNKNOWN,), float32 if weights.dtype is float32 else float64, self.device)


# Copies with one part replaced


def _replaced(name: str, self: Meta, src: Meta, shape: Shape) -> Inference:
    if src.shape != shape:
        raise ShapeError(f"{name}: src has shape {list(src.shape)}, the part it replaces {list(shape)}")
    return like(self)


@op(grad_fn="SelectScatterBackward0")
@gradients(self="select_scatter(grad, c)", src="select(grad)")
def select_scatter(self: Tensor, src: Tensor, dim: int, index: Position) -> Inference:
    """A copy with ``src`` in the place of ``self.select(dim, index)``."""
    at = canonical_dim(dim, self.ndim)
    if not self.shape:
        raise IndexOutOfRange("select_scatter: a 0-dim tensor has no dimension to select from")
    place_in(self, at, index)
    return _replaced("select_scatter", self, src, with_entry(self.shape, at))


@op(grad_fn="SliceScatterBackward0", out=Out.EXACT)
@gradients(self="slice_scatter(grad, c)", src="slice(grad)")
def slice_scatter(
    self: Tensor, src: Tensor, dim: int = 0, start: Position | None = None, end: Position | None = None, step: int = 1
) -> Inference:
    """A copy with ``src`` in the place of the slice from ``start`` to ``end`` along ``dim``."""
    at = canonical_dim(dim, self.ndim)
    if not self.shape:
        raise IndexOutOfRange("slice_scatter: a 0-dim tensor has no dimension to slice")
    extent = span_in(self.shape[at], start, end, step)[1]
    return _replaced("slice_scatter", self, src, with_entry(self.shape, at, extent))


@op(grad_fn="DiagonalScatterBackward0")
@gradients(self="diagonal_scatter(grad, c)", src="diagonal(grad)")
def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Inference:
    """A copy with ``src`` in the place of ``self.diagonal(offset, dim1, dim2)``."""
    a, b, extent, _ = diagonal_of(self, offset, dim1, dim2)
    kept = [n for i, n in enumerate(self.shape) if i not in (a, b)]
    return _replaced("diagonal_scatter", self, src, (*kept, extent))
