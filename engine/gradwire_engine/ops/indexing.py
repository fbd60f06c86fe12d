"""Kernels and derivatives of reading and writing by index tensors and masks."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from gradwire_protocol.dtypes import bool_
from gradwire_protocol.errors import IndexOutOfRange, KernelError
from gradwire_protocol.shapes import broadcast

from ..autograd.functional import F
from ..autograd.registry import derivative, joint_derivative, kernel, measured
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import at_least_1d
from ..numerics.scatter import (
    add_at,
    add_slices,
    check_range,
    combine_at,
    expand_masks,
    places_along,
    places_of_selection,
    selector,
    wrapped,
    write_at,
)
from ..runtime.arrays import Array, Namespace, Native
from .adjoints import diagonal_of
from .pointwise import fitted

Writer = Callable[..., None]


def writer(name: str) -> Callable[[Writer], Writer]:
    """Register ``f(xp, target, ...)``, which writes into its target, as both forms of an op."""

    def register(write: Writer) -> Writer:
        def copied(xp: Namespace, x: Array, *rest: Any) -> Array:
            target = x.copy(order="K")
            write(xp, target, *rest)
            return target

        kernel(name)(copied)
        kernel(name + "_", writes=True)(write)
        return write

    return register


def write_derivative(name: str, **rules: Any) -> None:
    """Register one derivative for both forms of an op."""
    derivative(name, **rules)
    derivative(name + "_", **rules)


def zeros_for(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    return g.engine.call("zeros", shape, g.dtype, g.device)


# Lists of index tensors


@kernel("index")
def index(xp: Namespace, x: Array, indices: list[Array | None]) -> Array:
    dims, found, _ = expand_masks(xp, indices)
    try:
        if len(found) == 1:
            return xp.take(x, found[0], axis=dims[0])
        return x[selector(x.ndim, dims, found)]
    except IndexError:
        for dim, named in zip(dims, found, strict=True):
            check_range(xp, "index", named, dim, x.shape[dim], IndexOutOfRange, wrap=True)
        raise IndexOutOfRange(f"index: {_shapes(found)} indices cannot be used together") from None


derivative("index", self=("indices", lambda s, g: F.index_backward(g, s.meta("self").shape, s.indices)))


def _shapes(indices: list[Any]) -> str:
    return " and ".join(str(list(index.shape)) for index in indices)


@writer("index_put")
def index_put(xp: Namespace, target: Array, indices: list[Array | None], values: Array, accumulate: bool) -> None:
    dims, found, at = expand_masks(xp, indices)
    if not accumulate:
        try:
            target[selector(target.ndim, dims, found)] = values
        except (IndexError, ValueError):
            for dim, named in zip(dims, found, strict=True):
                check_range(xp, "index_put", named, dim, target.shape[dim], IndexOutOfRange, wrap=True)
            raise KernelError(
                f"index_put: values of shape {list(values.shape)} do not fit what {_shapes(found)} indices select of "
                f"shape {list(target.shape)}"
            ) from None
        return
    for dim, named in zip(dims, found, strict=True):
        check_range(xp, "index_put", named, dim, target.shape[dim], IndexOutOfRange, wrap=True)
    places = places_of_selection(xp, target.shape, dims, found, at)
    try:
        values = xp.broadcast_to(values, places.shape)
    except ValueError as error:
        raise KernelError(f"index_put: {error}") from None
    if 0 in target.strides:
        target, places = _collapsed(target, places)
    add_at(xp, target, places, values)


def _collapsed(target: Any, places: Any) -> tuple[Any, Any]:
    """An expanded array with each of its places in memory once, and what flat places of the whole are in it."""
    kept = [1 if step == 0 else extent for step, extent in zip(target.strides, target.shape, strict=True)]
    collapsed = target[tuple([slice(extent) for extent in kept])]
    at: Any = 0
    for i, extent in enumerate(target.shape):
        if kept[i] > 1:
            at = at + places // prod(target.shape[i + 1 :]) % extent * prod(kept[i + 1 :])
    return collapsed, at + places * 0


write_derivative(
    "index_put",
    self=("indices", lambda s, g: g if s.accumulate else F.index_put(g, s.indices, zeros_for(g, ()), False)),
    values=("indices", lambda s, g: F.index(g, s.indices)),
)


# An index per element along one dimension


def _inside(xp: Namespace, name: str, x: Array, dim: int, index: Array) -> tuple[Any, Any, int]:
    """(array, checked index, axis), all with at least one dimension."""
    x, index = at_least_1d(x), at_least_1d(index)
    axis = dim % x.ndim
    check_range(xp, name, index, axis, x.shape[axis])
    return x, index, axis


@kernel("gather")
def gather(xp: Namespace, x: Array, dim: int, index: Array) -> Array:
    if index.size == 0:
        return xp.empty(index.shape, x.dtype)
    x, index, axis = _inside(xp, "gather", x, dim, index)
    cut = tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))
    return xp.take_along_axis(x[cut], index, axis)


derivative("gather", self=("index", lambda s, g: F.gather_backward(g, s.meta("self").shape, s.dim, s.index)))


@kernel("take_along_dim")
def take_along_dim(xp: Namespace, x: Array, indices: Array, dim: int | None) -> Array:
    if dim is None:
        x, indices, dim = x.reshape(-1), indices.reshape(-1), 0
    x, indices = at_least_1d(x), at_least_1d(indices)
    check_range(xp, "take_along_dim", indices, dim, x.shape[dim], wrap=True)
    return xp.take_along_axis(x, indices, dim)


def _take_along_gradient(s: Saved, g: Tensor) -> Tensor:
    shape = s.meta("self").shape
    if s.dim is None:
        return F.take_backward(g, shape, F.reshape(s.indices, (-1,)))
    if not shape:
        return g
    size, at = list(g.shape), s.dim % g.ndim
    size[at] = shape[at]
    index = F.where(s.indices < 0, s.indices + shape[at], s.indices)
    return F.gather_backward(g, tuple(size), s.dim, F.expand(index, g.shape))


derivative("take_along_dim", self=("indices", _take_along_gradient))


@writer("scatter")
def scatter(xp: Namespace, target: Array, dim: int, index: Array, src: Any) -> None:
    if index.size == 0:
        return
    target, index, axis = _inside(xp, "scatter", target, dim, index)
    write_at(xp, target, places_along(xp, target.shape, axis, index), _matching(xp, src, target, index))


def _matching(xp: Namespace, src: Array, target: Array, index: Array) -> Array:
    """The part of the source that the index speaks of."""
    if not hasattr(src, "shape"):
        return xp.asarray(src, target.dtype)
    return at_least_1d(src)[tuple(slice(n) for n in index.shape)]


write_derivative(
    "scatter",
    self=("index", lambda s, g: F.scatter(g, s.dim, s.index, 0)),
    src=("index", lambda s, g: F.gather(g, s.dim, s.index)),
)


@writer("scatter_add")
def scatter_add(xp: Namespace, target: Array, dim: int, index: Array, src: Array) -> None:
    if index.size == 0:
        return
    target, index, axis = _inside(xp, "scatter_add", target, dim, index)
    add_at(xp, target, places_along(xp, target.shape, axis, index), _matching(xp, src, target, index))


write_derivative("scatter_add", self=lambda s, g: g, src=("index", lambda s, g: F.gather(g, s.dim, s.index)))

_UFUNC = {"prod": "multiply", "amax": "maximum", "amin": "minimum"}


@writer("scatter_reduce")
def scatter_reduce(
    xp: Namespace, target: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool
) -> None:
    if index.size == 0:
        return
    target, index, axis = _inside(xp, "scatter_reduce", target, dim, index)
    places, src = places_along(xp, target.shape, axis, index), _matching(xp, src, target, index)
    narrow = target.dtype.itemsize == 2 and target.dtype.kind not in "iu"
    wide = target.astype(xp.float32) if narrow else target
    if not include_self:
        write_at(xp, wide, places, xp.asarray(_neutral(xp, reduce, wide.dtype)))
    if reduce in _UFUNC:
        combine_at(xp, wide, places, src, _UFUNC[reduce])
    else:
        add_at(xp, wide, places, src)
    if reduce == "mean":
        counts = xp.full(wide.shape, int(include_self), xp.int64)
        add_at(xp, counts, places, xp.ones((), xp.int64))
        counts = xp.maximum(counts, 1)
        if wide.dtype.kind in "biu":
            wide[...] = wide // counts
        else:
            wide /= counts.astype(wide.real.dtype)
    if narrow:
        target[...] = wide.astype(target.dtype)


def _neutral(xp: Namespace, reduce: str, dtype: Native) -> Array | int:
    """What leaves any value as it is when combined with it."""
    if reduce in ("sum", "mean"):
        return dtype.type(0)
    if reduce == "prod":
        return dtype.type(1)
    if dtype.kind == "f":
        return dtype.type(-xp.inf if reduce == "amax" else xp.inf)
    if dtype.kind == "b":
        return dtype.type(reduce == "amin")
    limits = xp.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


def _scatter_reduce_gradient(s: Saved, g: Tensor) -> tuple[Tensor, Tensor]:
    x, dim, at, src, result, reduce = s.self, s.dim, s.index, s.src, s.result, s.reduce

    def added(values: Tensor) -> Tensor:
        return F.scatter_add(zeros_for(g, x.shape), dim, at, F.to(values, g.dtype))

    if reduce == "sum":
        by_self, by_src = g, F.gather(g, dim, at)
    elif reduce == "mean":
        counts = added(F.ones_like(src))
        counts = counts + 1 if s.include_self else F.masked_fill(counts, counts == 0, 1)
        by_self = g / counts
        by_src = F.gather(by_self, dim, at)
    elif reduce == "prod":
        by_self, by_src = _scattered_products(s, g, added)
    else:
        is_self, is_src = x == result, src == F.gather(result, dim, at)
        share = g / (is_self + added(is_src))
        by_self, by_src = is_self * share, is_src * F.gather(share, dim, at)
    if not s.include_self:
        by_self = F.scatter(by_self, dim, at, 0)
    return by_self, by_src


def _scattered_products(s: Saved, g: Tensor, added: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """An element's gradient is the product of the others: found by dividing, or where it is 0, by leaving it out."""
    x, dim, at, src = s.self, s.dim, s.index, s.src

    def product(of: Tensor, sent: Tensor) -> Tensor:
        return F.scatter_reduce(of, dim, at, sent, "prod", s.include_self)

    present = F.masked_fill(x, x == 0, 1)
    by_self = g * product(present, src) / present
    zero = src == 0
    alone = zero & (F.gather(added(zero), dim, at) == 1)
    without = F.gather(g * product(x, F.masked_fill(src, alone, 1)), dim, at)
    divided = F.gather(g * s.result, dim, at) / F.masked_fill(src, zero, 1)
    by_src = F.where(alone, without, divided)
    if g.engine.differentiates:
        # Of two zeros in one place, each has a gradient of 0 that depends on the other.
        paired = zero & (F.gather(added(zero), dim, at) == 2)
        rest = F.gather(g * product(x, F.masked_fill(src, zero, 1)), dim, at)
        other = F.gather(added(F.masked_fill(src, zero == 0, 0)), dim, at) - src
        by_src = by_src + F.masked_fill(rest * other, paired == 0, 0)
    return by_self, by_src


