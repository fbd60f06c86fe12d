"""Busy polling: after a reply, the event loop polls for the session's next message before it sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from gradwire_protocol.awake import Awake, usable_cores


class BusyPoll:
    """Polls for one session's next message. For the event loop's thread.

    Args:
        limit_s: how long to poll; 0 for never.
        others: whether another thread of this process computes and needs the GIL more.
        clock: a monotonic clock in seconds.

    Attributes:
        waiting: the session has no frame; the next message is awaited.
        polling: the event loop is kept awake.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit_s: float,
        others: Callable[[], bool],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.waiting = self.polling = False
        self._awake = Awake(limit_s, usable_cores())
        self._loop = loop
        self._others = others
        self._clock = clock

    def start_waiting(self) -> None:
        """The session's last frame was answered."""
        self.waiting = True
        if self._awake.begin(self._clock()) and not self.polling:
            self.polling = True
            self._loop.call_soon(self._poll)

    def stop_waiting(self) -> None:
        """A message has arrived."""
        if self.waiting:
            self.waiting = False
            self._awake.end(self._clock())

    def _poll(self) -> None:
        # While a callback is scheduled, the loop polls its sockets without blocking.
        self.polling = self.waiting and not self._others() and self._awake.going_on(self._clock())
        if self.polling:
            self._loop.call_soon(self._poll)
