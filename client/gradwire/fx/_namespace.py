"""Names of values in a graph: each one a valid identifier, none twice, none that hides a builtin."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any, Final

_NAME: Final = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")
_NO_NAME: Final = re.compile(r"[^0-9a-zA-Z_]+")
TAKEN: Final[dict[str, Any]] = {**dict.fromkeys(keyword.kwlist, keyword), **vars(builtins)}
"""Names that only their own object may have."""


def snake_case(name: str) -> str:
    """``pascalCase`` as ``pascal_case``."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


class Namespace:
    """Gives out names."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like ``candidate``, with a number behind it where that is taken. An object keeps its first name."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        if _NAME.match(candidate) is None:
            candidate = _NO_NAME.sub("_", candidate) or "_unnamed"
            if candidate[0].isdigit():
                candidate = f"_{candidate}"
        match = _NAME.match(candidate)
        if match is None:
            raise AssertionError(f"{candidate!r:.60} is no name")
        base, digits = match.groups()
        if digits is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if TAKEN.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        else:
            number = int(digits)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object a name that :meth:`create_name` made without one."""
        if self._obj_to_name.setdefault(obj, name) != name:
            raise AssertionError(f"{obj!r} has a name already: {self._obj_to_name[obj]}")

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)
