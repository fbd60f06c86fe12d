"""Handles of hooks: what registering one returns, so that it can be removed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from types import TracebackType
from typing import Any, Final
from weakref import ref

_numbers: Final = count()


class HookTable(dict[int, Any]):
    """Hooks by number, in the order they run. A class of its own, since a plain dict takes no weak references."""

    def register(self, hook: Any, *, first: bool = False, marked: Iterable[HookTable] = ()) -> RemovableHandle:
        """Add a hook at the end, or before all others, and its number to tables of facts about hooks."""
        handle = RemovableHandle(self, extra_dict=list(marked))
        number = handle.id
        for table in marked:
            table[number] = True
        if first:
            later = dict(self)
            self.clear()
            self[number] = hook
            self.update(later)
        else:
            self[number] = hook
        return handle


class RemovableHandle:
    """Removes its hook on :meth:`remove`, or at the end of a ``with`` block. It keeps nothing alive.

    Attributes:
        id: the hook's number.
        hooks_dict_ref: a weak reference to the table that has the hook.

    Args:
        hooks_dict: the table, where the program puts the hook under ``id``.
        extra_dict: another table, or a list of them, that has an entry for the hook, which is removed as well.
    """

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: ref[Any] = ref(hooks_dict)
        self.id: int = next(_numbers)
        tables = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref: tuple[ref[Any], ...] = tuple(ref(table) for table in tables)

    def remove(self) -> None:
        """Take the hook away; nothing happens where it is gone already."""
        for found in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = found()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> Any:
        return self.hooks_dict_ref(), self.id, [found() for found in self.extra_dict_ref]

    def __setstate__(self, state: Any) -> None:
        """A copy, made with the module that has the hook, removes the hook of the copied module."""
        table, self.id, extra = state
        self.hooks_dict_ref = ref(HookTable() if table is None else table)
        self.extra_dict_ref = tuple(ref(one) for one in extra if one is not None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
