"""Reductions and scans: kernels and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf
from typing import Any

from gradwire_protocol.dtypes import int64
from gradwire_protocol.errors import KernelError
from gradwire_protocol.meta import Meta
from gradwire_protocol.shapes import canonical_dims, reduced_shape

from ..axes import along, at_least_1d, axes_of, count, extreme, flipped, order, recurrence, running, total, waits
from ..functional import F, conj
from ..registry import derivative, joint_derivative, kernel
from ..tensor import Tensor

# How gradients get back to the shape from before a reduction


def restored(g: Tensor, self: Meta, dim: Any, keepdim: bool) -> Any:
    """A reduced tensor with its lost dimensions as extents of 1, so that it broadcasts against the operand."""
    if keepdim or dim is None or dim == () or g.ndim == self.ndim:
        return g
    return F.reshape(g, reduced_shape(self.shape, canonical_dims(dim, self.ndim), True))


def spread(g: Tensor, self: Meta, dim: Any, keepdim: bool) -> Any:
    """A reduced tensor expanded to the shape of the operand."""
    return F.expand(restored(g, self, dim, keepdim), self.shape)


def elements(self: Meta, dim: Any) -> int:
    """How many elements of the operand go into one of the result."""
    n = 1
    for d in canonical_dims(dim, self.ndim) if self.ndim else ():
        n *= self.shape[d]
    return n


def shared(s: Any, g: Tensor, result: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The gradient of an extreme, split equally among the elements that equal it."""
    x, kept = s.self, restored(result, s.self.meta, dim, keepdim)
    equal = x == kept
    return restored(g, x.meta, dim, keepdim) * equal / F.sum(equal, dim, True)


def shared_with_nan(s: Any, g: Tensor) -> Any:
    """Like :func:`shared` for a full reduction whose result may be NaN: then the NaNs share."""
    x, result = s.self, s.result
    equal = (x == result) | (F.isnan(x) & F.isnan(result))
    return equal * (g / F.sum(equal))


def to_chosen(s: Any, g: Tensor, index: Tensor) -> Any:
    """The gradient of one chosen element per row, at its place, zero elsewhere."""
    self = s.meta("self")
    g, index = restored(g, self, s.dim, s.keepdim), restored(index, self, s.dim, s.keepdim)
    return F.gather_backward(g, self.shape, s.dim, index, True)


# Sums and moments


