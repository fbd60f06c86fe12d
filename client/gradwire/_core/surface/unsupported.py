"""What PyTorch has and gradwire lacks, told by name at the line that mentions it.

``hasattr`` and ``try: ... except ImportError`` work as a program expects, and a program that does not ask first gets
a ``NotImplementedError``.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gradwire_protocol.errors import Unsupported

WHERE = "docs/differences.md lists what is not there"


class Absent(AttributeError, Unsupported):
    """A name that a module of gradwire has not: an ``AttributeError`` and a ``NotImplementedError``."""

    def __init__(self, message: str) -> None:
        Unsupported.__init__(self, message)


class AbsentModule(ModuleNotFoundError, Unsupported):
    """A module that gradwire has not: a ``ModuleNotFoundError`` and a ``NotImplementedError``."""

    def __init__(self, message: str) -> None:
        Unsupported.__init__(self, message)


def absent(owner: ModuleType | type, name: str, shown: str | None = None) -> Absent:
    """The error for a name that a module or class lacks; ``shown`` is what the program calls its owner."""
    error = Absent(f"{shown or owner.__name__}.{name} does not exist in gradwire: {WHERE}")
    error.name, error.obj = name, owner  # with these two Python suggests names that are similar
    return error


def absent_module(name: str) -> AbsentModule:
    """The error for a module that is asked for by its name."""
    return AbsentModule(f"{name} does not exist in gradwire: {WHERE}")


class AbsentAttribute:
    """Stands on a class for an attribute of PyTorch's that gradwire lacks, and tells so when it is looked at.

    A ``__getattr__`` would tell the same, and slow down every attribute that is there.
    """

    __slots__ = ("name", "shown")

    def __init__(self, name: str, shown: str) -> None:
        self.name = name
        self.shown = shown

    def __get__(self, instance: object, owner: type) -> Any:
        raise absent(owner, self.name, self.shown)
