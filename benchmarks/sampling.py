"""Samplers of a process's threads, a thousand times per second, inside the process.

:class:`Sampler` is a thread. A sample needs the interpreter lock: a thread inside a kernel that released the lock shows
up at the kernel's call; one that holds it shows up right after the call, usually on the same line. :class:`Alarm`
samples only the main thread, from a signal handler, without that bias. Waiting threads are not counted.
"""

from __future__ import annotations

import signal
import sys
import sysconfig
import threading
import time
from collections import Counter
from types import FrameType
from typing import Any, Final

LOOK_EVERY_S: Final = 0.001
DEPTH: Final = 40

STANDARD: Final = sysconfig.get_paths()["stdlib"]
WAITING: Final = {
    "wait", "wait_for", "acquire", "select", "poll", "get", "_recv", "recv", "recv_into", "accept", "run_forever",
    "run", "_worker", "_run_once", "_wait_for_tstate_lock", "run_until_complete",
}  # fmt: skip
"""Functions of the standard library in which a thread does nothing."""
READING: Final = {"_watch_stdin", "InlineHost._work", "Connection._readable", "serve"}
"""Functions of our own that wait inside a call: the server for its end or for work, the client for an answer."""

Place = tuple[str, str, int]
"""File, function, line."""


class Sampler:
    """Counts stacks, innermost line first, from :meth:`start` to :meth:`stop`.

    Attributes:
        looks: the number of samples.
        stacks: the count of each stack, over all busy threads.
    """

    def __init__(self) -> None:
        self.looks = 0
        self.stacks: Counter[tuple[Place, ...]] = Counter()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = self._took = 0.0

    def start(self) -> None:
        """Reset and begin."""
        self.looks = 0
        self.stacks.clear()
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._began = time.perf_counter()
        self._thread.start()

    def stop(self) -> float:
        """End. Returns the seconds per sample."""
        self._took = time.perf_counter() - self._began
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        return self._took / max(1, self.looks)

    def _run(self) -> None:
        own = threading.get_ident()
        while not self._stopped.is_set():
            time.sleep(LOOK_EVERY_S)
            self.looks += 1
            for thread, frame in sys._current_frames().items():
                stack = _stack(frame) if thread != own else ()
                if stack:
                    self.stacks[stack] += 1


class Alarm:
    """Counts stacks of the main thread, like a :class:`Sampler`; use it in that thread."""

    def __init__(self) -> None:
        self.looks = 0
        self.stacks: Counter[tuple[Place, ...]] = Counter()
        self._before: Any = None
        self._began = 0.0

    def start(self) -> None:
        """Begin."""
        self._before = signal.signal(signal.SIGALRM, self._look)
        self._began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, LOOK_EVERY_S, LOOK_EVERY_S)

    def stop(self) -> float:
        """End. Returns the seconds per sample."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)
        return (time.perf_counter() - self._began) / max(1, self.looks)

    def _look(self, _: int, frame: FrameType | None) -> None:
        self.looks += 1
        stack = _stack(frame) if frame is not None else ()
        if stack:
            self.stacks[stack] += 1


def _stack(frame: FrameType | None) -> tuple[Place, ...]:
    found: list[Place] = []
    while frame is not None and len(found) < DEPTH:
        code = frame.f_code
        found.append((code.co_filename, code.co_qualname, frame.f_lineno or 0))  # 0 if the frame has no line
        frame = frame.f_back
    file, function, _ = found[0]
    if file == __file__:
        return ()
    standard = file.startswith(STANDARD) and "site-packages" not in file
    waits = function.rpartition(".")[2] in WAITING if standard else function in READING
    return () if waits else tuple(found)
