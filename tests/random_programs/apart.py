"""Programs generated in a separate process, because some crash torch in the middle of a backward."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from .running import Program
from .writing import written


class Apart:
    """Writes programs in another process.

    Attributes:
        crashed: the seeds of the programs that ended it.
    """

    def __init__(self, write: Callable[[int], Program] = written) -> None:
        self._write = write
        self._process: ProcessPoolExecutor | None = None
        self.crashed: list[int] = []

    def written(self, seed: int) -> Program | None:
        """The program of a seed, or None where torch does not survive it."""
        if self._process is None:
            self._process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            return self._process.submit(self._write, seed).result()
        except BrokenProcessPool:
            self.close()
            self.crashed.append(seed)
            return None

    def close(self) -> None:
        """End the other process."""
        if self._process is not None:
            self._process.shutdown()
            self._process = None
