"""``torch.nn.modules.module``: ``Module``, and hooks that all modules share."""

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
from ..._core.modules.state import _IncompatibleKeys

__all__ = [
    "Module", "_IncompatibleKeys", "_addindent", "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip


def _addindent(s_: str, numSpaces: int) -> str:
    """A text whose lines but the first are moved right."""
    return s_.replace("\n", "\n" + numSpaces * " ")
