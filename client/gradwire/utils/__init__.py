"""``torch.utils``: checkpointing, hook handles, and data sets."""

from typing import TYPE_CHECKING, Any

from . import checkpoint, hooks

__all__ = ["checkpoint", "data", "hooks"]


if TYPE_CHECKING:
    from . import data as data
else:

    def __getattr__(name: str) -> Any:
        if name == "data":  # not every program has data sets
            from importlib import import_module

            return import_module("gradwire.utils.data")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
