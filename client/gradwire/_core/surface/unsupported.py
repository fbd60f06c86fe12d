"""What PyTorch has and gradwire lacks, told by name at the line that mentions it.

``hasattr`` and ``try: ... except ImportError`` work as a program expects, and a program that does not ask first gets
a ``NotImplementedError``. What a library imports before it knows whether it needs it is in :mod:`.stand_ins`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from gradwire_protocol.errors import Unsupported

_PACKAGE: Final = Path(__file__).parents[2]
_PAGES: Final = (_PACKAGE / "missing-names.md", _PACKAGE.parents[1] / "docs" / "missing-names.md")
"""The page of missing names in an installed package, and in a checkout."""


def where() -> str:
    """Where the names are listed that gradwire lacks: a link to the page on this machine."""
    page = next((page for page in _PAGES if page.is_file()), None)
    return f"{page.as_uri()} lists what is missing, and why" if page else "docs/missing-names.md lists what is missing"


class Absent(AttributeError, Unsupported):
    """A name that a module or class of gradwire has not: an ``AttributeError`` and a ``NotImplementedError``.

    The text is composed when somebody reads it: ``hasattr`` does not. ``name`` remains None, because Python would
    suggest a similar name a second time.
    """

    def __init__(self, owner: ModuleType | type, missing: str, shown: str) -> None:
        Unsupported.__init__(self, f"{shown}.{missing} does not exist in gradwire")
        self.obj = owner
        self.missing = missing
        self.shown = shown

    def __str__(self) -> str:
        near = nearest(self.missing, dir(self.obj))
        meant = f" (the nearest name is {self.shown}.{near})" if near else ""
        return f"{self.args[0]}{meant}: {where()}"

    @property
    def message(self) -> str:
        return str(self)


class AbsentModule(ModuleNotFoundError, Unsupported):
    """A module that gradwire has not: a ``ModuleNotFoundError`` and a ``NotImplementedError``.

    ``name`` remains None: with a name, ``from torch import missing`` would drop the error for a less clear one.
    """

    def __init__(self, name: str) -> None:
        Unsupported.__init__(self, f"{name} does not exist in gradwire: {where()}")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The public name that is most similar to ``name``, if one is similar enough to be meant."""
    public = [other for other in names if not other.startswith("_")]
    return next(iter(get_close_matches(name, public, 1, cutoff=0.75)), None)


def absent(owner: ModuleType | type, name: str, shown: str | None = None) -> Absent:
    """The error for a name that a module or class lacks; ``shown`` is what the program calls its owner."""
    return Absent(owner, name, shown or owner.__name__)


def absent_module(name: str) -> AbsentModule:
    """The error for a module that is asked for by its name."""
    return AbsentModule(name)


def explaining(module: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module, by its name, that tells which name is missing and which is similar."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])
        raise absent(sys.modules[module], name)

    return __getattr__


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
