"""A collective that runs beside the session's thread, which computes what follows and waits where it needs the result.

What such a collective sends and receives, and in which order, is what it would without this: of a group, one runs at a
time, in the order in which they were started. What it has received counts as the frame's only once the session's
thread has come to the collective (:meth:`.groups.Group.started`), so a journal does not see that it ran early.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gradwire_protocol.errors import CollectiveError

from .arrays import Array
from .backends import expect_any_float
from .lane import Lane

if TYPE_CHECKING:
    from .groups import Group, Received

T = TypeVar("T")

POLL_S: Final = 0.05
"""How long a wait goes on before it looks whether it is still wanted."""


class Background:
    """One collective that was started.

    Args:
        what: the collective with its number, as its peers call it.
        values: what it changes.
        work: changes them.

    Attributes:
        taken: what it has received.
        done: it has ended, with :attr:`error_found` if it failed.
        unwanted: its group has failed, so it ends where it looks next.
    """

    def __init__(self, group: Group, what: str, values: Array, work: Callable[[Lane], None]) -> None:
        self.what, self.values = what, values
        self.taken: list[Received] = []
        self.done = threading.Event()
        self.error_found: BaseException | None = None
        self.unwanted = False
        self._group, self._work = group, work

    @property
    def rank(self) -> int:
        return self._group.rank

    @property
    def world_size(self) -> int:
        return self._group.world_size

    def named(self, peer: int) -> str:
        return self._group.named(peer)

    def error(self, peer: int, text: str) -> CollectiveError:
        return self._group.error(peer, text)

    def send(self, peer: int, data: bytes | memoryview, awaited: bool = False) -> None:
        self._group.put(self.what, peer, data, awaited)

    def receive(self, peer: int) -> bytes | memoryview:
        began = time.monotonic()
        while (data := self._take(peer, POLL_S)) is None:
            self._check_wanted()
            if time.monotonic() - began > self._group.spec.timeout_s:
                raise self._group.late(peer, self.what)
        return data

    def arrived(self, peer: int) -> bytes | memoryview | None:
        return self._take(peer, 0)

    def _take(self, peer: int, seconds: float) -> bytes | memoryview | None:
        group, communicator = self._group, self._group.communicator
        assert communicator is not None
        found = communicator.take(peer, seconds)
        if found is None:
            return None
        data = group.checked(peer, self.what, *found)
        if group.keeps:
            self.taken.append((peer, data))
        return data

    def wait(self, ask: Callable[[float], T | None]) -> T:
        communicator, began = self._group.communicator, time.monotonic()
        assert communicator is not None
        while (found := ask(POLL_S)) is None:
            self._check_wanted()
            communicator.watch()
            if time.monotonic() - began > self._group.spec.timeout_s:
                raise self._group.overdue(self.what)
        return found

    def _check_wanted(self) -> None:
        if self.unwanted:
            raise self._group.error(self.rank, f"{self.what} was given up: {self._group.failed}")

    def run(self) -> None:
        """Do it, in the thread of the group's started collectives."""
        try:
            if not self.unwanted:
                self._work(self)
        except BaseException as error:  # the session's thread raises it
            self.error_found = error
        finally:
            self.done.set()


class BackgroundQueue:
    """The collectives of one group that were started. A thread runs them while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: deque[Background] = deque()
        self._running = False

    def add(self, started: Background) -> None:
        """Run this one after those before it."""
        with self._lock:
            self._due.append(started)
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, name=f"rank-{started.rank}-exchanges", daemon=True).start()

    def _run(self) -> None:
        expect_any_float()
        failure: Any = None
        while True:
            with self._lock:
                if not self._due:
                    self._running = False
                    return
                next_one = self._due.popleft()
            if failure is not None:
                next_one.error_found = failure
                next_one.done.set()
                continue
            next_one.run()
            failure = next_one.error_found
