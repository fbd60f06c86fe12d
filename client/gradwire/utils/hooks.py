"""``torch.utils.hooks``."""

from .._core.context.hook_handles import RemovableHandle

__all__ = ["RemovableHandle"]
