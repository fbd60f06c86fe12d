"""The keys of a shared storage."""

from __future__ import annotations

import re
from typing import Final

_KEY: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def check_key(key: str) -> str:
    """The key, if it consists of plain segments.

    Raises:
        ValueError: when it does not, for example for ``a/../b``.
    """
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r:.100} is not a key of a shared storage")
    return key
