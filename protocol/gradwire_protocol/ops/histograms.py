"""Histograms: how many elements fall between edges, in one dimension or several."""

from __future__ import annotations

from ..accepts import require
from ..costs import SORTING
from ..dtypes import FLOATING
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, new, several
from ..promotion import ScalarKind
from ..shapes import common_device
from ..table import Ints, Out, Real, Tensor, op


@op(out=Out.EXACT)
def histc(self: Tensor, bins: int = 100, min: Real = 0, max: Real = 0) -> Inference:
    """How many elements fall into each of ``bins`` intervals of equal width from ``min`` to ``max``, in the dtype of
    the tensor. If both are 0 (or equal), they are the extremes of the elements. What is outside does not count.

    Floating point only. Extremes that are not finite are an error when the result is read.
    """
    if bins < 1:
        raise ArgumentError(f"histc: bins is {bins}; it must be at least 1")
    if ScalarKind.COMPLEX in (min, max):
        raise DTypeError("histc: min and max are real numbers")
    require("histc", self.dtype, (FLOATING,))
    return new((bins,), self.dtype, self.device, compute=self.dtype).checking(_check_bounds)


def _check_bounds(self: object, bins: object, min: float, max: float) -> None:
    if not abs(min) < float("inf") or not abs(max) < float("inf"):
        raise ArgumentError(f"histc: the range from {min} to {max} is not finite")
    if min > max:
        raise ArgumentError(f"histc: max, {max}, is below min, {min}")


def _points(name: str, self: Meta, weight: Meta | None, dimensions: int) -> str:
    """The device of points, checked: rows of coordinates in the last dimension, a weight for each."""
    if self.dtype.category != FLOATING or self.dtype.is_low_precision:
        raise Unsupported(f"{name} takes float32 and float64 tensors, not {self.dtype.name}")
    if self.ndim < 2:
        raise ShapeError(f"{name} takes points with their coordinates in the last dimension, got {self!r}")
    if self.shape[-1] != dimensions:
        raise ShapeError(f"{name}: points of {self.shape[-1]} coordinates, but bins of {dimensions} dimensions")
    if weight is not None and weight.dtype is not self.dtype:
        raise DTypeError(f"{name}: weights are {weight.dtype.name}, the points {self.dtype.name}; they must be equal")
    if weight is not None and weight.shape != self.shape[:-1]:
        raise ShapeError(f"{name}: weights have shape {list(weight.shape)}, the points {list(self.shape[:-1])}")
    return common_device(self, weight)


@op(
    grad_fn="NotImplemented", results=None, differentiable=("self", "weight"), exposed=(),
    underivable="a histogram counts, it has no derivative",
    cost=SORTING,
)  # fmt: skip
def histogramdd(
    self: Tensor, bins: Ints, range: tuple[float, ...] | None = None, weight: Tensor | None = None,
    density: bool = False,
) -> Inference:  # fmt: skip
    """(counts, edges of dimension 0, edges of dimension 1, ...) of points whose coordinates are in the last dimension.

    Each dimension is cut into as many intervals as ``bins`` says, between the bounds in ``range`` (two for each
    dimension) or the extremes of the points. With ``weight`` those are summed instead of counted; ``density`` divides
    by the total and by each cell's volume. Results can require grad, but backward through them fails.
    """
    device = _points("histogramdd", self, weight, len(bins))
    for d, count in enumerate(bins):
        if count < 1:
            raise ArgumentError(f"histogramdd: bins is {count} for dimension {d}; it must be at least 1")
    if range is not None:
        if len(range) != 2 * len(bins):
            raise ArgumentError(f"histogramdd: {len(bins)} dimensions need {2 * len(bins)} bounds, got {len(range)}")
        for d, (low, high) in enumerate(zip(range[::2], range[1::2], strict=True)):
            check_range("histogramdd", d, low, high)
    edges = [new((count + 1,), self.dtype, device) for count in bins]
    return several(new(tuple(bins), self.dtype, device), *edges)


def check_range(name: str, dimension: int, low: float, high: float) -> None:
    """Check the bounds of a histogram.

    Raises:
        ArgumentError: when they are not finite, or run downward.
    """
    if not abs(low) < float("inf") or not abs(high) < float("inf"):
        raise ArgumentError(f"{name}: the range of dimension {dimension}, from {low} to {high}, is not finite")
    if high < low:
        raise ArgumentError(f"{name}: the range of dimension {dimension} runs downward, from {low} to {high}")


@op(
    grad_fn="NotImplemented", differentiable=("self", "weight"), exposed=(),
    underivable="a histogram counts, it has no derivative",
    cost=SORTING,
)  # fmt: skip
def histogramdd_edges(
    self: Tensor, edges: list[Tensor], weight: Tensor | None = None, density: bool = False
) -> Inference:
    """The counts of :func:`histogramdd` between edges that are given: a rising vector for each dimension."""
    name = "histogramdd"
    _points(name, self, weight, len(edges))
    device = common_device(self, weight, *edges)
    for d, edge in enumerate(edges):
        if edge.ndim != 1:
            raise ShapeError(f"{name}: the edges of dimension {d} are a vector, not of shape {list(edge.shape)}")
        if edge.dtype is not self.dtype:
            raise DTypeError(f"{name}: the edges of dimension {d} are {edge.dtype.name}, the points {self.dtype.name}")
        if edge.shape[0] < 2:
            raise ArgumentError(f"{name}: dimension {d} needs two edges or more, got {edge.shape[0]}")
    return new(tuple(edge.shape[0] - 1 for edge in edges), self.dtype, device)
