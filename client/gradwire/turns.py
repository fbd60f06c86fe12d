"""Whose turn it is to record in a session: any thread's, with the lock, or the last thread's, without.

A lock costs a good part of what a repeated op does. So the thread that recorded last goes on without one: it finds its
own key in ``ready``, says that it is ``busy``, looks at ``ready`` again, and records. Another thread that has taken the
lock takes ``ready`` away first, and then waits until nobody is busy. The interpreter runs one thread at a time and in
the order of the program, so one of the two always sees the other.

A thread that was kept from running may be late: it remembers that ``ready`` had its key, and since then another one
has begun to record without the lock. It must not say in that one's place that nobody is busy. So ``ready`` is looked at
right before ``busy`` is set, without a call in between: CPython changes threads at calls and where loops go back.
"""

from __future__ import annotations

from threading import RLock, get_ident
from time import monotonic, sleep
from types import TracebackType
from typing import Final

NOBODY: Final = -2
"""A key that no thread has: whoever records takes the lock."""
BUSY_S: Final = 1.0
"""An interrupt may have left ``busy`` set. Nobody is busy that long."""


class Turns:
    """A reentrant lock, and what goes without it.

    Attributes:
        ready: the key of the thread that may record without the lock, in the modes that the frame is in.
        joins: the same for what belongs to the frame also when it is due to end.
        busy: whether it does so at this moment.
    """

    __slots__ = ("_lock", "_owner", "busy", "joins", "ready")

    def __init__(self) -> None:
        self._lock = RLock()
        self._owner = 0
        self.busy = False
        self.ready = self.joins = NOBODY

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, and see to it that no other thread records without."""
        if not self._lock.acquire(blocking):
            return False
        me = get_ident()
        if self._owner != me:
            self._take_over(me)
        return True

    def _take_over(self, me: int) -> None:
        self.ready = self.joins = NOBODY
        self._owner = me
        until = monotonic() + BUSY_S
        while self.busy and monotonic() < until:
            sleep(0)
        self.busy = False

    def release(self) -> None:
        """Give it back."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()
        me = get_ident()
        if self._owner != me:
            self._take_over(me)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
