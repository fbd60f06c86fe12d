"""``torch.jit``: nothing is compiled from Python source here. What only marks code is accepted."""

from __future__ import annotations

from typing import TypeVar

Anything = TypeVar("Anything")


def is_scripting() -> bool:
    """Whether the code runs compiled: never."""
    return False


def is_tracing() -> bool:
    """Whether a trace is being taken: never."""
    return False


def ignore(drop: Anything) -> Anything:
    """Marks what should not be compiled. Nothing is."""
    return drop


def unused(fn: Anything) -> Anything:
    """Marks what a compiled module does without. None is compiled."""
    return fn


def export(fn: Anything) -> Anything:
    """Marks what should be compiled too. Nothing is."""
    return fn
