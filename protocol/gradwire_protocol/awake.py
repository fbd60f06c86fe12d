"""Decides whether to poll or to sleep while waiting for the peer. Client and server use the same rule.

Sleeping and waking up takes longer than a small frame does, above all on a virtual machine, which gives the processor
away meanwhile. So an end whose waits are usually short polls. If another thread of the machine needs the processor, it
sleeps: a woken thread has priority over a polling one.
"""

from __future__ import annotations

import math
import os
from typing import Final

SPIN_S: Final = 0.003
"""The default limit of polling."""

TAKEN_S: Final = 0.0005
"""A pause of this length between two polls means that another thread had the processor."""

REST_S: Final = 0.25
"""After such a pause, waits sleep for this long."""

FORGIVEN: Final = 4
"""A wait counts for at most this multiple of the limit, so that one long pause has little effect."""

NEW: Final = 0.25
"""The weight of the last wait in the average."""


def usable_cores() -> int:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Awake:
    """Tracks how long one end usually waits for the other. All times are seconds of one clock.

    Args:
        limit_s: the longest time to poll; 0 for never.
        cores: processors of this machine; on a single core, the peer needs it.

    Attributes:
        usual: the average wait; infinite before the first wait.
    """

    def __init__(self, limit_s: float, cores: int) -> None:
        self.limit_s = limit_s if cores > 1 else 0.0
        self.usual = math.inf
        self._began = self._looked = 0.0
        self._rests_until = -math.inf

    def begin(self, now: float) -> bool:
        """Begin a wait. Returns whether to poll, as long as :meth:`going_on` returns true."""
        self._began = self._looked = now
        return self.usual < self.limit_s and now >= self._rests_until

    def going_on(self, now: float) -> bool:
        """Whether to poll again. Call this after each poll."""
        if now - self._looked > TAKEN_S:
            self._rests_until = now + REST_S
            return False
        self._looked = now
        return now - self._began < self.limit_s

    def busy(self, now: float) -> None:
        """The end did something else since the last poll, so the pause has no meaning."""
        self._looked = now

    def end(self, now: float) -> None:
        """End a wait."""
        waited = min(now - self._began, FORGIVEN * self.limit_s)
        self.usual = waited if self.usual == math.inf else (1 - NEW) * self.usual + NEW * waited
