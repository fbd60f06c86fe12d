"""``torch.cuda.profiler``: NVIDIA's profilers of this process, which uses no GPU: without effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Without effect."""


def stop() -> None:
    """Without effect."""


@contextmanager
def profile() -> Iterator[None]:
    """``with`` without effect; ``torch.profiler`` shows what the server computes."""
    yield