for _name in ("scatter_reduce", "scatter_reduce_"):
    joint_derivative(_name, saves="self index src result")(_scatter_reduce_gradient)


# Whole slices along one dimension


def _slices(dim: int, ndim: int, index: Array) -> tuple[Array | slice, ...]:
    return (slice(None),) * (dim % ndim) + (index.reshape(-1),)


@kernel("index_select")
def index_select(xp: Namespace, x: Array, dim: int, index: Array) -> Array:
    x = at_least_1d(x)
    axis = dim % x.ndim
    # PyTorch's two routines for it raise different classes.
    error = IndexOutOfRange if x.ndim == 1 or (x.size and axis != 1) else KernelError
    check_range(xp, "index_select", index, axis, x.shape[axis], error)
    return xp.take(x, index.reshape(-1), axis=axis)


derivative(
    "index_select", self=("index", lambda s, g: F.index_select_backward(g, s.meta("self").shape, s.dim, s.index))
)


@writer("index_add")
def index_add(xp: Namespace, target: Array, dim: int, index: Array, source: Array, alpha: int) -> None:
    target = at_least_1d(target)
    axis = dim % target.ndim
    check_range(xp, "index_add", index, axis, target.shape[axis])
    source = at_least_1d(source)
    if alpha != 1:
        kind = source.dtype.kind
        source = source & bool(alpha) if kind == "b" else source * fitted(int(alpha) if kind in "iu" else alpha, source)
    add_slices(xp, target, axis, index, source)


