"""``torch.utils.hooks``: handles of hooks."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from .._core.context.hook_handles import RemovableHandle
from .._core.surface.stand_ins import stand_ins as _stand_ins

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

Hook = TypeVar("Hook")


def unserializable_hook(f: Hook) -> Hook:
    """Mark a hook, so that nobody is warned when its tensor is saved without it."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of hooks on a tensor that are not saved with it."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"the hook {hook!r} is not saved with its tensor: torch.utils.hooks.unserializable_hook marks it",
                stacklevel=2,
            )


globals().update(_stand_ins(__name__, "BackwardHook", "Module.register_full_backward_hook adds hooks"))
