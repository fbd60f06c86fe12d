"""Settings of PyTorch's compilers that programs write and gradwire stores without effect (``torch._dynamo.config``)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ContextDecorator
from types import ModuleType, SimpleNamespace
from typing import Any, cast


class Patch(ContextDecorator):
    """``with config.patch(name=value):``, also as a decorator: the settings have other values inside."""

    def __init__(self, module: ModuleType, changes: Mapping[str, Any]) -> None:
        self._module, self._changes = module, dict(changes)
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._before.append({name: read(self._module, name) for name in self._changes})
        for name, value in self._changes.items():
            write(self._module, name, value)

    def __exit__(self, *error: object) -> None:
        for name, value in self._before.pop().items():
            write(self._module, name, value)


def read(module: ModuleType, name: str) -> Any:
    """A setting by its dotted name. Raises ``AttributeError`` for one that there is not."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def write(module: ModuleType, name: str, value: Any) -> None:
    """Store a setting by its dotted name."""
    *path, last = name.split(".")
    owner: Any = module
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, value)


def declare(module: str, settings: Mapping[str, Any], doc: str) -> None:
    """Make a module hold settings, and ``patch`` and the other functions of PyTorch's such modules.

    Args:
        module: the module's full name.
        settings: the settings with their values; a mapping among them is a group (``config.triton.cudagraphs``).
        doc: what the settings are of.
    """
    own = sys.modules[module]
    names = list(settings)

    def patch(arg1: str | Mapping[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Patch:
        changes = {arg1: arg2} if isinstance(arg1, str) else dict(arg1 or kwargs)
        return Patch(own, cast("Mapping[str, Any]", changes))

    def shallow_copy_dict() -> dict[str, Any]:
        return {name: getattr(own, name) for name in names}

    def load_config(maybe_pickled_config: Mapping[str, Any]) -> None:
        for name, value in maybe_pickled_config.items():
            write(own, name, value)

    patch.__doc__ = f"Settings of {doc} for the time of a ``with`` or of a decorated function."
    shallow_copy_dict.__doc__ = f"The settings of {doc}."
    load_config.__doc__ = f"Store settings of {doc}."
    values = {name: SimpleNamespace(**value) if isinstance(value, dict) else value for name, value in settings.items()}
    vars(own).update(
        values, patch=patch, shallow_copy_dict=shallow_copy_dict, to_dict=shallow_copy_dict,
        get_config_copy=shallow_copy_dict, save_config_portable=shallow_copy_dict, load_config=load_config,
    )  # fmt: skip
