"""``torch.utils``: checkpointing, and the handles of hooks."""

from . import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
