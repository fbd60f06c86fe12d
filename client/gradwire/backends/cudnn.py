"""``torch.backends.cudnn``: switches that programs set. cuDNN is not used, so they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = False
benchmark = False
benchmark_limit = 10
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """No: convolutions are CuPy's matrix products."""
    return False


def version() -> None:
    """There is none."""


def is_acceptable(tensor: object) -> bool:
    """Whether cuDNN would take the tensor: no."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Other switches for the extent of a ``with``."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = [globals()[name] for name in names]
    globals().update(zip(names, (enabled, benchmark, benchmark_limit, deterministic, allow_tf32)))
    try:
        yield
    finally:
        globals().update(zip(names, before))
