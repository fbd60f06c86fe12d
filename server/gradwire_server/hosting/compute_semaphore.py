"""Limits how many sessions of a process compute at a time to the number of cores, in FIFO order.

Without the limit, all busy sessions compete for the GIL, and the event loop waits behind all of them: with 64 busy
sessions it took most of a second to respond.

A turn no longer counts after ``PATIENCE_S``. So a session that multiplies giant matrices or waits for a GPU delays
other sessions briefly and never blocks them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gradwire_protocol.awake import usable_cores

from .threads import SHARED as THREADS

PATIENCE_S: Final = 0.02
ALONE_S: Final = 0.1
"""A session is alone if no other session entered for this long."""

RECENT_S: Final = 0.25
"""A session counts as busy for this long after it entered."""

LINGER_S: Final = 10.0
"""How long the timer thread stays alive while no session waits."""


class ComputeTurn:
    """One session's turn to compute.

    Attributes:
        since: its start by the semaphore's clock.
        gate: a lock that its thread waits on, if the turn could not start at once.
    """

    __slots__ = ("gate", "since")

    def __init__(self, since: float, gate: threading.Lock | None = None) -> None:
        self.since = since
        self.gate = gate


class ComputeSemaphore:
    """A semaphore with ``most`` slots, FIFO waiters and turns that expire.

    Args:
        patience_s: how long a turn occupies a slot.
        clock: a monotonic clock in seconds.
        on_busy: called with the number of recently active sessions when it changes.
    """

    def __init__(
        self,
        most: int,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
        on_busy: Callable[[int], None] = lambda busy: None,
    ) -> None:
        self.most = most
        self.patience_s = patience_s
        self._clock = clock
        self._lock = threading.Lock()
        self._running: set[ComputeTurn] = set()
        """The turns that occupy a slot."""
        self._waiting: deque[ComputeTurn] = deque()
        self._contended = threading.Event()
        self._timer: threading.Thread | None = None
        self._last = ""
        """The session that entered last, and when."""
        self._last_at = -math.inf
        self._not_alone_at = -math.inf
        """When the entering session last changed."""
        self._recent: dict[str, float] = {}
        """Recently active sessions and their last entries; not updated while there is only one."""
        self._on_busy = on_busy
        self._busy = 1

    @property
    def running(self) -> int:
        """How many turns occupy a slot."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._waiting)

    def enter(self, session: str = "") -> ComputeTurn:
        """Wait for a turn. End it with :meth:`leave`."""
        with self._lock:
            now = self._clock()
            self._record_entry(session, now)
            if len(self._running) < self.most:  # implies that no turn waits
                turn = ComputeTurn(now)
                self._running.add(turn)
                return turn
            gate = threading.Lock()
            gate.acquire()
            turn = ComputeTurn(0.0, gate)
            self._waiting.append(turn)
            if not self._contended.is_set():
                self._start_timer()
        gate.acquire()
        return turn

    def enter_alone(self, session: str) -> ComputeTurn | None:
        """A turn for a session that was alone for ``ALONE_S``, else ``None``. Does not wait."""
        with self._lock:
            now = self._clock()
            self._record_entry(session, now)
            if self._running or self._waiting or now - self._not_alone_at < ALONE_S:
                return None
            turn = ComputeTurn(now)
            self._running.add(turn)
            return turn

    def _record_entry(self, session: str, now: float) -> None:
        """Update the recently active sessions."""
        if not session:
            return
        if session == self._last and self._busy == 1:
            self._last_at = now
            return
        if session != self._last:
            if self._last:
                self._recent.setdefault(self._last, self._last_at)
            self._last, self._not_alone_at = session, now
        self._recent[session] = self._last_at = now
        for other in [name for name, at in self._recent.items() if now - at > RECENT_S]:
            del self._recent[other]
        if len(self._recent) != self._busy:
            self._busy = len(self._recent)
            self._on_busy(self._busy)

    def leave(self, turn: ComputeTurn) -> None:
        """End a turn; the longest waiting turn starts."""
        with self._lock:
            self._running.discard(turn)
            if self._waiting:
                self._admit()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn for the duration of the block."""
        mine = self.enter()
        try:
            yield
        finally:
            self.leave(mine)

    def expire_turns(self) -> bool:
        """Free the slots of turns older than ``patience_s``. Returns whether turns still wait."""
        with self._lock:
            latest = self._clock() - self.patience_s
            for turn in [each for each in self._running if each.since <= latest]:
                self._running.discard(turn)
            self._admit()
            if not self._waiting:
                self._contended.clear()
            return bool(self._waiting)

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.most:
            turn = self._waiting.popleft()
            turn.since = self._clock()
            self._running.add(turn)
            assert turn.gate is not None
            turn.gate.release()

    # A separate thread expires turns, because a session may compute in one op for hours.

    def _start_timer(self) -> None:
        self._contended.set()
        if self._timer is None:
            self._timer = threading.Thread(target=self._run_timer, name="semaphore", daemon=True)
            self._timer.start()

    def _run_timer(self) -> None:
        while True:
            if not self._contended.wait(LINGER_S):
                with self._lock:
                    if not self._contended.is_set():
                        self._timer = None
                        return
            time.sleep(self.patience_s)
            self.expire_turns()


SHARED: Final = ComputeSemaphore(usable_cores(), on_busy=THREADS.set_busy_sessions)
"""The semaphore of this process."""
