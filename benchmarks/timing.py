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
    """Measurements of one quantity, one per round, in order."""

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
    """The ratios of each round, because a disturbance affects both sides of a round."""
    return Figures(tuple(a / b for a, b in zip(ours.values, theirs.values, strict=True)))


def seconds(function: Callable[[], object]) -> float:
    """The duration of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def interleave(sides: Mapping[Name, Callable[[], float]], rounds: int, warm: float = WARM_S) -> dict[Name, Figures]:
    """Let every side measure itself once per round, warm; the side that begins alternates."""
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
    """Let the garbage collector skip existing objects. Scanning torch's modules takes 0.13 s each time, within some
    measurement, and programs under gradwire do not import them.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _warm(measure: Callable[[], float], warm: float) -> float:
    """The first measurement after this many seconds of warm-up, or the first that takes as long itself."""
    began = time.perf_counter()
    while True:
        started, figure = time.perf_counter(), measure()
        if started - began >= warm or time.perf_counter() - started >= warm:
            return figure
