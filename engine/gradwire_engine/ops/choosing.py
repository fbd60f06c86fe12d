"""Kernels and derivatives of reductions that choose an element."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.dtypes import int64
from gradwire_protocol.errors import KernelError

from ..autograd.functional import F
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import along, at_least_1d, axes_of, extreme, order, place_of_extreme, running, undefined, waits
from ..runtime.arrays import Array, Namespace
from .reduction import restored

# To whom the gradient goes


def shared(
    s: Saved, g: Tensor, result: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False
) -> Tensor:
    """The gradient of an extreme, split equally among the elements that equal it."""
    x, kept = s.self, restored(result, s.self.meta, dim, keepdim)
    equal = x == kept
    return restored(g, x.meta, dim, keepdim) * equal / F.sum(equal, dim, True)


def shared_with_nan(s: Saved, g: Tensor) -> Tensor:
    """Like :func:`shared` for a full reduction whose result may be NaN: then the NaNs share."""
    x, result = s.self, s.result
    equal = (x == result) | (F.isnan(x) & F.isnan(result))
    return equal * (g / F.sum(equal))


def to_chosen(s: Saved, g: Tensor, index: Tensor) -> Tensor:
    """The gradient of one chosen element per row, at its place, zero elsewhere."""
    self = s.meta("self")
    g, index = restored(g, self, s.dim, s.keepdim), restored(index, self, s.dim, s.keepdim)
    return F.gather_backward(g, self.shape, s.dim, index, True)


# Extremes

for _name, _largest in (("max", True), ("min", False), ("amax", True), ("amin", False)):

    @kernel(_name)
    def _(
        xp: Namespace, x: Array, dim: int | tuple[int, ...] | None = None, keepdim: bool = False,
        largest: bool = _largest,
    ) -> Any:  # fmt: skip
        return extreme(xp, x, axes_of(x, dim), largest=largest)


derivative("max", self=("self result", shared_with_nan))
derivative("min", self=("self result", shared_with_nan))
derivative("amax", self=("self result", lambda s, g: shared(s, g, s.result, s.dim, s.keepdim)))
derivative("amin", self=("self result", lambda s, g: shared(s, g, s.result, s.dim, s.keepdim)))


def _with_index(xp: Namespace, x: Array, index: Array, dim: int) -> tuple[Array, Array]:
    """(elements at the index, the index), given with its axis kept."""
    return xp.take_along_axis(x, index, dim), index


for _name in ("max_dim", "min_dim"):

    @kernel(_name)
    def _(xp: Any, x: Any, dim: int, keepdim: bool, largest: bool = _name == "max_dim") -> Any:
        x = at_least_1d(x)
        index = place_of_extreme(xp, x, dim, largest)
        return _with_index(xp, x, xp.expand_dims(index, dim), dim)


for _name in ("max_dim", "min_dim", "median_dim", "nanmedian_dim", "mode", "kthvalue"):
    derivative(_name, self=("result1", lambda s, g, _: to_chosen(s, g, s.result1)))


@kernel("aminmax")
def aminmax(xp: Namespace, x: Array, dim: int | None, keepdim: bool) -> tuple[Array, Array]:
    axes = axes_of(x, dim)
    return extreme(xp, x, axes, largest=False), extreme(xp, x, axes)


@joint_derivative("aminmax", saves="self result0 result1", undefined=True)
def _(s: Saved, low: Tensor | None, high: Tensor | None) -> Any:
    first = None if low is None else shared(s, low, s.result0, s.dim, s.keepdim)
    second = None if high is None else shared(s, high, s.result1, s.dim, s.keepdim)
    return second if first is None else first if second is None else first + second


for _name in ("argmax", "argmin"):

    @kernel(_name)
    def _(xp: Any, x: Any, dim: int | None, keepdim: bool, largest: bool = _name == "argmax") -> Any:
        return place_of_extreme(xp, at_least_1d(x), dim, largest)


# Order statistics


@kernel("median")
def median(xp: Namespace, x: Array) -> Array:
    if x.size == 0:
        # As a NaN is cast on most processors: to the least int32 or int64, of which a narrower integer keeps the end.
        if x.dtype.kind == "f":
            return xp.full((), xp.nan, x.dtype)
        return xp.full((), xp.iinfo(x.dtype).min if x.dtype.itemsize >= 4 else 0, x.dtype)
    flat = x.reshape(-1)
    middle = (flat.size - 1) // 2
    found = xp.partition(flat, middle)[middle]
    return xp.where(undefined(xp, x).any(), xp.nan, found) if x.dtype.kind == "f" else found


@kernel("nanmedian")
def nanmedian(xp: Namespace, x: Array) -> Array:
    if x.size == 0:
        return median(xp, x)
    flat = xp.sort(x.reshape(-1))
    return flat[((~undefined(xp, flat)).sum() - 1) // 2]


derivative("median", self=("self result", shared_with_nan))
derivative("nanmedian", self=("self result", shared_with_nan))


def _ranked(xp: Namespace, x: Array, k: int, dim: int) -> Array:
    """Index of the k-th smallest element along an axis, that axis kept."""
    return xp.argpartition(x, k, axis=dim)[along(x, dim, k, k + 1)]


@kernel("median_dim")
def median_dim(xp: Namespace, x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    x = at_least_1d(x)
    middle = (x.shape[dim] - 1) // 2
    index = order(xp, x, dim)[along(x, dim, middle, middle + 1)]  # of equal elements, PyTorch counts the earlier first
    if x.dtype.kind == "f":
        missing = xp.isnan(x)
        first = xp.expand_dims(missing.argmax(axis=dim), dim)
        index = xp.where(missing.any(axis=dim, keepdims=True), first, index)
    return _with_index(xp, x, index, dim)


@kernel("nanmedian_dim")
def nanmedian_dim(xp: Namespace, x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    x = at_least_1d(x)
    present = (~undefined(xp, x)).sum(axis=dim, keepdims=True)
    middle = xp.maximum((present - 1) // 2, 0)
    return _with_index(xp, x, xp.take_along_axis(order(xp, x, dim), middle, dim), dim)


@kernel("kthvalue")
def kthvalue(xp: Namespace, x: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    x = at_least_1d(x)
    return _with_index(xp, x, _ranked(xp, x, k - 1, dim), dim)


@kernel("mode")
def mode(xp: Namespace, x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
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


def _quantile(xp: Namespace, x: Array, q: Any, dim: int | None, interpolation: str, skip_nan: bool) -> Array:
    q = xp.asarray(q, x.dtype)
    if not waits(xp) and not bool(((q >= 0) & (q <= 1)).all()):
        raise KernelError("quantile: q must be in [0, 1]")
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
def quantile(xp: Namespace, x: Array, q: Array | float, dim: int | None, keepdim: bool, interpolation: str) -> Array:
    return _quantile(xp, x, q, dim, interpolation, skip_nan=False)


@kernel("nanquantile")
def nanquantile(xp: Namespace, x: Array, q: Array | float, dim: int | None, keepdim: bool, interpolation: str) -> Array:
    return _quantile(xp, x, q, dim, interpolation, skip_nan=True)


def _quantile_gradient(s: Saved, g: Tensor, skip_nan: bool) -> tuple[Tensor | None, Tensor | None]:
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

    def element(place: Tensor) -> Tensor:
        return F.gather(order, -1, F.to(place, int64))

    def to_rows(share: Tensor, at: Tensor) -> Tensor:
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
    if by_q is None and s.needs("q"):
        by_q = F.zeros_like(q)  # it moves in steps
    by_self = F.reshape(by_rows, x.shape) if dim is None or x.ndim == 0 else F.movedim(by_rows, -1, dim)
    return by_self, by_q


joint_derivative("quantile", saves="self q")(lambda s, g: _quantile_gradient(s, g, skip_nan=False))
joint_derivative("nanquantile", saves="self q")(lambda s, g: _quantile_gradient(s, g, skip_nan=True))
