"""Kernels whose machine code is taken from the disk cache when it is first needed.

Taking in all of it keeps the interpreter busy for seconds, which the sessions of a new process would feel; a program
needs a tenth of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numba

from ...runtime.arrays import Native

Kernel = Callable[..., Any]

_place: Path | None = None
_LOCK: Final = threading.RLock()


def take_later(place: Path | None) -> None:
    """Let kernels that are made from now on be taken from this folder when they are called; with None let them be
    compiled, or taken from where Numba is told to look, as they are made."""
    global _place
    _place = place


def later() -> Path | None:
    """The folder, where kernels are taken when they are called."""
    return _place


class LoadedLater:
    """A kernel of which the machine code is loaded for one dtype at a time, at the first call with it.

    Args:
        load: gives the kernel for a dtype (None where ``at`` is), and is called at most once for each.
        at: which argument has the dtype that the machine code depends on; None where there is one code for all calls.
    """

    __slots__ = ("_at", "_found", "_load", "_place", "by_threads", "py_func")

    def __init__(self, function: Kernel, load: Callable[[Native | None], Kernel], at: int | None, place: Path) -> None:
        self.py_func = function
        self.by_threads: LoadedLater | None = None
        self._load = load
        self._at = at
        self._place = place
        self._found: dict[Native | None, Kernel] = {}

    def __call__(self, *args: Any) -> Any:
        at = self._at
        dtype = None if at is None else args[at].dtype
        found = self._found.get(dtype)
        if found is None:
            found = self.of(dtype)
        return found(*args)

    def of(self, dtype: Native | None) -> Kernel:
        """The machine code for a dtype."""
        with _LOCK:
            found = self._found.get(dtype)
            if found is None:
                setattr(numba.config, "CACHE_DIR", str(self._place))  # noqa: B010  (read as a function is cached)
                found = self._found[dtype] = self._load(dtype)
            return found


def loaded(kernel: Kernel, dtype: Native) -> Kernel:
    """A kernel as its machine code alone, for a dtype."""
    return kernel.of(dtype) if type(kernel) is LoadedLater else kernel
