"""What makes a process a good host for tensors: allocator, garbage collector, thread switching.

Each of these was measured (docs/architecture.md); none changes results.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Final

SWITCH_INTERVAL_S: Final = 5e-5
"""With Python's default of 5 ms, a session waits 10 ms for its turn beside another one that is busy in Python."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEEP_BYTES: Final = 1 << 30
"""Blocks up to this size stay with the process when freed, instead of being page-faulted in again."""

_GC_THRESHOLD: Final = (50_000, 50, 100)


def before_numpy() -> None:
    """Set what libraries read once, when they are loaded."""
    # OpenBLAS's and Numba's threads otherwise spin against each other: 88 ms instead of 5.7 a step.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # They would look for work for 30 ms, on the processors that compiled kernels and the client want: a step of a
    # convolutional net takes 11.0 ms with two threads on two processors, and 6.6 when they fall asleep at once.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    libc = _libc()
    if libc is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, _KEEP_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
        # Each session has a thread, and glibc would give each thread an arena, whose end malloc_trim cannot give back:
        # up to 64 MB in each. Arrays are allocated under the interpreter's lock, so nobody waits for the one arena.
        libc.mallopt(_M_ARENA_MAX, 1)


def after_start() -> None:
    """Call when everything is imported: what lives until the end is no longer searched for garbage."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)


def give_back_memory() -> None:
    """Return freed memory to the system, which :func:`before_numpy` keeps from happening by itself."""
    libc = _libc()
    if libc is not None:
        libc.malloc_trim(0)


def _libc() -> ctypes.CDLL | None:
    """glibc, or ``None`` where the C library is another one."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
