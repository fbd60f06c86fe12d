"""Handles of hooks: what registering one returns, so that it can be removed."""

from __future__ import annotations

from itertools import count
from types import TracebackType
from typing import Any, Final
from weakref import ref

_numbers: Final = count()


class HookTable(dict[int, Any]):
    """Hooks by number, in the order they run. A class of its own, since a plain dict takes no weak references."""

    def register(self, hook: Any, *, first: bool = False) -> RemovableHandle:
        """Add a hook at the end, or before all others."""
        number = next(_numbers)
        if first:
            later = dict(self)
            self.clear()
            self[number] = hook
            self.update(later)
        else:
            self[number] = hook
        return RemovableHandle(self, number)


class RemovableHandle:
    """Removes its hook on :meth:`remove`, or at the end of a ``with`` block. It keeps nothing alive.

    Attributes:
        id: the hook's number.
        hooks_dict_ref: a weak reference to the table that has the hook.
    """

    def __init__(self, table: HookTable, number: int) -> None:
        self.hooks_dict_ref = ref(table)
        self.id = number

    def remove(self) -> None:
        """Take the hook away; nothing happens where it is gone already."""
        table = self.hooks_dict_ref()
        if table is not None:
            table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