@kernel("sum")
def sum(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if x.dtype.kind in "biu":
        return xp.sum(x, axis=axes_of(x, dim), dtype=xp.int64)
    return total(xp, x, axes_of(x, dim))


derivative("sum", self=lambda s, g: spread(g, s.meta("self"), s.dim, s.keepdim))


@kernel("nansum")
def nansum(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if x.dtype.kind == "f":
        x = xp.where(xp.isnan(x), x.dtype.type(0), x)
    return sum(xp, x, dim, keepdim, dtype)


derivative("nansum", self=("self", lambda s, g: spread(g, s.self.meta, s.dim, s.keepdim) * ~F.isnan(s.self)))


@kernel("mean")
def mean(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    axes = axes_of(x, dim)
    return xp.divide(total(xp, x, axes), x.dtype.type(count(x, axes)))


def _mean_gradient(s: Any, g: Tensor) -> Any:
    self = s.meta("self")
    return spread(g / (elements(self, s.dim) or 1), self, s.dim, s.keepdim)


derivative("mean", self=_mean_gradient)


@kernel("nanmean")
def nanmean(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    axes, present = axes_of(x, dim), ~xp.isnan(x)
    summed = total(xp, xp.where(present, x, x.dtype.type(0)), axes)
    return xp.divide(summed, xp.sum(present, axis=axes).astype(x.dtype))


def _nanmean_gradient(s: Any, g: Tensor) -> Any:
    present = ~F.isnan(s.self)
    return restored(g, s.self.meta, s.dim, s.keepdim) / F.sum(present, s.dim, True) * present


derivative("nanmean", self=("self", _nanmean_gradient))


def _moments(xp: Any, x: Any, dim: Any, correction: float) -> tuple[Any, Any]:
    """(variance, mean), with the reduced axes kept."""
    axes = axes_of(x, dim)
    n = count(x, axes)
    centre = xp.divide(total(xp, x, axes, True), x.dtype.type(n))
    distance = x - centre
    if x.dtype.kind == "c":
        distance = distance.real * distance.real + distance.imag * distance.imag
    else:
        distance *= distance
    left = n - correction
    return xp.divide(total(xp, distance, axes, True), distance.dtype.type(left if left > 0 else 0)), centre


@kernel("var")
def var(xp: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    return _moments(xp, x, dim, correction)[0]


@kernel("std")
def std(xp: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    return xp.sqrt(_moments(xp, x, dim, correction)[0])


@kernel("var_mean")
def var_mean(xp: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    return _moments(xp, x, dim, correction)


@kernel("std_mean")
def std_mean(xp: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    spread_, centre = _moments(xp, x, dim, correction)
    return xp.sqrt(spread_), centre


def _var_gradient(s: Any, g: Tensor) -> Any:
    x = s.self
    left = elements(x.meta, s.dim) - s.correction
    distance = x - F.mean(x, s.dim, True)
    g = restored(g, x.meta, s.dim, s.keepdim)
    return g * (2 / left) * distance if left > 0 else g * (inf * distance)


def _std_gradient(s: Any, g: Tensor, result: Tensor) -> Any:
    return _var_gradient(s, F.masked_fill(g / (result * 2), result == 0, 0))


derivative("var", self=("self", _var_gradient))
derivative("std", self=("self result", lambda s, g: _std_gradient(s, g, s.result)))


@joint_derivative("var_mean", saves="self", undefined=True)
def _(s: Any, spread_: Tensor | None, centre: Tensor | None) -> Any:
    first = None if spread_ is None else _var_gradient(s, spread_)
    second = None if centre is None else _mean_gradient(s, centre)
    return second if first is None else first if second is None else first + second


@joint_derivative("std_mean", saves="self result0", undefined=True)
def _(s: Any, spread_: Tensor | None, centre: Tensor | None) -> Any:
    first = None if spread_ is None else _std_gradient(s, spread_, s.result0)
    second = None if centre is None else _mean_gradient(s, centre)
    return second if first is None else first if second is None else first + second


@kernel("prod")
def prod(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return xp.prod(x, axis=axes_of(x, dim), dtype=xp.int64 if x.dtype.kind in "biu" else None)


def product_of_others(x: Tensor, dim: int) -> Any:
    """For each element the product of all others along ``dim``, without dividing by it."""
    before = F.shift(F.cumprod(x, dim), dim, 1, 1)
    after = F.flip(F.shift(F.cumprod(F.flip(x, (dim,)), dim), dim, 1, 1), (dim,))
    return before * after


def _prod_gradient(s: Any, g: Tensor) -> Any:
    x = s.self
    if x.ndim == 0:
        return g
    if s.dim is None:
        others: Tensor = F.reshape(product_of_others(F.reshape(x, (-1,)), 0), x.shape) if x.numel else x
    else:
        others = product_of_others(x, s.dim)
    return restored(g, x.meta, s.dim, s.keepdim) * conj(others)


derivative("prod", self=("self", _prod_gradient))


@kernel("norm")
def norm(xp: Any, x: Any, p: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    axes = axes_of(x, dim)
    if p == 2:
        squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
        return xp.sqrt(total(xp, squares, axes))
    if p == 0:
        return xp.sum(x != 0, axis=axes)
    size = xp.abs(x)
    if p == 1:
        return total(xp, size, axes)
    if (isinf(p) or p < 0) and x.size == 0 and all(n for i, n in enumerate(x.shape) if i not in axes):
        raise KernelError(f"norm: the {p} norm of no elements is not defined")
    if isinf(p):
        return extreme(xp, size, axes, largest=p > 0)
    return total(xp, size**p, axes) ** (1 / p)


def _norm_gradient(s: Any, g: Tensor) -> Any:
    x, p = s.self, s.p
    g, result = restored(g, x.meta, s.dim, s.keepdim), restored(s.result, x.meta, s.dim, s.keepdim)
    if p == 0:
        return F.zeros_like(x)
    if p == 1:
        return F.sgn(x) * g
    none = result == 0
    if p == 2:
        return x * F.masked_fill(g / F.masked_fill(result, none, 1), none, 0)
    if isinf(p):
        size = F.abs(x)
        equal = (size == result) | (F.isnan(x) & F.isnan(result))
        return F.sgn(x) * F.masked_fill(g / F.sum(equal, s.dim, True), ~equal, 0)
    if p < 1:
        return F.sgn(x) * F.masked_fill(F.abs(x) ** (p - 1), x == 0, 0) * g * result ** (1 - p)
    scale = F.masked_fill(g / F.masked_fill(result, none, 1) ** (p - 1), none, 0)
    if p < 2:
        return F.sgn(x) * F.abs(x) ** (p - 1) * scale
    return x * F.abs(x) ** (p - 2) * scale


derivative("norm", self=("self result", _norm_gradient))


@kernel("count_nonzero")
def count_nonzero(xp: Any, x: Any, dim: Any) -> Any:
    return xp.sum(x != 0, axis=axes_of(x, dim))


# Choosing an element

for _name, _largest in (("max", True), ("min", False), ("amax", True), ("amin", False)):

    @kernel(_name)
    def _(xp: Any, x: Any, dim: Any = None, keepdim: bool = False, largest: bool = _largest) -> Any:
        return extreme(xp, x, axes_of(x, dim), largest=largest)


derivative("max", self=("self result", shared_with_nan))
derivative("min", self=("self result", shared_with_nan))
derivative("amax", self=("self result", lambda s, g: shared(s, g, s.result, s.dim, s.keepdim)))
derivative("amin", self=("self result", lambda s, g: shared(s, g, s.result, s.dim, s.keepdim)))


def _with_index(xp: Any, x: Any, index: Any, dim: int) -> tuple[Any, Any]:
    """(elements at the index, the index), given with its axis kept."""
    return xp.take_along_axis(x, index, dim), index


for _name, _find in (("max_dim", "argmax"), ("min_dim", "argmin")):

    @kernel(_name)
    def _(xp: Any, x: Any, dim: int, keepdim: bool, find: str = _find) -> Any:
        x = at_least_1d(x)
        index = getattr(xp, find)(x, axis=dim)
        return _with_index(xp, x, xp.expand_dims(index, dim), dim)


for _name in ("max_dim", "min_dim", "median_dim", "nanmedian_dim", "mode", "kthvalue"):
    derivative(_name, self=("result1", lambda s, g, _: to_chosen(s, g, s.result1)))


@kernel("aminmax")
def aminmax(xp: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    axes = axes_of(x, dim)
    return extreme(xp, x, axes, largest=False), extreme(xp, x, axes)


@joint_derivative("aminmax", saves="self result0 result1", undefined=True)
def _(s: Any, low: Tensor | None, high: Tensor | None) -> Any:
    first = None if low is None else shared(s, low, s.result0, s.dim, s.keepdim)
    second = None if high is None else shared(s, high, s.result1, s.dim, s.keepdim)
    return second if first is None else first if second is None else first + second


for _name in ("argmax", "argmin"):

    @kernel(_name)
    def _(xp: Any, x: Any, dim: int | None, keepdim: bool, find: str = _name) -> Any:
        return getattr(xp, find)(at_least_1d(x), axis=dim)


for _name in ("all", "any"):

    @kernel(_name)
    def _(xp: Any, x: Any, dim: Any, keepdim: bool, find: str = _name) -> Any:
        return getattr(xp, find)(x, axis=() if dim == () else axes_of(x, dim))


# Order statistics


def _undefined(xp: Any, x: Any) -> Any:
    """Where values are NaN; integers never are."""
    return xp.isnan(x) if x.dtype.kind == "f" else xp.zeros(x.shape, bool)


@kernel("median")
def median(xp: Any, x: Any) -> Any:
    if x.size == 0:
        return xp.full((), xp.nan if x.dtype.kind == "f" else xp.iinfo(x.dtype).min, x.dtype)
    flat = x.reshape(-1)
    middle = (flat.size - 1) // 2
    found = xp.partition(flat, middle)[middle]
    return xp.where(_undefined(xp, x).any(), xp.nan, found) if x.dtype.kind == "f" else found


@kernel("nanmedian")
def nanmedian(xp: Any, x: Any) -> Any:
    if x.size == 0:
        return median(xp, x)
    flat = xp.sort(x.reshape(-1))
    return flat[((~_undefined(xp, flat)).sum() - 1) // 2]


derivative("median", self=("self result", shared_with_nan))
derivative("nanmedian", self=("self result", shared_with_nan))


def _ranked(xp: Any, x: Any, k: int, dim: int) -> Any:
    """Index of the k-th smallest element along an axis, that axis kept."""
    return xp.argpartition(x, k, axis=dim)[along(x, dim, k, k + 1)]


@kernel("median_dim")
def median_dim(xp: Any, x: Any, dim: int, keepdim: bool) -> Any:
    x = at_least_1d(x)
    index = _ranked(xp, x, (x.shape[dim] - 1) // 2, dim)
    if x.dtype.kind == "f":
        missing = xp.isnan(x)
        first = xp.expand_dims(missing.argmax(axis=dim), dim)
        index = xp.where(missing.any(axis=dim, keepdims=True), first, index)
    return _with_index(xp, x, index, dim)


@kernel("nanmedian_dim")
def nanmedian_dim(xp: Any, x: Any, dim: int, keepdim: bool) -> Any:
    x = at_least_1d(x)
    present = (~_undefined(xp, x)).sum(axis=dim, keepdims=True)
    middle = xp.maximum((present - 1) // 2, 0)
    return _with_index(xp, x, xp.take_along_axis(order(xp, x, dim), middle, dim), dim)


@kernel("kthvalue")
def kthvalue(xp: Any, x: Any, k: int, dim: int, keepdim: bool) -> Any:
    x = at_least_1d(x)
    return _with_index(xp, x, _ranked(xp, x, k - 1, dim), dim)


@kernel("mode")
def mode(xp: Any, x: Any, dim: int, keepdim: bool) -> Any:
    x = at_least_1d(x)
    by_value = order(xp, x, dim)
    ordered = xp.take_along_axis(x, by_value, dim)
    n = x.shape[dim]
    place = xp.arange(n).reshape([n if i == dim % x.ndim else 1 for i in range(x.ndim)])
    begins = xp.ones(x.shape, bool)
    begins[along(x, dim, 1)] = ordered[along(x, dim, 1)] != ordered[along(x, dim, None, -1)]
    run = place - running(xp, "maximum", xp.where(begins, place, 0), dim)
    longest = xp.expand_dims(run.argmax(axis=dim), dim)
    return _with_index(xp, x, xp.take_along_axis(by_value, longest, dim), dim)


def _quantile(xp: Any, x: Any, q: Any, dim: int | None, interpolation: str, skip_nan: bool) -> Any:
    q = xp.asarray(q, x.dtype)
    if not waits(xp) and not bool(((q >= 0) & (q <= 1)).all()):
        raise KernelError("quantile: q must lie in [0, 1]")
    rows = x.reshape(-1) if dim is None else xp.moveaxis(at_least_1d(x), dim, -1)
    ordered, missing = xp.sort(rows, axis=-1), xp.isnan(rows)
    if skip_nan:
        present = (~missing).sum(axis=-1, keepdims=True)
        rank = q.reshape(-1) * xp.maximum(present - 1, 0).astype(x.dtype)
    else:
        last = x.dtype.type(rows.shape[-1] - 1)
        rank = xp.where(missing.any(axis=-1, keepdims=True), last, q.reshape(-1) * last)
    rounded = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.rint}.get(interpolation)
    if rounded is not None:
        found = xp.take_along_axis(ordered, rounded(rank).astype(xp.int64), -1)
    else:
        below, above = (xp.take_along_axis(ordered, f(rank).astype(xp.int64), -1) for f in (xp.floor, xp.ceil))
        weight = 0.5 if interpolation == "midpoint" else rank - xp.floor(rank)
        found = below + weight * (above - below)
    return xp.moveaxis(found, -1, 0) if q.ndim else found


@kernel("quantile")
def quantile(xp: Any, x: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
    return _quantile(xp, x, q, dim, interpolation, skip_nan=False)


@kernel("nanquantile")
def nanquantile(xp: Any, x: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
    return _quantile(xp, x, q, dim, interpolation, skip_nan=True)


def _quantile_gradient(s: Any, g: Tensor, skip_nan: bool) -> Any:
    """The gradient goes to the two elements around each rank, by their weights; and along the slope to ``q``."""
    x, q, dim = s.self, s.q, s.dim
    q_is_tensor = isinstance(q, Tensor)
    if not q_is_tensor:
        q = g.engine.call("full", (1,), q, x.dtype, x.device)
    rows = F.reshape(x, (-1,)) if dim is None or x.ndim == 0 else F.movedim(x, dim, -1)
    missing, q_vector = F.isnan(rows), F.reshape(q, (-1,))
    if skip_nan:
        last = F.clamp(F.sum(~missing, -1, True) - 1, 0)
        rank = q_vector * last
    else:
        last = rows.shape[-1] - 1
        rank = F.where(F.any(missing, -1, True), last, q_vector * last)
    places = (*rows.shape[:-1], q_vector.shape[0])
    rank = F.expand(rank, places)
    g = F.reshape(F.movedim(g, 0, -1) if q.ndim and q_is_tensor else g, places)
    order = F.argsort(rows, -1)

    def element(place: Tensor) -> Any:
        return F.gather(order, -1, F.to(place, int64))

    def to_rows(share: Tensor, at: Tensor) -> Any:
        return F.gather_backward(share, rows.shape, -1, at)

    rounded = {"lower": F.floor, "higher": F.ceil, "nearest": F.round}.get(s.interpolation)
    by_q = None
    if rounded is not None:
        by_rows = to_rows(g, element(rounded(rank)))
    else:
        below, above = element(F.floor(rank)), element(F.ceil(rank))
        weight = 0.5 if s.interpolation == "midpoint" else rank - F.floor(rank)
        by_rows = to_rows(g * (1 - weight), below) + to_rows(g * weight, above)
        if s.needs("q") and s.interpolation == "linear":
            slope = g * (F.gather(rows, -1, above) - F.gather(rows, -1, below)) * last
            by_q = F.reshape(F.sum_to_size(slope, q_vector.shape), q.shape)
    by_self = F.reshape(by_rows, x.shape) if dim is None or x.ndim == 0 else F.movedim(by_rows, -1, dim)
    return by_self, by_q


joint_derivative("quantile", saves="self q")(lambda s, g: _quantile_gradient(s, g, skip_nan=False))
joint_derivative("nanquantile", saves="self q")(lambda s, g: _quantile_gradient(s, g, skip_nan=True))


# Scans


def _scan(name: str) -> Callable[..., Any]:
    def scan(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
        return getattr(xp, name)(at_least_1d(x), axis=dim, dtype=xp.int64 if x.dtype.kind in "biu" else None)

    return scan


kernel("cumsum")(_scan("cumsum"))
kernel("cumprod")(_scan("cumprod"))


def from_the_end(g: Tensor, dim: int) -> Any:
    """Running sums that begin at the last element."""
    return F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,))


derivative("cumsum", self=lambda s, g: from_the_end(g, s.dim) if g.ndim else g)


def _cumprod_gradient(s: Any, g: Tensor) -> Any:
    if g.ndim == 0:
        return g
    later = F.linear_recurrence(conj(F.shift(s.self, s.dim, -1)), g, s.dim, True)
    return conj(F.shift(s.result, s.dim, 1, 1)) * later


derivative("cumprod", self=("self result", _cumprod_gradient))


@kernel("logcumsumexp")
def logcumsumexp(xp: Any, x: Any, dim: int) -> Any:
    return running(xp, "logaddexp", at_least_1d(x), dim)


def _logcumsumexp_gradient(s: Any, g: Tensor) -> Any:
    x, y = s.self, s.result
    if g.ndim == 0:
        return g
    decay = F.exp(y - F.shift(y, s.dim, -1, inf))
    return F.exp(x - y) * F.linear_recurrence(decay, g, s.dim, True)


derivative("logcumsumexp", self=("self result", _logcumsumexp_gradient))

for _name, _combine in (("cummax", "maximum"), ("cummin", "minimum")):

    @kernel(_name)
    def _(xp: Any, x: Any, dim: int, combine: str = _combine) -> Any:
        x = at_least_1d(x)
        values = running(xp, combine, x, dim)
        n = x.shape[dim]
        place = xp.arange(n).reshape([n if i == dim % x.ndim else 1 for i in range(x.ndim)])
        reached = (x == values) | _undefined(xp, x)
        return values, running(xp, "maximum", xp.where(reached, place, 0), dim)

    derivative(
        _name, self=("result1", lambda s, g, _: F.gather_backward(g, s.meta("self").shape, s.dim, s.result1, False))
    )


# Sums of exponentials


@kernel("logsumexp")
def logsumexp(xp: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    axes = axes_of(x, dim)
    if count(x, axes) == 0:
        return xp.log(xp.sum(x, axis=axes))
    top = extreme(xp, x.real if x.dtype.kind == "c" else x, axes, True)
    top = xp.where(xp.isinf(top), top.dtype.type(0), top)
    return xp.log(total(xp, xp.exp(x - top), axes, True)) + top


derivative(
    "logsumexp",
    self=(
        "self result",
        lambda s, g: restored(g, s.self.meta, s.dim, s.keepdim)
        * conj(F.exp(s.self - restored(s.result, s.self.meta, s.dim, s.keepdim))),
    ),
)


@kernel("softmax")
def softmax(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
    x = at_least_1d(x)
    if x.size == 0:
        return x.copy()
    axes = axes_of(x, dim)
    weight = x - extreme(xp, x, axes, True)
    xp.exp(weight, out=weight)
    weight /= total(xp, weight, axes, True)
    return weight


@kernel("log_softmax")
def log_softmax(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
    x = at_least_1d(x)
    if x.size == 0:
        return x.copy()
    axes = axes_of(x, dim)
    shifted = x - extreme(xp, x, axes, True)
    shifted -= xp.log(total(xp, xp.exp(shifted), axes, True))
    return shifted


derivative("softmax", self=("result", lambda s, g: F.softmax_backward(g, s.result, s.dim)))
derivative("log_softmax", self=("result", lambda s, g: F.log_softmax_backward(g, s.result, s.dim)))


@kernel("softmax_backward")
def softmax_backward(xp: Any, g: Any, output: Any, dim: int) -> Any:
    g, output = at_least_1d(g), at_least_1d(output)
    product = g * output
    product -= output * total(xp, product, axes_of(product, dim), True)
    return product


@kernel("log_softmax_backward")
def log_softmax_backward(xp: Any, g: Any, output: Any, dim: int) -> Any:
    g, output = at_least_1d(g), at_least_1d(output)
    weight = xp.exp(output)
    weight *= total(xp, g, axes_of(g, dim), True)
    return xp.subtract(g, weight, out=weight)


derivative(
    "softmax_backward",
    grad=("output", lambda s, h: F.softmax_backward(h, s.output, s.dim)),
    output=(
        "grad output",
        lambda s, h: h * (s.grad - F.sum(s.grad * s.output, s.dim, True)) - s.grad * F.sum(h * s.output, s.dim, True),
    ),
)
derivative(
    "log_softmax_backward",
    grad=("output", lambda s, h: h - F.sum(h * F.exp(s.output), s.dim, True)),
    output=("grad output", lambda s, h: -(h * F.exp(s.output) * F.sum(s.grad, s.dim, True))),
)


# Primitives


@kernel("shift", half=True)
def shift(xp: Any, x: Any, dim: int, by: int, fill: Any) -> Any:
    moved = xp.full_like(x, fill)
    if abs(by) < x.shape[dim]:
        to, source = (by, None), (None, -by)
        if by < 0:
            to, source = (None, by), (-by, None)
        moved[along(x, dim, *to)] = x[along(x, dim, *source)]
    return moved


derivative("shift", self=lambda s, g: F.shift(g, s.dim, -s.by))


@kernel("linear_recurrence")
def linear_recurrence(xp: Any, factor: Any, term: Any, dim: int, reverse: bool) -> Any:
    if reverse:
        return flipped(recurrence(xp, flipped(factor, dim), flipped(term, dim), dim), dim)
    return recurrence(xp, factor, term, dim)


@joint_derivative("linear_recurrence", saves="factor result")
def _(s: Any, g: Tensor) -> Any:
    step = 1 if s.reverse else -1
    by_term = F.linear_recurrence(conj(F.shift(s.factor, s.dim, step)), g, s.dim, not s.reverse)
    by_factor = by_term * conj(F.shift(s.result, s.dim, -step)) if s.needs("factor") else None
    return by_factor, by_term
