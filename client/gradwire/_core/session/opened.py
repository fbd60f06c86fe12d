"""The sessions that this process has opened, for what looks at all of them."""

from __future__ import annotations

from typing import Any, Final

OPENED: Final[list[Any]] = []
"""Every session that this process opened, also those that are closed: for counting what it did."""
