"""Kernels and derivatives of sorting, selecting and searching."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import Unsupported

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import composite, derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import along, at_least_1d, count, order
from ..runtime.arrays import Array, Namespace


@kernel("sort")
def sort(xp: Namespace, x: Array, dim: int, descending: bool, stable: bool | None) -> tuple[Array, Array]:
    x = at_least_1d(x)
    index = order(xp, x, dim, descending)
    return xp.take_along_axis(x, index, dim), index


@kernel("argsort")
def argsort(xp: Namespace, x: Array, dim: int, descending: bool, stable: bool) -> Array:
    return order(xp, at_least_1d(x), dim, descending)


@composite("msort")
def msort(engine: EngineContext, x: Tensor) -> Tensor:
    return F.sort(x, 0)[0]


@kernel("topk")
def topk(xp: Namespace, x: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, Array]:
    if not x.ndim:  # it is its own largest, and stays that where none is asked for
        return x.copy(), xp.zeros((), xp.int64)
    extent = x.shape[dim]
    if 0 < 4 * k < extent:
        at, kept = (extent - k, (extent - k, None)) if largest else (k - 1, (0, k))
        some = xp.sort(xp.argpartition(x, at, axis=dim)[along(x, dim, *kept)], axis=dim)
        inner = order(xp, xp.take_along_axis(x, some, dim), dim, largest)
        index = xp.take_along_axis(some, inner, dim)
    else:
        index = order(xp, x, dim, largest)[along(x, dim, 0, k)]
    return xp.take_along_axis(x, index, dim), index


for _name in ("sort", "topk"):
    derivative(
        _name, self=("result1", lambda s, g, _: F.gather_backward(g, s.meta("self").shape, s.dim, s.result1, True))
    )


def _distinct(
    xp: Namespace, x: Array, by_value: Array | None, inverse: bool, counts: bool, dim: int | None
) -> tuple[Array, ...]:
    """Runs of equal elements or slices, in the order given (``None``: as they come)."""
    shape = x.shape
    x = x.reshape(-1) if dim is None else xp.moveaxis(at_least_1d(x), dim, 0)
    n = x.shape[0]
    ordered = x if by_value is None else x[by_value]
    differs = ordered[1:] != ordered[:-1]
    if differs.ndim > 1:
        differs = differs.any(axis=tuple(range(1, differs.ndim)))
    begins = xp.ones(n, bool)
    begins[1:] = differs
    starts = xp.flatnonzero(begins)
    values = ordered[starts]
    results = [values if dim is None else xp.moveaxis(values, 0, dim)]
    if inverse:
        place = xp.cumsum(begins) - 1
        if by_value is not None:
            unsorted = xp.empty_like(place)
            unsorted[by_value] = place
            place = unsorted
        results.append(place.reshape(shape) if dim is None else place)
    if counts:
        ends = xp.concatenate([starts[1:], xp.full((1 if n else 0,), n, starts.dtype)])
        results.append(ends - starts)
    return tuple(results)


@kernel("unique")
def unique(
    xp: Namespace, x: Array, sorted: bool, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Array, ...]:
    if dim is None:
        by_value = order(xp, x.reshape(-1), 0)
    else:
        rows = xp.moveaxis(at_least_1d(x), dim, 0)
        rows = rows.reshape(rows.shape[0], count(rows, range(1, rows.ndim)))
        by_value = xp.lexsort(rows.T[::-1]) if rows.size else xp.arange(rows.shape[0])
    return _distinct(xp, x, by_value, return_inverse, return_counts, dim)


@kernel("unique_consecutive")
def unique_consecutive(
    xp: Namespace, x: Array, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Array, ...]:
    return _distinct(xp, x, None, return_inverse, return_counts, dim)


def _search(xp: Namespace, sequence: Array, values: Any, right: bool) -> Array:
    if sequence.ndim == 1:
        return xp.searchsorted(sequence, xp.asarray(values, sequence.dtype), side="right" if right else "left")
    # Many sequences at once: a binary search in step.
    extent = sequence.shape[-1]
    low = xp.zeros(values.shape, xp.int64)
    if extent == 0:
        return low
    high = xp.full(values.shape, extent, xp.int64)
    for _ in range(extent.bit_length()):
        middle = (low + high) // 2
        there = xp.take_along_axis(sequence, xp.minimum(middle, extent - 1), -1)
        goes_up = (low < high) & ~((there > values) if right else (there >= values))
        low = xp.where(goes_up, middle + 1, low)
        high = xp.where(goes_up, high, xp.minimum(middle, high))
    return low


@kernel("searchsorted")
def searchsorted(xp: Namespace, sorted_sequence: Array, input: Array | float, out_int32: bool, right: bool) -> Array:
    return _search(xp, sorted_sequence, input, right)


@kernel("bucketize")
def bucketize(xp: Namespace, x: Array | float, boundaries: Array, out_int32: bool, right: bool) -> Array:
    return _search(xp, boundaries, x, right)


for _name in ("unique", "unique_consecutive"):

    @joint_derivative(_name, undefined=True)
    def _(s: Saved, *gradients: Any, name: str = _name) -> Any:
        raise Unsupported(f"{name}: which elements are distinct has no derivative; detach() the operand")
