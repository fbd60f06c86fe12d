"""Changing tensors that backward needs: inside the context, what was saved is copied before it is written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, ref

from gradwire_protocol.errors import GraphError

from .._core.context.modes import MODES, no_grad
from .._core.tensor.saved_tensors import saved_tensors_hooks


class _Handle:
    """Stands for one saved tensor."""

    __slots__ = ("__weakref__",)


class SavedAndChanged:
    """The saved tensors of one :func:`allow_mutation_on_saved_tensors`: as they are, or copied before a change."""

    def __init__(self) -> None:
        self.original: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self.cloned: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self._by_memory: dict[int, dict[int, ref[_Handle]]] = {}

    def keep(self, tensor: Any) -> _Handle:
        """Note a tensor that an operation saves; without its history, which would be a cycle. Saved several times
        between two changes, it is copied once."""
        held = self._by_memory.setdefault(id(tensor._cell()), {})
        known = held.get(tensor._id)
        handle = None if known is None else known()
        if handle is None:
            handle = _Handle()
            self.original[handle] = tensor.detach()
            held[tensor._id] = ref(handle)
        return handle

    def find(self, handle: _Handle) -> Any:
        """The values that were saved.

        Raises:
            AssertionError: outside of the context, as in PyTorch.
        """
        found = self.cloned.get(handle)
        if found is None:
            found = self.original.get(handle)
        if MODES.mutations is not self or found is None:
            raise AssertionError(
                "backward has to run inside the allow_mutation_on_saved_tensors context in which forward ran: what was "
                "copied is dropped at its end"
            )
        return found

    def before_change(self, target: Any) -> None:
        """Copy what is saved of the memory that is about to be written to."""
        for reference in self._by_memory.pop(id(target._cell()), {}).values():
            handle = reference()
            if handle is not None and handle in self.original:
                with no_grad():
                    self.cloned[handle] = self.original.pop(handle).clone()

    def clear(self) -> None:
        """Drop everything."""
        self.original.clear()
        self.cloned.clear()
        self._by_memory.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[SavedAndChanged]:
    """Let tensors be changed in place although backward needs them as they were: they are copied before the change.

    Forward and backward both belong inside.

    Raises:
        GraphError: when it is nested.
    """
    if MODES.mutations is not None:
        raise GraphError("allow_mutation_on_saved_tensors cannot be nested: one context is enough")
    kept = MODES.mutations = SavedAndChanged()
    try:
        with saved_tensors_hooks(kept.keep, kept.find):
            yield kept
    finally:
        MODES.mutations = None
        kept.clear()
