"""``torch._classes``: classes of compiled libraries, under ``torch.classes``. There are none."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from ._ops import LibraryNotLoaded


class _ClassNamespace(ModuleType):
    """The classes of one namespace: none."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"Class {self.__name__.rpartition('.')[2]}.{name} does not exist: gradwire loads no compiled libraries"
        )


class _Classes:
    """The module ``torch.classes``."""

    loaded_libraries: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _ClassNamespace(f"torch.classes.{name}")
        setattr(self, name, found)
        return found

    def load_library(self, path: Any) -> NoReturn:
        """Refused, as ``torch.ops.load_library``."""
        raise LibraryNotLoaded(path)


classes = _Classes()
