"""Ranges of a kernel on several threads.

The threads are few and the process's own, so that any number of sessions shares them: whoever calls works itself, and
others join if they have nothing else to do. Nobody ever waits for a thread that has not begun. One that has worked
looks for more for a while before it falls asleep: kernels follow each other sooner than it could be woken.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final

import numpy as np

from gradwire_protocol.awake import usable_cores

from ...runtime.arrays import Array

WORTH: Final = 1 << 17
"""Elements below which waking another thread costs more than it saves."""

PARTS: Final = 4
"""Ranges per thread: whoever comes late finds some left."""

AWAKE_NS: Final = 500_000
"""How long a thread looks for more to do, or for the others' end, before it falls asleep."""

PAUSE_NS: Final = 5_000
"""From the call for others until the caller is in its own range, and has let the interpreter go."""

Changed = Callable[[Array, int, int, int, Array | None], bool]
"""``kernels.waiting.changed``."""


def _asleep(board: Array, known: int, patience_ns: int, pause_ns: int, done: Array | None) -> bool:
    return False


_changed: Changed = _asleep


def wait_awake_by(changed: Changed) -> None:
    """Wait with this function, once it is compiled, before falling asleep."""
    global _changed
    _changed = changed


class _Job:
    """A kernel's ranges; each is taken once.

    The caller begins with the first and others with the last: so what one kernel leaves in a core's cache is mostly
    there for the next.
    """

    __slots__ = ("arguments", "board", "bounds", "done", "failure", "finished", "kernel", "lock", "left")

    def __init__(self, kernel: Callable[..., None], arguments: tuple[Any, ...], bounds: list[tuple[int, int]]) -> None:
        self.kernel = kernel
        self.arguments = arguments
        self.bounds = bounds
        self.left = deque(bounds)
        self.lock = threading.Lock()
        self.done = 0
        self.board = np.zeros(1, np.int64)
        """Not 0 any more when all is done."""
        self.finished = threading.Lock()
        """For who has looked at it long enough: free when all is done."""
        self.finished.acquire()
        self.failure: BaseException | None = None

    def work(self, last: bool = False) -> bool:
        """Take ranges until none is left. Returns whether all are done with that, or one has failed; then whoever waits
        is to be told on the board.
        """
        kernel, arguments, take, done = self.kernel, self.arguments, self.left.pop if last else self.left.popleft, 0
        try:
            while True:
                try:
                    start, stop = take()
                except IndexError:
                    break
                done += 1
                kernel(*arguments, start, stop)
        except BaseException as error:
            self.failure = error
        with self.lock:
            self.done += done
            ends = self.finished.locked() and (self.done == len(self.bounds) or self.failure is not None)
            if ends:
                self.finished.release()
        return ends

    def wait(self) -> None:
        """Wait for the ranges that others have begun."""
        if not _changed(self.board, 0, AWAKE_NS, 0, None):
            self.finished.acquire()


class _Crew:
    """The threads beside the caller's, started at first use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.board = np.zeros(1, np.int64)
        """How often there was something to do."""
        self.members = 0
        self.idle = 0
        self.pid = os.getpid()

    def join(self, job: _Job, most: int) -> None:
        """Let threads that are idle work on a job, up to ``most``."""
        with self.lock:
            while self.members < most:
                threading.Thread(target=self._serve, name="compiled-kernels", daemon=True).start()
                self.members += 1
                self.idle += 1
            called = min(self.idle, most)
            self.idle -= called
        for _ in range(called):
            self.jobs.put(job)
        self.board[0] += 1  # after that: whoever sees it finds the job

    def _serve(self) -> None:
        told = np.zeros(1, np.int64)
        """The board of the last job that this thread has ended."""
        while True:
            known = int(self.board[0])
            try:
                job = self.jobs.get_nowait()
            except Empty:
                # Whoever waits goes on when this thread has let the interpreter go: so it is told from in there.
                if _changed(self.board, known, AWAKE_NS, PAUSE_NS, told):
                    continue
                job = self.jobs.get()
            told[0] = 1
            if job.work(True):
                told = job.board
            del job
            with self.lock:
                self.idle += 1


_crew = _Crew()
_threads = 0


def _default() -> int:
    """As many as BLAS is told to take, else the processors of this process."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        told = os.environ.get(name, "")
        if told.isdecimal() and int(told):
            return int(told)
    return usable_cores()


def use_threads(most: int) -> None:
    """Let a kernel take so many threads, the caller's among them; 0 for the default."""
    global _threads
    _threads = most


def threads() -> int:
    """How many threads a kernel takes at most."""
    global _threads
    if not _threads:
        _threads = _default()
    return _threads


def split(kernel: Callable[..., None], count: int, work: int, *arguments: Any, worth: int | None = None) -> None:
    """``kernel(*arguments, start, stop)`` for the range from 0 to ``count``, cut for several threads if it is long.

    ``work`` is how many elements one step of the range is, ``worth`` from how many on it is cut, where that is not
    :data:`WORTH`. The kernel must give the same for every way of cutting.
    """
    most = threads() if count > 1 and count * work >= (WORTH if worth is None else worth) else 1
    if most == 1:
        kernel(*arguments, 0, count)
        return
    step = max(1, -(-count // (most * PARTS)))
    job = _Job(kernel, arguments, [(start, min(start + step, count)) for start in range(0, count, step)])
    _crew.join(job, min(most, len(job.bounds)) - 1)
    if not job.work():
        job.wait()
    if job.failure is not None:
        raise job.failure
