"""The threads of compiled kernels: few, and the process's own, so that any number of sessions shares them.

Who calls a kernel works itself; idle threads join. They work without the interpreter's lock all the time
(:mod:`.ranges`), and look for more for a while before they sleep: kernels follow each other sooner than a thread could
be woken.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from gradwire_protocol.awake import usable_cores

from ...runtime.arrays import Array

SHARE: Final = 1 << 14
"""Elements for which another thread takes part, if it is awake: some ten microseconds of work."""

WORTH: Final = 1 << 16
"""Elements from which sleeping threads are woken: that takes longer than a short kernel."""

PARTS: Final = 4
"""Parts of a range per thread: whoever comes late finds some left."""

AWAKE_NS: Final = 150_000
"""How long a thread looks for more to do before it sleeps."""


class BoardFunctions(NamedTuple):
    """What threads do with a board (:mod:`.ranges`).

    Attributes:
        new: makes one.
        serve: works on what is put on it; a thread that finds nothing for so many nanoseconds sleeps.
        dismiss: lets all who serve it return.
    """

    new: Callable[[], Array]
    serve: Callable[[Array, int], None]
    dismiss: Callable[[Array], None]


class _Crew:
    """The threads beside the callers', started at first use."""

    def __init__(self, functions: BoardFunctions) -> None:
        self.functions = functions
        self.board = functions.new()
        self.members = 0
        self._lock = threading.Lock()

    def grow(self, most: int) -> None:
        """Have so many threads."""
        with self._lock:
            while self.members < most:
                arguments = (self.board, AWAKE_NS)
                threading.Thread(
                    target=self.functions.serve, args=arguments, name="compiled-kernels", daemon=True
                ).start()
                self.members += 1


_crew: _Crew | None = None
_threads = 0


def work_by(functions: BoardFunctions) -> None:
    """Let threads work by these functions, which are compiled by now."""
    global _crew
    _crew = _Crew(functions)


def _replace_crew() -> None:
    """In a forked child, where the parent's threads are not."""
    if _crew is not None:
        work_by(_crew.functions)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_crew)


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


def split(kernel: Any, count: int, work: int, *arguments: Any) -> None:
    """``kernel(*arguments, start, stop)`` for the range from 0 to ``count``, by several threads if it is long.

    Args:
        kernel: made by :func:`.native.native`. It must give the same for every way of cutting.
        work: how many elements one step of the range is.

    Raises:
        MemoryError: when a kernel has no memory for what it needs meanwhile.
    """
    size = count * work
    most = min(threads(), size // SHARE, count)
    crew = _crew
    if most < 2 or crew is None:
        kernel(*arguments, 0, count)
        return
    if crew.members < most - 1:
        crew.grow(most - 1)
    step = max(1, -(-count // (most * PARTS)))
    if kernel.by_threads(crew.board, count, step, most, size >= WORTH, *arguments):
        raise MemoryError("no memory for a kernel's own arrays")
