"""``torch.utils``: checkpointing, hook handles, DLPack, and data sets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import checkpoint, deterministic, dlpack, hooks

if TYPE_CHECKING:
    from . import data

__all__ = ["checkpoint", "data", "deterministic", "dlpack", "hooks"]


def __getattr__(name: str) -> object:
    if name == "data":  # not every program has data sets
        return import_module("gradwire.utils.data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
