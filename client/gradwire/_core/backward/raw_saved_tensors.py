"""Tensors that nodes keep, before they are unpacked: ``grad_fn._raw_saved_self``, ``_raw_saved_tensors``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, GraphError

from ..context.modes import MODES
from ..tensor.saved_tensors import SavedTensor


class RawSavedTensor:
    """A tensor that a node keeps for backward, as ``torch.autograd.SavedTensor``. Only nodes make them."""

    __slots__ = ()

    def __init__(self) -> None:
        """Refused for the program.

        Raises:
            GraphError: when a program calls this class.
        """
        raise GraphError("a SavedTensor is made by the node that keeps it: see grad_fn._raw_saved_*")

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Keep what ``pack_hook`` makes of the tensor in its place; ``unpack_hook`` turns that into the tensor again.

        Raises:
            ArgumentTypeError: for hooks that are no functions.
            GraphError: when the node was freed, keeps no tensor here, or has hooks here already.
        """
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise ArgumentTypeError(f"register_hooks takes two functions, not {type(hook).__name__}")
        self._pack(pack_hook, unpack_hook)

    def _pack(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        raise NotImplementedError


class FunctionSavedTensor(RawSavedTensor):
    """One of the tensors that a custom Function saved; ``None`` may be among them."""

    __slots__ = ("_at", "_context")

    def __init__(self, context: Any, at: int) -> None:
        self._context, self._at = context, at

    def _pack(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        kept = self._context._saved
        if kept is None:
            raise GraphError(f"what {self._context.label} saved was freed by an earlier backward: it takes no hooks")
        saved: SavedTensor | None = kept[self._at]
        if saved is None:
            raise GraphError(f"{self._context.label} saved None here, not a tensor: it takes no hooks")
        if saved.has_hooks:
            raise GraphError(f"tensor {self._at} of {self._context.label} has hooks already: they are registered once")
        value = saved.unpack()
        kept[self._at] = saved_under(pack_hook, unpack_hook, value, self._context, saved.is_result)


def saved_under(pack_hook: Any, unpack_hook: Any, value: Any, node: Any, is_result: bool) -> SavedTensor:
    """A tensor that a node keeps through these hooks, whichever others are in force."""
    before = MODES.packing
    MODES.packing = ((pack_hook, unpack_hook),)
    try:
        return SavedTensor(value, node, is_result)
    finally:
        MODES.packing = before
