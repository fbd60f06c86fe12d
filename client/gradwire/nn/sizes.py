"""Arguments that are one int or one int per dimension."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError


def per_dimension(value: Any, count: int) -> tuple[int, ...]:
    """``value`` as ``count`` ints: a single one is repeated.

    Raises:
        ArgumentValueError: for another number of ints.
    """
    if isinstance(value, (tuple, list)):
        if len(value) != count:
            raise ArgumentValueError(f"{value!r} has {len(value)} entries, one int or {count} are needed")
        return tuple(value)
    return (value,) * count


def as_shape(value: Any) -> tuple[int, ...]:
    """A shape that may be given as its only extent."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
