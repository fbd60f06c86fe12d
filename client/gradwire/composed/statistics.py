"""Histograms, with bins as a number or as edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ShapeError

from ..dispatch import call
from ..methods import named_result, offer
from ..tensor import Tensor

_Histogram = named_result("histogram", "hist", "bin_edges")
_Histograms = named_result("histogramdd", "hist", "bin_edges")


def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """(hist, bin_edges): how many elements, or how much ``weight``, falls into each interval.

    ``bins`` is how many intervals of equal width there are, between the two numbers in ``range`` or the extremes of the
    elements; or a rising vector of edges. ``density`` makes the histogram one whose area is 1.

    Raises:
        Unsupported: for dtypes other than float32 and float64.
        ArgumentError, ShapeError, DTypeError: for bins, a range or weights that do not fit.
    """
    points = call("reshape", input, (-1, 1))
    if weight is not None:
        if weight.numel() != input.numel():
            raise ShapeError(f"histogram: weights have shape {list(weight.shape)}, the tensor {list(input.shape)}")
        weight = call("reshape", weight, (-1,))
    if isinstance(bins, Tensor):
        if range is not None:
            raise ArgumentTypeError("histogram: edges leave no choice of a range")
        return _Histogram(call("histogramdd_edges", points, [bins], weight, density), bins)
    return _Histogram(*call("histogramdd", points, (bins,), _bounds(range), weight, density))


def _bounds(given: Any) -> tuple[float, ...] | None:
    return None if given is None else tuple(float(v) for v in given)


def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """(hist, bin_edges) of points whose coordinates are in the last dimension; ``bin_edges`` has one vector for each.

    ``bins`` is a number of intervals for all dimensions, one for each, or a sequence of vectors of edges; ``range`` has
    two bounds for each dimension. See :func:`histogram`.
    """
    if input.ndim < 2:
        raise ShapeError(f"histogramdd takes points with their coordinates in the last dimension, got {input.ndim}-D")
    if isinstance(bins, Sequence) and bins and isinstance(bins[0], Tensor):
        if range is not None and len(range) != 2 * len(bins):
            raise ShapeError(f"histogramdd: {len(bins)} dimensions need {2 * len(bins)} bounds, got {len(range)}")
        return _Histograms(call("histogramdd_edges", input, list(bins), weight, density), tuple(bins))
    counts = (bins,) * input.shape[-1] if isinstance(bins, int) else tuple(bins)
    hist, *edges = call("histogramdd", input, counts, _bounds(range), weight, density)
    return _Histograms(hist, tuple(edges))


offer(histogram)
offer(histogramdd, method=False)
