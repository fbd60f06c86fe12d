"""Hooks that all modules share: on their forward and backward, and on what is registered in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gradwire_protocol.errors import GraphError

from ..context.hook_handles import HookTable, RemovableHandle

FORWARD_PRE, FORWARD, BACKWARD_PRE, BACKWARD = range(4)

CALLS: Final = HookTable()
"""Hooks around calls, each with its kind in front: one table, so that a call has one thing to look at."""

BUFFERS: Final = HookTable()
MODULES: Final = HookTable()
PARAMETERS: Final = HookTable()

_global_is_full_backward_hook: bool | None = None


def calls_of(kind: int) -> list[Any]:
    """The hooks of one kind that all modules share, in order."""
    return [entry[1:] for entry in list(CALLS.values()) if entry[0] == kind]


def replaced(table: HookTable, module: Any, name: str, member: Any) -> Any:
    """What the registration hooks of a table make of a member."""
    for hook in list(table.values()):
        changed = hook(module, name, member)
        if changed is not None:
            member = changed
    return member


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before each forward of any module, before the module's own hooks.

    What it returns, if not None, replaces the arguments.
    """
    return CALLS.register((FORWARD_PRE, hook, False))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, result)`` after each forward of any module, before the module's own hooks.

    What it returns, if not None, replaces the result. With ``with_kwargs`` the keyword arguments stand before the
    result; with ``always_call`` it is called after a failed forward, too.
    """
    return CALLS.register((FORWARD, hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before gradients pass any module; see
    :meth:`~gradwire.nn.Module.register_full_backward_pre_hook`."""
    return CALLS.register((BACKWARD_PRE, hook))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` once gradients have passed any module; see
    :meth:`~gradwire.nn.Module.register_full_backward_hook`.

    Raises:
        GraphError: when hooks of the older kind were registered for all modules.
    """
    _be(True)
    return CALLS.register((BACKWARD, hook, True))


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` at the node that made any module's result; see
    :meth:`~gradwire.nn.Module.register_backward_hook`.

    Raises:
        GraphError: when full backward hooks were registered for all modules.
    """
    _be(False)
    return CALLS.register((BACKWARD, hook, False))


def _be(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise GraphError(MIXED.format("all modules"))
    _global_is_full_backward_hook = full


MIXED: Final = (
    "{} cannot have both kinds of backward hooks, those of register_backward_hook and of register_full_backward_hook: "
    "use the full ones alone"
)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when any module registers a buffer; what it returns, if not None, is
    registered instead."""
    return BUFFERS.register(hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when any module registers a module; what it returns, if not None, is
    registered instead."""
    return MODULES.register(hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, param)`` when any module registers a parameter; what it returns, if not None, is
    registered instead."""
    return PARAMETERS.register(hook)
