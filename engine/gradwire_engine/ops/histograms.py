"""Kernels of histograms."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.errors import GraphError, KernelError
from gradwire_protocol.ops.histograms import check_range

from ..autograd.registry import joint_derivative, kernel
from ..autograd.tape import Saved
from ..runtime.arrays import Array, Namespace, Native


def _evenly(xp: Namespace, low: float, high: float, count: int, dtype: Native) -> Array:
    """The edges of ``count`` intervals, each half counted from its own end. An element that is equal to an edge falls
    to one side of its rounding, so it is computed as PyTorch's is: in the dtype of the elements."""
    index = xp.arange(count + 1).astype(dtype)
    step = (dtype.type(high) - dtype.type(low)) / dtype.type(count)
    return xp.where(index < (count + 1) // 2, index * step + dtype.type(low), dtype.type(high) - (count - index) * step)


def _bounds(xp: Namespace, x: Array, given: tuple[float, float] | None, dimension: int) -> tuple[float, float]:
    """The range of one dimension; without one it is from the least to the greatest element. Never of width 0."""
    if given is None:
        given = (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
        if not all(math.isfinite(v) for v in given):
            shown = f"{given[0]} to {given[1]}"
            raise KernelError(f"histogramdd: the range of dimension {dimension}, {shown}, is not finite")
    low, high = given
    return (low - 0.5, high + 0.5) if low == high else (low, high)


@kernel("histc", half=True)
def histc(xp: Namespace, x: Array, bins: int, low: float, high: float) -> Array:
    given = x.dtype
    x = x.reshape(-1)
    if given.itemsize == 2:
        x = x.astype("f")
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not math.isfinite(low) or not math.isfinite(high):
        raise KernelError(f"histc: the range from {low} to {high} is not finite")

    def rounded(value: Array) -> Array:
        """To the precision of the elements: PyTorch finds intervals in it, however coarse it is."""
        return value.astype(given).astype(x.dtype)

    first, last, count = (rounded(xp.asarray(v, x.dtype)) for v in (low, high, bins))
    x = x[(x >= first) & (x <= last)]
    if math.isfinite((last - first) * count):
        place = rounded(rounded(rounded(x - first) * count) / rounded(last - first)).astype(xp.int64)
    else:  # in halves, and divided first: nothing of it overflows
        place = ((x / 2 - first / 2) / (last / 2 - first / 2) * bins).astype(xp.int64)
    return xp.bincount(xp.minimum(place, bins - 1), minlength=bins)


def _counted(xp: Namespace, points: Array, edges: list[Array], weight: Array | None, density: bool) -> Array:
    """How many points, or how much weight, each cell holds. The last interval of a dimension includes its end."""
    shape = tuple(len(edge) - 1 for edge in edges)
    points = points.reshape(math.prod(points.shape[:-1]), len(edges))
    cell, inside = xp.zeros(len(points), xp.int64), xp.ones(len(points), bool)
    for d, edge in enumerate(edges):
        at = points[:, d]
        place = xp.searchsorted(edge, at, side="right") - 1
        place = xp.where(at == edge[-1], shape[d] - 1, place)
        inside &= (at >= edge[0]) & (at <= edge[-1])
        cell = cell * shape[d] + place
    if not edges:  # PyTorch counts no points there
        inside[:] = False
    weights = None if weight is None else weight.reshape(-1)[inside]
    counts = xp.bincount(cell[inside], weights, minlength=math.prod(shape)).reshape(shape).astype(points.dtype)
    if density:
        counts = counts / counts.sum()
        for d, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / width.reshape([-1 if k == d else 1 for k in range(len(edges))])
    return counts


@kernel("histogramdd")
def histogramdd(
    xp: Namespace, x: Array, bins: tuple[int, ...], bounds: tuple[float, ...] | None, weight: Array | None,
    density: bool,
) -> tuple[Array, ...]:  # fmt: skip
    edges = []
    for d, count in enumerate(bins):
        given = None if bounds is None else (float(bounds[2 * d]), float(bounds[2 * d + 1]))
        low, high = _bounds(xp, x[..., d], given, d)
        check_range("histogramdd", d, low, high)
        edges.append(_evenly(xp, low, high, count, x.dtype))
    return (_counted(xp, x, edges, weight, density), *edges)


@kernel("histogramdd_edges")
def histogramdd_edges(xp: Namespace, x: Array, edges: list[Array], weight: Array | None, density: bool) -> Array:
    return _counted(xp, x, list(edges), weight, density)


for _name in ("histogramdd", "histogramdd_edges"):

    @joint_derivative(_name, undefined=True)
    def _(s: Saved, *gradients: Any) -> Any:
        raise GraphError("a histogram has no derivative")
