"""Process tuning: allocator, garbage collector, thread switching. Nothing here changes results."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Final

SWITCH_INTERVAL_S: Final = 5e-5
"""With Python's default of 5 ms, a session waits 10 ms for the GIL while another session runs Python code."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEEP_BYTES: Final = 1 << 30
"""The process keeps freed blocks up to this size, which saves page faults."""

_GC_THRESHOLD: Final = (50_000, 50, 100)


def before_numpy() -> None:
    """Set the variables that libraries read once, at import."""
    # Otherwise the threads of OpenBLAS and Numba spin against each other: 88 ms a step instead of 5.7.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # By default OpenBLAS's threads spin for 30 ms on processors that compiled kernels and the client need. With two
    # threads on two processors, a step of a convolutional net takes 11.0 ms; it takes 6.6 when they sleep at once.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    libc = _libc()
    if libc is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, _KEEP_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
        # glibc would give each session's thread an arena, and malloc_trim cannot return up to 64 MB at the end of each.
        # One arena causes no contention, because arrays are allocated under the GIL.
        libc.mallopt(_M_ARENA_MAX, 1)


def after_start() -> None:
    """Exclude everything alive from garbage collection. Call this after all imports."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)


def give_back_memory() -> None:
    """Return freed memory to the system. After :func:`before_numpy`, glibc no longer does it by itself."""
    libc = _libc()
    if libc is not None:
        libc.malloc_trim(0)


def _libc() -> ctypes.CDLL | None:
    """glibc, or ``None`` with another C library."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
