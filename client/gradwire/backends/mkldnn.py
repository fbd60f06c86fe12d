"""``torch.backends.mkldnn``: the switches of a library that gradwire does not use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = False
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """No."""
    return False


@contextmanager
def flags(enabled: bool = False, deterministic: bool = True, allow_tf32: bool = False) -> Iterator[None]:
    """Changes nothing."""
    yield
