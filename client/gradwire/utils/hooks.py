"""``torch.utils.hooks``."""

from ..hooks import RemovableHandle

__all__ = ["RemovableHandle"]