write_derivative(
    "index_add",
    self=lambda s, g: g,
    source=("index", lambda s, g: _selected(g, s) if s.alpha == 1 else _selected(g, s) * s.alpha),
)


def _selected(g: Tensor, s: Saved) -> Tensor:
    return F.reshape(F.index_select(g, s.dim, s.index), s.meta("source").shape)


@writer("index_copy")
def index_copy(xp: Namespace, target: Array, dim: int, index: Array, source: Array) -> None:
    target = at_least_1d(target)
    axis = dim % target.ndim
    check_range(xp, "index_copy", index, axis, target.shape[axis], IndexOutOfRange)
    target[_slices(dim, target.ndim, index)] = source


write_derivative(
    "index_copy",
    self=("index", lambda s, g: F.index_fill(g, s.dim, s.index, 0)),
    source=("index", lambda s, g: _selected(g, s)),
)


@writer("index_fill")
def index_fill(xp: Namespace, target: Array, dim: int, index: Array, value: Array | int) -> None:
    target = at_least_1d(target)
    axis = dim % target.ndim
    check_range(xp, "index_fill", index, axis, target.shape[axis], IndexOutOfRange, wrap=True)
    target[_slices(dim, target.ndim, index)] = value


def _fill_gradient(s: Saved, g: Tensor) -> Tensor:
    # An index that is named twice counts once.
    kept = F.index_fill(g.engine.call("ones", g.shape, bool_, g.device), s.dim, s.index, False)
    return F.sum(F.masked_fill(g, kept, 0))


