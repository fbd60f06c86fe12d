"""Divides the threads of numeric libraries among sessions that compute at the same time.

Two sessions whose matrix products use all processors would mostly wait for each other's threads, so each gets a share.
But the order of additions in a matrix product may depend on the number of threads, and a replayed journal must give the
same bits. So while a session with a journal is open in this process, BLAS uses a fixed number of threads. Compiled
kernels give the same bits on any number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from gradwire_engine.kernels.cpu.threads import use_threads
from gradwire_protocol.awake import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class ThreadedLibrary(Protocol):
    """A loaded BLAS library, as seen by threadpoolctl."""

    def set_num_threads(self, num_threads: int) -> None:
        """Set the number of threads."""


def default_threads() -> int:
    """The number of threads in the environment, else all processors."""
    for name in VARIABLES:
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value):
            return int(value)
    return usable_cores()


def loaded_libraries() -> Sequence[ThreadedLibrary]:
    """The BLAS libraries of this process."""
    from threadpoolctl import ThreadpoolController

    found: Sequence[ThreadedLibrary] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


class Threads:
    """The threads of this process's numeric libraries.

    Args:
        libraries: finds the loaded libraries; called once, on first use.
        kernels: sets the number of threads of compiled kernels.

    Attributes:
        most: the number of threads of a session that computes alone.
    """

    def __init__(
        self,
        libraries: Callable[[], Sequence[ThreadedLibrary]] = loaded_libraries,
        kernels: Callable[[int], None] = use_threads,
    ) -> None:
        self.most = default_threads()
        self._find = libraries
        self._kernels = kernels
        self._libraries: Sequence[ThreadedLibrary] | None = None
        self._lock = threading.Lock()
        self._busy = 1
        self._processes = 1
        self._fixed_count = 0
        self._fixed_threads = self.most
        self._current = 0
        """The libraries' current setting; 0 for their own default."""

    def configure(self, most: int, among: int = 1) -> None:
        """Set the number of threads of one session; 0 for the default.

        ``among`` is the expected number of processes that compute at the same time. It divides the default for sessions
        with a journal, whose number of threads must not change later.
        """
        with self._lock:
            self.most = most or default_threads()
            self._fixed_threads = most or max(1, self.most // among)
            if most:
                self._update()
            elif self._fixed_count:
                self._set()

    def set_busy_sessions(self, busy: int) -> None:
        """Set how many sessions of this process compute at the same time."""
        with self._lock:
            self._busy = busy
            self._update()

    def set_processes(self, processes: int) -> None:
        """Set how many processes of the server, this one included, compute at the same time."""
        with self._lock:
            self._processes = processes
            self._update()

    def _update(self) -> None:
        self._set()
        self._kernels(self._share)

    @contextmanager
    def fixed(self, needed: bool) -> Iterator[None]:
        """Fix the number of BLAS threads while a session needs reproducible products, if ``needed``."""
        if not needed:
            yield
            return
        self._count_fixed(1)
        try:
            yield
        finally:
            self._count_fixed(-1)

    def _count_fixed(self, more: int) -> None:
        with self._lock:
            self._fixed_count += more
            if self._current or self._fixed_threads != self.most:
                self._set()

    @property
    def _share(self) -> int:
        return max(1, self.most // (self._busy * self._processes))

    def _set(self) -> None:
        wanted = self._fixed_threads if self._fixed_count else self._share
        if wanted == self._current:
            return
        if self._libraries is None:
            self._libraries = self._find()
        for library in self._libraries:
            library.set_num_threads(wanted)
        self._current = wanted


SHARED: Final = Threads()
