"""How many threads numeric libraries take: as many as there are processors, shared by sessions that compute at once.

Two sessions whose matrix products take all processors each would spend most of their time waiting for each other's
threads. So each takes its share of them while others compute, too. The order of additions in a matrix product may
depend on its threads, though, and what a journal replays must come out the same to the last bit: while a session with a
journal is open in this process, products take the number that is set, whoever computes. Compiled kernels give the same
bits on any number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from gradwire_engine.compiled.threads import use_threads
from gradwire_protocol.awake import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class Library(Protocol):
    """A BLAS that is loaded, as threadpoolctl shows it."""

    def set_num_threads(self, num_threads: int) -> None:
        """Take so many from now on."""


def default_threads() -> int:
    """What the environment tells numeric libraries, else all processors."""
    for name in VARIABLES:
        told = os.environ.get(name, "")
        if told.isdecimal() and int(told):
            return int(told)
    return usable_cores()


def loaded_libraries() -> Sequence[Library]:
    """Every BLAS of this process."""
    from threadpoolctl import ThreadpoolController

    found: Sequence[Library] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


class Threads:
    """The threads of this process's numeric libraries.

    Args:
        libraries: finds those that are loaded; asked once, when it first matters.
        kernels: told how many threads compiled kernels take.

    Attributes:
        most: how many one session takes that is alone.
    """

    def __init__(
        self,
        libraries: Callable[[], Sequence[Library]] = loaded_libraries,
        kernels: Callable[[int], None] = use_threads,
    ) -> None:
        self.most = default_threads()
        self._find = libraries
        self._kernels = kernels
        self._libraries: Sequence[Library] | None = None
        self._lock = threading.Lock()
        self._busy = 1
        self._beside = 1
        self._exact = 0
        self._exactly = self.most
        self._taken = 0
        """What the libraries take now; 0 while nobody has told them anything."""

    def configure(self, most: int, among: int = 1) -> None:
        """Let a session take so many; 0 for the default.

        ``among`` divides the default of sessions with a journal, whose number must not change later: that many
        processes like this one may compute at once.
        """
        with self._lock:
            self.most = most or default_threads()
            self._exactly = most or max(1, self.most // among)
            if most:
                self._changed()
            elif self._exact:
                self._set()

    def share(self, busy: int) -> None:
        """So many sessions compute at once from now on."""
        with self._lock:
            self._busy = busy
            self._changed()

    def beside(self, processes: int) -> None:
        """So many processes of the server, this one among them, compute at once from now on."""
        with self._lock:
            self._beside = processes
            self._changed()

    def _changed(self) -> None:
        self._set()
        self._kernels(self._each)

    @contextmanager
    def exact(self, needed: bool) -> Iterator[None]:
        """While a session is open whose products must be the same each time, if that is ``needed``."""
        if not needed:
            yield
            return
        self._need(1)
        try:
            yield
        finally:
            self._need(-1)

    def _need(self, more: int) -> None:
        with self._lock:
            self._exact += more
            if self._taken or self._exactly != self.most:
                self._set()

    @property
    def _each(self) -> int:
        return max(1, self.most // (self._busy * self._beside))

    def _set(self) -> None:
        wanted = self._exactly if self._exact else self._each
        if wanted == self._taken:
            return
        if self._libraries is None:
            self._libraries = self._find()
        for library in self._libraries:
            library.set_num_threads(wanted)
        self._taken = wanted


SHARED: Final = Threads()