write_derivative(
    "index_fill", self=("index", lambda s, g: F.index_fill(g, s.dim, s.index, 0)), value=("index", _fill_gradient)
)


# Flat indices


@kernel("take")
def take(xp: Namespace, x: Array, index: Array) -> Array:
    check_range(xp, "take", index, 0, x.size, IndexOutOfRange, wrap=True)
    return xp.take(x, index)


derivative("take", self=("index", lambda s, g: F.take_backward(g, s.meta("self").shape, s.index)))


@writer("put")
def put(xp: Namespace, target: Array, index: Array, source: Array, accumulate: bool) -> None:
    check_range(xp, "put", index, 0, target.size, IndexOutOfRange, wrap=True)
    places = wrapped(xp, index, target.size)
    (add_at if accumulate else write_at)(xp, target, places, source.reshape(places.shape))


write_derivative(
    "put",
    self=("index", lambda s, g: g if s.accumulate else F.put(g, s.index, zeros_for(g, s.index.shape))),
    source=("index", lambda s, g: F.reshape(F.take(g, s.index), s.meta("source").shape)),
)


# Masks


@kernel("masked_select")
def masked_select(xp: Namespace, x: Array, mask: Array) -> Array:
    x, mask = xp.broadcast_arrays(x, mask)
    return x[mask]


derivative(
    "masked_select",
    self=("mask", lambda s, g: F.masked_select_backward(g, broadcast(s.meta("self").shape, s.mask.shape), s.mask)),
)


@kernel("masked_scatter")
def masked_scatter(xp: Namespace, x: Array, mask: Array, source: Array) -> Array:
    made = xp.array(xp.broadcast_to(x, broadcast(x.shape, mask.shape)))
    masked_scatter_(xp, made, mask, source)
    return made


@kernel("masked_scatter_", writes=True)
def masked_scatter_(xp: Namespace, target: Array, mask: Array, source: Array) -> None:
    mask = xp.broadcast_to(mask, target.shape)
    wanted = int(mask.sum())
    if wanted > source.size:
        raise KernelError(f"masked_scatter: the mask has {wanted} true elements, source only {source.size}")
    target[mask] = source.reshape(-1)[:wanted]


write_derivative(
    "masked_scatter",
    self=("mask", lambda s, g: F.masked_fill(g, s.mask, 0)),
    source=("mask", lambda s, g: F.masked_scatter_backward(g, s.meta("source").shape, s.mask)),
)


