"""``torch.nn.modules.module``: ``Module``, and hooks that all modules share."""

from typing import Any

from ..._core.modules import global_hooks as _hooks
from ..._core.modules.global_hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ..._core.modules.module import Module
from ..._core.modules.state import EXTRA as _EXTRA
from ..._core.modules.state import _IncompatibleKeys

__all__ = [
    "Module", "_IncompatibleKeys", "_addindent", "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip


_EXTRA_STATE_KEY_SUFFIX = _EXTRA
_global_buffer_registration_hooks = _hooks.BUFFERS
_global_module_registration_hooks = _hooks.MODULES
_global_parameter_registration_hooks = _hooks.PARAMETERS
_KINDS = {
    "_global_forward_pre_hooks": _hooks.FORWARD_PRE, "_global_forward_hooks": _hooks.FORWARD,
    "_global_backward_pre_hooks": _hooks.BACKWARD_PRE, "_global_backward_hooks": _hooks.BACKWARD,
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _KINDS:  # what there is now, for programs that ask whether there is any
        return {number: entry[1] for number, entry in _hooks.CALLS.items() if entry[0] == _KINDS[name]}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _has_any_global_hook() -> bool:
    """Whether there are hooks that all modules share."""
    return bool(_hooks.CALLS)


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """What a class without ``forward`` has for it.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(f"{type(self).__name__} defines no forward")


def _addindent(s_: str, numSpaces: int) -> str:
    """A text whose lines but the first are moved right."""
    return s_.replace("\n", "\n" + numSpaces * " ")
