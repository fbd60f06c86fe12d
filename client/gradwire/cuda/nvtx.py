"""``torch.cuda.nvtx``: marks for NVIDIA's profilers, which do not see the server's process: without effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_depth = [0]


def range_push(msg: str) -> int:
    """Count a range. Returns how many are around it."""
    _depth[0] += 1
    return _depth[0] - 1


def range_pop() -> int:
    """End the innermost range. Returns how many are around it; -1 if there was none."""
    _depth[0] = max(-1, _depth[0] - 1)
    found = _depth[0]
    _depth[0] = max(0, found)
    return found


def range_start(msg: str) -> int:
    """Returns a number for :func:`range_end`."""
    return 0


def range_end(range_id: int) -> None:
    """Without effect."""


def mark(msg: str) -> None:
    """Without effect."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range for the time of a ``with``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
