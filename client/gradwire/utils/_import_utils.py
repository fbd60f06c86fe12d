"""``torch.utils._import_utils``: packages that may be missing."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether a package is installed. It is not imported."""
    return find_spec(name) is not None


@lru_cache(maxsize=1)
def dill_available() -> bool:
    """Whether dill is installed."""
    return _check_module_exists("dill")


@lru_cache(maxsize=1)
def import_dill() -> ModuleType | None:
    """dill, or None where it is not installed."""
    return import_module("dill") if dill_available() else None
