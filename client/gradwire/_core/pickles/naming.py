"""PyTorch's names of gradwire's classes and functions, as pickles have them, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from ..context.size import Size
from ..context.size import device as Device
from ..modules.module import Module
from ..modules.parameter import Parameter
from ..surface.module_aliases import ALIASES
from ..surface.storages import UntypedStorage
from ..surface.typed_storages import TypedStorage
from ..tensor.tensor import Tensor

_LAYERS: Final = "gradwire.nn.modules"
_FUNCTIONS: Final = "gradwire.nn.functional"

_SPECIAL: Final[dict[Any, str]] = {
    Module: "torch.nn.modules.module Module", Parameter: "torch.nn.parameter Parameter", Size: "torch Size",
    Device: "torch device", Tensor: "torch Tensor", UntypedStorage: "torch.storage UntypedStorage",
    TypedStorage: "torch.storage TypedStorage",
}  # fmt: skip


@cache
def layers() -> dict[str, type[Module]]:
    """The classes of layers and losses by their names in pickles."""
    import_module(_LAYERS)
    found: dict[str, type[Module]] = {"torch.nn.modules.module Module": Module}
    for full, sources in list(ALIASES.items()):
        if not full.startswith(f"{_LAYERS}."):
            continue
        for name, home in sources.items():
            member = getattr(import_module(home), name, None)
            if isinstance(member, type) and issubclass(member, Module):
                found[f"{full.replace('gradwire', 'torch', 1)} {name}"] = member
    return found


@cache
def _of_layers() -> dict[type[Module], str]:
    return {kind: name for name, kind in layers().items()}


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """What a module may keep for an attribute: functions of ``torch.nn.functional`` by their names in pickles. Files
    name them, nothing in a file calls them."""
    module = import_module(_FUNCTIONS)
    found = {
        name: member for name, member in vars(module).items()
        if name[0] != "_" and callable(member) and not isinstance(member, type)
    }  # fmt: skip
    compiled = {f"torch._C._nn {name}": member for name, member in found.items()}  # where PyTorch's are built in
    return compiled | {f"torch.nn.functional {name}": member for name, member in found.items()}


def name_of(value: Any) -> str | None:
    """The name of a class or function of gradwire's in PyTorch, as ``"module name"``; ``None`` if PyTorch has none."""
    known = _SPECIAL.get(value) or (_of_layers().get(value) if isinstance(value, type) else None)
    if known is not None:
        return known
    name = str(getattr(value, "__qualname__", ""))
    if functions().get(f"torch.nn.functional {name}") is value:
        return f"torch.nn.functional {name}"
    home = str(getattr(value, "__module__", "")).replace("torch", "gradwire", 1)
    parts = home.split(".")
    for length in range(1, len(parts) + 1):
        package = ".".join(parts[:length])
        if parts[length - 1].startswith("_"):
            break
        if getattr(sys.modules.get(package), name, None) is value:
            return f"{package.replace('gradwire', 'torch', 1)} {name}"
    return None


def belongs_to_gradwire(value: Any) -> bool:
    """Whether a class or function is one of gradwire's own, not of the program's or another library's."""
    first = str(getattr(value, "__module__", "")).partition(".")[0]
    return first == "gradwire" or (first == "torch" and name_of(value) is not None)
