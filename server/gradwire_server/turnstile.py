"""Who computes when: at most as many sessions of a process at a time as it has cores, first come, first served.

Without it, every session that has something to do asks for the interpreter, and so does the event loop, which then
gets its turn after all of them: with 64 busy sessions it answered after most of a second.

A session that computes for longer than ``PATIENCE_S`` is no longer counted. So one that multiplies giant matrices, or
waits for a GPU, delays its neighbours and never holds them up.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 0.02
LINGER_S: Final = 10.0
"""How long the thread that watches the time is kept while nobody waits."""


def usable_cores() -> int:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Turn:
    """One session's turn, from the moment at which it comes.

    Attributes:
        since: when it came, by the turnstile's clock.
        gate: what its thread waits for, if it has to.
    """

    __slots__ = ("gate", "since")

    def __init__(self, since: float, gate: threading.Lock | None = None) -> None:
        self.since = since
        self.gate = gate


class Turnstile:
    """Lets sessions' threads pass, ``most`` at a time.

    Args:
        patience_s: how long a turn takes one of the places.
        clock: seconds that never go back.
    """

    def __init__(self, most: int, patience_s: float = PATIENCE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.patience_s = patience_s
        self._clock = clock
        self._lock = threading.Lock()
        self._running: set[Turn] = set()
        """The turns that are counted."""
        self._waiting: deque[Turn] = deque()
        self._crowded = threading.Event()
        self._usher: threading.Thread | None = None

    @property
    def running(self) -> int:
        """How many turns take a place."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._waiting)

    def enter(self) -> Turn:
        """Wait for a turn. Whoever got one gives it back with :meth:`leave`."""
        with self._lock:
            if len(self._running) < self.most:  # then nobody waits
                turn = Turn(self._clock())
                self._running.add(turn)
                return turn
            gate = threading.Lock()
            gate.acquire()
            turn = Turn(0.0, gate)
            self._waiting.append(turn)
            if not self._crowded.is_set():
                self._call_usher()
        gate.acquire()
        return turn

    def leave(self, turn: Turn) -> None:
        """Give a turn back; whoever has waited longest has the next one."""
        with self._lock:
            self._running.discard(turn)
            if self._waiting:
                self._admit()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn for as long as the block takes."""
        mine = self.enter()
        try:
            yield
        finally:
            self.leave(mine)

    def overlook(self) -> bool:
        """Count no longer whoever has had more than a turn's time. Returns whether somebody still waits."""
        with self._lock:
            latest = self._clock() - self.patience_s
            for turn in [each for each in self._running if each.since <= latest]:
                self._running.discard(turn)
            self._admit()
            if not self._waiting:
                self._crowded.clear()
            return bool(self._waiting)

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.most:
            turn = self._waiting.popleft()
            turn.since = self._clock()
            self._running.add(turn)
            assert turn.gate is not None
            turn.gate.release()

    # Time is watched by a thread of its own: who waits is many, and who computes may be in one op for hours.

    def _call_usher(self) -> None:
        self._crowded.set()
        if self._usher is None:
            self._usher = threading.Thread(target=self._watch, name="turnstile", daemon=True)
            self._usher.start()

    def _watch(self) -> None:
        while True:
            if not self._crowded.wait(LINGER_S):
                with self._lock:
                    if not self._crowded.is_set():
                        self._usher = None
                        return
            time.sleep(self.patience_s)
            self.overlook()


SHARED: Final = Turnstile(usable_cores())
"""That of this process: its sessions share one interpreter and one machine."""
