"""The module ``torch`` of a program under ``gradwire run``: gradwire's names, and PyTorch's version."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any

import gradwire

from ..._core.surface.unsupported import absent
from . import version
from .finder import register_loaded
from .names import MODULES, counterpart

DEVICE = "GRADWIRE_RUN_DEVICE"
"""The variable that holds the default device."""


class Facade(ModuleType):
    """A module with gradwire's names. It exposes only the submodules that PyTorch has, not gradwire's own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in MODULES:
            raise AttributeError(f"module 'torch' has no attribute {name!r}", name=name, obj=self)
        found = vars(gradwire).get(name)
        if found is None or isinstance(found, ModuleType):
            found = import_module(f"torch.{name}") if counterpart(name) is not None else _lacking(self, name)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        own = [name for name, value in vars(gradwire).items() if not isinstance(value, ModuleType)]
        return sorted({*super().__dir__(), *own, *_modules()})


def _lacking(facade: ModuleType, name: str) -> Any:
    try:
        found = getattr(gradwire, name)
    except AttributeError:
        raise absent(facade, name) from None
    if isinstance(found, ModuleType):
        raise absent(facade, name)
    return found


def _modules() -> list[str]:
    return [name for name in MODULES if counterpart(name) is not None]


def fill(facade: ModuleType) -> None:
    """Set the facade's attributes and apply the command's options."""
    facade.__doc__ = gradwire.__doc__
    facade.__version__ = version.__version__  # type: ignore[attr-defined]
    facade.version = version  # type: ignore[attr-defined]
    facade.torch = facade  # type: ignore[attr-defined]  # PyTorch's package holds itself under its own name
    facade.__all__ = [  # type: ignore[attr-defined]
        name for name, value in vars(gradwire).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    ]
    register_loaded()
    wanted = os.environ.get(DEVICE)
    if wanted:
        gradwire.set_default_device(wanted)
