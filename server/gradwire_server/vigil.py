"""Awake for what comes soon: an event loop that has answered looks for the next message before it falls asleep.

Falling asleep and being woken takes longer than a small frame does, above all on a virtual machine, whose processor is
given to somebody else meanwhile. So a loop that usually hears of its client within a few milliseconds stays awake for
as long, and lets whoever else wants the processor have it.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable
from typing import Final

from .threads import usable_cores

FORGIVEN: Final = 4
"""A wait counts as this many times the limit at most, so that one long pause is soon forgotten."""

_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: time.sleep(0))


class Vigil:
    """Waits for one session's next message. For the event loop's thread.

    Args:
        limit_s: how long it stays awake; 0 for never. What usually takes longer is slept for.
        others: whether somebody computes in another thread of this process, who needs the interpreter more.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit_s: float,
        others: Callable[[], bool],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # With one processor whoever is waited for needs it.
        self.limit_s = limit_s if usable_cores() > 1 else 0.0
        self._loop = loop
        self._others = others
        self._clock = clock
        self._since = math.inf
        """When it was last answered; infinite while there is something to do."""
        self._usual = math.inf
        self._looking = False

    def answered(self) -> None:
        """There is nothing left to do but to wait."""
        self._since = self._clock()
        if self._usual < self.limit_s and not self._looking:
            self._looking = True
            self._loop.call_soon(self._look)

    def came(self) -> None:
        """A message is there."""
        if self._since == math.inf:
            return
        waited = min(self._clock() - self._since, FORGIVEN * self.limit_s)
        self._usual = waited if self._usual == math.inf else 0.75 * self._usual + 0.25 * waited
        self._since = math.inf

    def _look(self) -> None:
        # Before each of these calls the loop asks the system, without waiting, for whatever has come.
        if self._since != math.inf and self._clock() - self._since < self.limit_s and not self._others():
            _yield()
            self._loop.call_soon(self._look)
        else:
            self._looking = False
