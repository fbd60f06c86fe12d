"""``torch.ops``: operations by namespace and name: ``torch.ops.mine.scale(x)``, ``torch.ops.aten.add(x, y)``.

Programs register operations with :mod:`torch.library`. Those of ``aten`` are gradwire's functions of the same name.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ._ops import LibraryNotLoaded, _OpNamespace

loaded_libraries: set[str] = set()
"""The compiled libraries that were loaded: none."""

_namespaces: dict[str, _OpNamespace] = {}


def load_library(path: Any) -> NoReturn:
    """Refused: code that is compiled for PyTorch does not run.

    Raises:
        LibraryNotLoaded: always: an ``OSError``, which libraries catch that can do without.
    """
    raise LibraryNotLoaded(path)


def import_module(module: Any) -> None:
    """Import a module, which registers operations."""
    from importlib import import_module as load

    load(module)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    if name not in _namespaces:
        _namespaces[name] = _OpNamespace(name)
    return _namespaces[name]
