"""The buffers of NumPy's BLAS, brought into memory before the first product needs them.

OpenBLAS lays out blocks of both factors in buffers of its own, and prefetches beyond what it has laid out. Where no
product was large enough yet to write there, those pages are not mapped: each prefetch walks the page tables in vain,
which is slow, above all in a virtual machine. A product of the largest size so far then takes up to three times as
long, each time. So products as large as the buffers are computed at the start of a process.
"""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Final

import numpy as np

SIDE: Final = 768
"""Rows, and columns for each thread, of a product that fills the buffers: OpenBLAS takes at most so many at a time."""

TERMS: Final = (320, 384)
"""The terms of its sums: so many are laid out at a time, which depends on the processor."""

MOST: Final = 4
"""Threads whose buffers are filled, and callers."""


def fill(threads: int) -> None:
    """Compute products that write to all of the buffers, those of the library's threads and those of as many callers at
    once. It takes some tens of milliseconds.

    Args:
        threads: how many threads the library uses for one product.
    """
    callers = min(threads, MOST)
    together = Barrier(callers)

    def multiply() -> None:
        a, b = np.ones((SIDE, TERMS[-1]), np.float32), np.ones((TERMS[-1], SIDE * callers), np.float32)
        together.wait()
        for terms in TERMS:
            np.matmul(a[:, :terms], b[:terms])

    others = [Thread(target=multiply, name="blas-buffers", daemon=True) for _ in range(callers - 1)]
    for thread in others:
        thread.start()
    multiply()
    for thread in others:
        thread.join()
