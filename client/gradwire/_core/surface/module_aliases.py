"""Modules that exist for their path alone: PyTorch's name for a place, with names that are defined elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

ALIASES: Final[dict[str, dict[str, str]]] = {}
"""By the full name of each such module: its names, and the modules that have them."""


def add_aliases(package: str, table: str, home: str) -> None:
    """Enter modules of ``package`` into ``sys.modules``, as if each were a file. Their names are looked up when used.

    Args:
        package: the full name of a package that is being imported.
        table: ``module:`` and the names that it has, for each module. A name is one of ``home``, or ``module.name`` of
            a module below ``home``.
        home: the module that has the names.
    """
    sources: dict[str, str] = {}
    for word in table.split():
        if word.endswith(":"):
            full = f"{package}.{word[:-1]}"
            sources = ALIASES[full] = {}
            setattr(sys.modules[package], word[:-1], _alias(full, sources))
            continue
        below, _, name = word.rpartition(".")
        sources[name] = f"{home}.{below}".rstrip(".")


def forwarding(home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a module that is another module's older name.

    Args:
        home: the full name of the module that has the names. It is imported when the first of them is looked up.
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"the older name of {home} has no attribute {name!r}")
        return getattr(import_module(home), name)

    return __getattr__, lambda: list(import_module(home).__all__)


def _alias(full: str, sources: dict[str, str]) -> ModuleType:
    module = sys.modules[full] = ModuleType(
        full, f"``{full.replace('gradwire', 'torch', 1)}``: PyTorch's path to names."
    )
    module.__spec__ = ModuleSpec(full, None, origin=__file__)

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return list(sources)
        if name not in sources:
            raise AttributeError(f"module {full!r} has no attribute {name!r}")
        found = vars(module)[name] = getattr(import_module(sources[name]), name)
        return found

    vars(module).update(__getattr__=__getattr__, __dir__=lambda: sorted(sources))
    return module