@measured("nonzero", "argwhere")
def _found(xp: Namespace, x: Array) -> tuple[int, int]:
    return 2 * 8 * x.ndim * int(xp.count_nonzero(x)), 0  # one array for each dimension, and all of them together


@measured("nonzero_static")
def _found_at_most(xp: Namespace, x: Array, size: int, fill_value: int) -> tuple[int, int]:
    return _found(xp, x)


@kernel("nonzero", "argwhere")
def nonzero(xp: Namespace, x: Array) -> Array:
    if x.ndim == 0:
        return xp.zeros((int(x != 0), 0), xp.int64)
    return xp.stack(xp.nonzero(x), axis=-1)


@kernel("nonzero_static")
def nonzero_static(xp: Namespace, x: Array, size: int, fill_value: int) -> Array:
    found = nonzero(xp, x)[:size]
    rows = xp.full((size, x.ndim), fill_value, xp.int64)
    rows[: found.shape[0]] = found
    return rows


# Tables


@kernel("embedding")
def embedding(xp: Namespace, weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    check_range(xp, "embedding", indices, 0, weight.shape[0], IndexOutOfRange)
    return xp.take(weight, indices, axis=0)


derivative(
    "embedding",
    weight=(
        "indices",
        lambda s, g: F.embedding_backward(g, s.indices, s.meta("weight").shape[0], s.padding_idx, s.scale_grad_by_freq),
    ),
)


@measured("one_hot")
def _classes(xp: Namespace, x: Array, num_classes: int) -> tuple[int, int]:
    return (8 * x.size * (int(x.max()) + 1) if num_classes == -1 and x.size else 0), 0


@kernel("one_hot")
def one_hot(xp: Namespace, x: Array, num_classes: int) -> Array:
    if num_classes == -1:
        if x.size == 0:
            raise KernelError("one_hot: without integers num_classes must be given")
        num_classes = int(x.max()) + 1
    check_range(xp, "one_hot", x, 0, num_classes)
    made = xp.zeros((x.size, num_classes), xp.int64)
    made[xp.arange(x.size), x.reshape(-1)] = 1
    return made.reshape((*x.shape, num_classes))


@measured("bincount")
def _bins(xp: Namespace, x: Array, weights: Array | None, minlength: int) -> tuple[int, int]:
    return 8 * max(int(x.max()) + 1 if x.size else 0, minlength), 0


@kernel("bincount")
def bincount(xp: Namespace, x: Array, weights: Array | None, minlength: int) -> Array:
    if x.size and int(x.min()) < 0:
        raise KernelError("bincount: the integers must not be negative")
    if weights is not None and weights.dtype.kind == "c":
        weights = weights.real
    return xp.bincount(x, weights, minlength)


# Copies with one part replaced


@kernel("select_scatter")
def select_scatter(xp: Namespace, x: Array, src: Array, dim: int, index: int) -> Array:
    made = x.copy(order="K")
    made[(slice(None),) * (dim % x.ndim) + (index,)] = src
    return made


@joint_derivative("select_scatter")
def _(s: Saved, g: Tensor) -> tuple[Tensor, Tensor]:
    part = s.meta("src").shape
    return F.select_scatter(g, zeros_for(g, part), s.dim, s.index), F.select(g, s.dim, s.index)


@kernel("slice_scatter")
def slice_scatter(
    xp: Namespace, x: Array, src: Array, dim: int, start: int | None, end: int | None, step: int
) -> Array:
    made = x.copy(order="K")
    made[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)] = src
    return made


@joint_derivative("slice_scatter")
def _(s: Saved, g: Tensor) -> tuple[Tensor, Tensor]:
    place = (s.dim, s.start, s.end, s.step)
    return F.slice_scatter(g, zeros_for(g, s.meta("src").shape), *place), F.slice(g, *place)


@kernel("diagonal_scatter")
def diagonal_scatter(xp: Namespace, x: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    made = x.copy(order="K")
    matrices, key = diagonal_of(xp, made, offset, dim1, dim2)
    matrices[key] = src
    return made


@joint_derivative("diagonal_scatter")
def _(s: Saved, g: Tensor) -> tuple[Tensor, Tensor]:
    place = (s.offset, s.dim1, s.dim2)
    return F.diagonal_scatter(g, zeros_for(g, s.meta("src").shape), *place), F.diagonal(g, *place)
