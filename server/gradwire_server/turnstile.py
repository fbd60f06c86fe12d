"""Who computes when: at most as many sessions of a process at a time as it has cores, first come, first served.

Without it, every session that has something to do asks for the interpreter, and so does the event loop, which then
gets its turn after all of them: with 64 busy sessions it answered after most of a second.

A session that computes for longer than ``PATIENCE_S`` is no longer counted. So one that multiplies giant matrices, or
waits for a GPU, delays its neighbours and never holds them up.
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
"""How long nobody else may have come for whoever comes to be alone."""

LATELY_S: Final = 0.25
"""How long whoever came counts among those that compute."""

LINGER_S: Final = 10.0
"""How long the thread that watches the time is kept while nobody waits."""


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
        crowd: told how many have come lately, when that has changed.
    """

    def __init__(
        self,
        most: int,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
        crowd: Callable[[int], None] = lambda busy: None,
    ) -> None:
        self.most = most
        self.patience_s = patience_s
        self._clock = clock
        self._lock = threading.Lock()
        self._running: set[Turn] = set()
        """The turns that are counted."""
        self._waiting: deque[Turn] = deque()
        self._crowded = threading.Event()
        self._usher: threading.Thread | None = None
        self._last = ""
        """Who came last, and when."""
        self._at = -math.inf
        self._shared = -math.inf
        """When somebody else came than the time before."""
        self._seen: dict[str, float] = {}
        """Who came lately, and when; as long as there is only one, not kept up to date."""
        self._crowd = crowd
        self._busy = 1

    @property
    def running(self) -> int:
        """How many turns take a place."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._waiting)

    def enter(self, who: str = "") -> Turn:
        """Wait for a turn. Whoever got one gives it back with :meth:`leave`."""
        with self._lock:
            now = self._clock()
            self._came(who, now)
            if len(self._running) < self.most:  # then nobody waits
                turn = Turn(now)
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

    def enter_alone(self, who: str) -> Turn | None:
        """A turn for whoever has had no company for a while; ``None``, without waiting, for others."""
        with self._lock:
            now = self._clock()
            self._came(who, now)
            if self._running or self._waiting or now - self._shared < ALONE_S:
                return None
            turn = Turn(now)
            self._running.add(turn)
            return turn

    def _came(self, who: str, now: float) -> None:
        """Count who has come lately."""
        if not who:
            return
        if who == self._last and self._busy == 1:
            self._at = now
            return
        if who != self._last:
            if self._last:
                self._seen.setdefault(self._last, self._at)
            self._last, self._shared = who, now
        self._seen[who] = self._at = now
        for other in [name for name, at in self._seen.items() if now - at > LATELY_S]:
            del self._seen[other]
        if len(self._seen) != self._busy:
            self._busy = len(self._seen)
            self._crowd(self._busy)

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


SHARED: Final = Turnstile(usable_cores(), crowd=THREADS.share)
"""That of this process: its sessions share one interpreter and one machine."""
