"""Whose turn it is to record in a session: any thread's, with the lock, or the last thread's, without.

A lock costs a good part of what a repeated op does. So the thread that recorded last goes on without one: it finds its
own key in ``ready``, says that it is ``busy``, looks at ``ready`` again, and records. Another thread that has taken the
lock takes ``ready`` away first, and then waits until nobody is busy. The interpreter runs one thread at a time and in
the order of the program, so one of the two always sees the other.

An exception may come at any moment: Ctrl-C, a test's timeout, whatever a signal handler or another thread raises. A
thread that is interrupted while busy says that the record is ``broken`` and takes ``ready`` away; whoever holds the
lock next mends the tables first. The lock itself is taken by ``with``, in one step of the interpreter, and then
:meth:`hold` is called: an exception between taking a lock and what follows would leave it taken for ever.

A signal's handler, or a destructor that the collector of garbage runs, may come in the middle of a turn and use
tensors: it takes the turn (:meth:`BiasedLock.hold`). Whoever has a turn therefore prepares its record, looks whether it
is still ``busy``, and writes the record down without a call in between; if it is not, it begins again.

A thread that was kept from running may be late: it remembers that ``ready`` had its key, and since then another one
has begun to record without the lock. It must not say in that one's place that nobody is busy. So ``ready`` is looked at
right before ``busy`` is set, without a call in between: CPython changes threads at calls and where loops go back.

A free-threaded interpreter that runs without its lock gives no such order. There is no bias then: ``ready`` and
``joins`` stay :data:`NOBODY`, and every record is made with the lock.
"""

from __future__ import annotations

import sys
from _thread import RLock
from sys import _current_frames
from threading import get_ident
from time import sleep
from typing import Final

NOBODY: Final = -2
"""A key that no thread has: whoever records takes the lock."""
ONE_THREAD_AT_A_TIME: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether the interpreter runs one thread at a time, so that a thread can go without the lock."""
AT_ONCE: Final = 100
PAUSE_S: Final = 0.001
MOST_PAUSES: Final = 10_000
"""How long another thread is waited for, as long as it lives. They are counted: a machine that stood still for a while
has given nobody a chance. A thread takes that long where the collector of garbage comes in between, and what it finds
takes its time to close, say a pool of processes."""


class BiasedLock(RLock):  # type: ignore[misc]  # nothing forbids it at run time
    """A reentrant lock, and what goes without it.

    Attributes:
        ready: the key of the thread that may record without the lock, in the modes that the frame is in.
        joins: the same for what belongs to the frame also when it is due to end.
        busy: whether it does so at this moment.
        owner: the thread that held it last, 0 at first.
        broken: an exception came in the middle of a record, or of a frame that was cut.
    """

    __slots__ = ("broken", "busy", "joins", "owner", "ready")

    def __init__(self) -> None:
        self.owner = 0
        self.busy = self.broken = False
        self.ready = self.joins = NOBODY

    def hold(self) -> None:
        """See to it that no other thread records without the lock. Called by the thread that has it; nothing is left
        to do where that is the owner, and is not busy."""
        me = get_ident()
        if self.owner != me:
            self.ready = self.joins = NOBODY
            looks = 0
            while self.busy and looks < MOST_PAUSES and (looks < AT_ONCE or self.owner in _current_frames()):
                sleep(PAUSE_S if looks > AT_ONCE else 0)
                looks += 1
        if self.busy:
            self._begin_again()
        self.owner = me

    def _begin_again(self) -> None:
        """Take the turn from a thread that did not end it: it does not live any more, or what runs now came in between,
        a signal's handler or a destructor. If it goes on, it finds that it is not busy, and begins again."""
        self.broken = True
        self.busy = False
        self.ready = self.joins = NOBODY
