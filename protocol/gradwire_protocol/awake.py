"""Whether to wait awake or asleep for what the other end sends. Both ends ask themselves the same.

Falling asleep and being woken takes longer than a small frame does, above all on a virtual machine, whose processor is
given to somebody else meanwhile. So whoever usually waits for a few milliseconds looks again and again instead, unless
somebody on the same machine wants the processor: then sleeping is quicker, since who wakes up comes first.
"""

from __future__ import annotations

import math
import os
from typing import Final

SPIN_S: Final = 0.003
"""How long it is looked for what usually comes within that time, where nothing else is set."""

TAKEN_S: Final = 0.0005
"""Who does not look for that long, between two looks that take microseconds, had no processor."""

REST_S: Final = 0.25
"""For that long, then, all waiting is sleeping."""

FORGIVEN: Final = 4
"""A wait counts as this many times the limit at most, so that one long pause is soon forgotten."""

NEW: Final = 0.25
"""What the last wait counts for in what is usual."""


def usable_cores() -> int:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Awake:
    """Knows how long one end usually waits for the other. All times are seconds of one clock.

    Args:
        limit_s: how long it may wait awake; 0 for never.
        cores: processors of this machine; with one, whoever is waited for needs it.

    Attributes:
        usual: how long it waits usually; infinite while nobody knows.
    """

    def __init__(self, limit_s: float, cores: int) -> None:
        self.limit_s = limit_s if cores > 1 else 0.0
        self.usual = math.inf
        self._began = self._looked = 0.0
        self._rests_until = -math.inf

    def begin(self, now: float) -> bool:
        """A wait begins. Whether to look for its end, as long as :meth:`going_on` says so."""
        self._began = self._looked = now
        return self.usual < self.limit_s and now >= self._rests_until

    def going_on(self, now: float) -> bool:
        """Whether to look once more. Asked after each look."""
        if now - self._looked > TAKEN_S:
            self._rests_until = now + REST_S
            return False
        self._looked = now
        return now - self._began < self.limit_s

    def busy(self, now: float) -> None:
        """It did something else since the last look, and may not have had the time to look."""
        self._looked = now

    def end(self, now: float) -> None:
        """What was waited for is there."""
        waited = min(now - self._began, FORGIVEN * self.limit_s)
        self.usual = waited if self.usual == math.inf else (1 - NEW) * self.usual + NEW * waited
