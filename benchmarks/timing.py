"""Timing two sides fairly: rounds interleaved, medians with their spread, ratios taken round by round."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final, TypeVar

Name = TypeVar("Name", bound=Hashable)

PAUSE_S: Final = 0.05
"""Between two sides, so that the threads of one do not spin into the time of the other: OpenBLAS's do for 30 ms."""

WARM_S: Final = 0.15
"""What a side does of its own measurement, uncounted, after the pause: processor and caches have gone cold in it, which
would double the figures of short steps. A measurement that takes as long by itself is long enough not to notice."""


@dataclass(frozen=True)
class Figures:
    """Measurements of one thing, one a round, in the order in which they were taken."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The first and third quartile."""
        if len(self.values) == 1:
            return self.values[0], self.values[0]
        low, _, high = quantiles(self.values, n=4, method="inclusive")
        return low, high

    def scaled(self, factor: float) -> Figures:
        return Figures(tuple(value * factor for value in self.values))

    def less(self, amount: float) -> Figures:
        return Figures(tuple(value - amount for value in self.values))


def paired_ratios(ours: Figures, theirs: Figures) -> Figures:
    """The rounds' own ratios: what disturbs a whole round disturbs both of its sides."""
    return Figures(tuple(a / b for a, b in zip(ours.values, theirs.values, strict=True)))


def paired_ratio(ours: Figures, theirs: Figures) -> float:
    """The median of the rounds' own ratios."""
    return paired_ratios(ours, theirs).median


def seconds(function: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def interleave(sides: Mapping[Name, Callable[[], float]], rounds: int, warm: float = WARM_S) -> dict[Name, Figures]:
    """Let every side measure itself once a round, warm; the side that begins changes from round to round."""
    taken: dict[Name, list[float]] = {name: [] for name in sides}
    with _imports_at_rest():
        for number in range(rounds):
            order = list(sides.items())
            for name, measure in order if number % 2 == 0 else reversed(order):
                time.sleep(PAUSE_S)
                taken[name].append(_warm(measure, warm))
    return {name: Figures(tuple(values)) for name, values in taken.items()}


@contextmanager
def _imports_at_rest() -> Iterator[None]:
    """The garbage collector searches what is made from now on, and not what is there: torch and its modules alone take
    it 0.13 s each time, in the middle of somebody's measurement, and a program under gradwire has not imported them.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _warm(measure: Callable[[], float], warm: float) -> float:
    """The first measurement that begins when the side has worked for so many seconds, or that takes as long itself."""
    began = time.perf_counter()
    while True:
        started, figure = time.perf_counter(), measure()
        if started - began >= warm or time.perf_counter() - started >= warm:
            return figure
