"""What computes the operations that a program has used: searched for once, and looked up by identity from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

FOUND: Final[dict[int, Callable[..., Any]]] = {}
"""By the identity of an operation: what computes it."""
_kept: Final[list[Any]] = []
"""The operations themselves, so that no other gets the identity of one."""


def keep(op: Any, function: Callable[..., Any]) -> None:
    """Remember what computes an operation."""
    _kept.append(op)
    FOUND[id(op)] = function


__all__ = ["FOUND", "keep"]
