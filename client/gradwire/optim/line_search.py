"""A line search for the strong Wolfe conditions: bracket a minimum along a direction, then narrow it down.

Nocedal and Wright, *Numerical Optimization* (2006), algorithms 3.5 and 3.6, with cubic interpolation. It sees numbers
only; what it needs to know of the function arrives in one read per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, sqrt
from typing import Any, NamedTuple


class Point(NamedTuple):
    """The function at a distance along the direction: its value, its slope there, and its gradient."""

    t: float
    value: float
    slope: float
    gradient: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with these slopes is least, within bounds (by default the points)."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    first = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = first**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = sqrt(square)
    left, right = (a, b) if a.t <= b.t else (b, a)
    across = right.slope - left.slope + 2 * root
    if across == 0:
        return (low + high) / 2
    found = right.t - (right.t - left.t) * ((right.slope + root - first) / across)
    return high if isnan(found) else min(max(found, low), high)


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, t: float, largest: float, *, sufficient: float = 1e-4,
    curvature: float = 0.9, tolerance: float = 1e-9, most: int = 25,
) -> tuple[Point, int]:  # fmt: skip
    """A point with a sufficient decrease and a small enough slope, and how often the function was evaluated.

    Args:
        evaluate: the function at a distance.
        start: the function at distance 0, where its slope is negative.
        t: the first distance to try.
        largest: the direction's largest element: a bracket that moves no element by ``tolerance`` is small enough.
        most: how often the search goes on.
    """
    bracket, steps, evaluations, done = _bracket(evaluate, start, t, sufficient, curvature, most)
    stuck = False
    low, high = _order(bracket)
    while not done and steps < most:
        near, far = bracket[0], bracket[1]
        if abs(far.t - near.t) * largest < tolerance:
            break
        t, stuck = _away(cubic_minimum(near, far), near.t, far.t, stuck)
        point = evaluate(t)
        evaluations, steps = evaluations + 1, steps + 1
        if point.value > start.value + sufficient * t * start.slope or point.value >= bracket[low].value:
            bracket[high] = point
            low, high = _order(bracket)
            continue
        if abs(point.slope) <= -curvature * start.slope:
            done = True
        elif point.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket[low], evaluations


def _bracket(
    evaluate: Callable[[float], Point], start: Point, t: float, sufficient: float, curvature: float, most: int
) -> tuple[list[Point], int, int, bool]:
    """One point that satisfies the conditions, or two around one; the steps, the evaluations, whether it is found."""
    before, point = start, evaluate(t)
    steps, evaluations = 0, 1
    while steps < most:
        rises = point.value > start.value + sufficient * point.t * start.slope
        if rises or (steps > 1 and point.value >= before.value):
            return [before, point], steps, evaluations, False
        if abs(point.slope) <= -curvature * start.slope:
            return [point], steps, evaluations, True
        if point.slope >= 0:
            return [before, point], steps, evaluations, False
        bounds = (point.t + 0.01 * (point.t - before.t), point.t * 10)
        t = cubic_minimum(before, point, bounds)
        before, point = point, evaluate(t)
        evaluations, steps = evaluations + 1, steps + 1
    return [start, point], steps, evaluations, False


def _order(bracket: list[Point]) -> tuple[int, int]:
    """The places of the lower and of the higher point."""
    return (0, 1) if bracket[0].value <= bracket[-1].value else (1, 0)


def _away(t: float, a: float, b: float, stuck: bool) -> tuple[float, bool]:
    """``t``, moved off the bracket's ends where it has come close to one twice running."""
    low, high = min(a, b), max(a, b)
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if not stuck and low < t < high:
        return t, True
    return (high - margin if abs(t - high) < abs(t - low) else low + margin), False
