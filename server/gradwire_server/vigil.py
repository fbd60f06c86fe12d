"""Awake for what comes soon: an event loop that has answered looks for the next message before it falls asleep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from gradwire_protocol.awake import Awake, usable_cores


class Vigil:
    """Waits for one session's next message. For the event loop's thread.

    Args:
        limit_s: how long it stays awake; 0 for never.
        others: whether somebody computes in another thread of this process, who needs the interpreter more.
        clock: seconds that never go back.

    Attributes:
        waits: there is nothing else to do.
        looks: the event loop is kept awake.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit_s: float,
        others: Callable[[], bool],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.waits = self.looks = False
        self._awake = Awake(limit_s, usable_cores())
        self._loop = loop
        self._others = others
        self._clock = clock

    def answered(self) -> None:
        """There is nothing left to do but to wait."""
        self.waits = True
        if self._awake.begin(self._clock()) and not self.looks:
            self.looks = True
            self._loop.call_soon(self._look)

    def came(self) -> None:
        """A message is there."""
        if self.waits:
            self.waits = False
            self._awake.end(self._clock())

    def _look(self) -> None:
        # Before each of these calls the loop asks the system, without waiting, for whatever has come.
        self.looks = self.waits and not self._others() and self._awake.going_on(self._clock())
        if self.looks:
            self._loop.call_soon(self._look)
