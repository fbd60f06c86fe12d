"""Many reads of a storage at once, because each may take as long as a round trip to an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeVar

AT_ONCE: Final = 32
BATCH: Final = 8 * AT_ONCE
"""How many results are ahead of their consumer."""

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of ``work`` for each item, in order, computed on up to :data:`AT_ONCE` threads.

    Raises:
        Exception: what ``work`` raises.
    """
    left = iter(items)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gradwire-storage") as pool:
        while batch := list(islice(left, BATCH)):
            yield from pool.map(work, batch)
