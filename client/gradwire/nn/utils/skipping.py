"""Modules without initial values, for those that will be loaded."""

from __future__ import annotations

import inspect
from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..._core.modules.module import Module, SomeModule
from .. import init


def skip_init(module_cls: type[SomeModule], *args: Any, **kwargs: Any) -> SomeModule:
    """Make a module whose parameters hold whatever the memory held; nothing is drawn.

    Args:
        module_cls: the class, whose constructor must take a ``device``.

    Raises:
        ArgumentError: for a class that is no module's, or takes no device.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise ArgumentError(f"skip_init takes a class of modules, not {module_cls!r}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise ArgumentError(f"{module_cls.__name__} takes no device: it cannot skip initial values")
    with init.skipped():
        return module_cls(*args, **kwargs)
