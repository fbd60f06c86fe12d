"""``torch.utils``: checkpointing, hook handles, DLPack, data sets, nested containers."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

from gradwire_protocol.errors import Unsupported

from . import checkpoint, deterministic, dlpack, hooks

if TYPE_CHECKING:
    from . import data

__all__ = ["checkpoint", "data", "deterministic", "dlpack", "hooks", "set_module", "swap_tensors"]


def set_module(obj: Any, mod: str) -> None:
    """Say that a function or class belongs to a module.

    Raises:
        TypeError: when the module is not a name.
    """
    if not isinstance(mod, str):
        raise TypeError(f"mod is a module's name, not {type(mod).__name__}")
    obj.__module__ = mod


def swap_tensors(t1: Any, t2: Any) -> NoReturn:
    """Not available: what two tensors are is known to their session.

    Raises:
        Unsupported: always.
    """
    raise Unsupported("torch.utils.swap_tensors is not supported by gradwire: assign or copy_ the tensors")


def __getattr__(name: str) -> object:
    if not name.startswith("__") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")  # not every program has data sets, or uses the others
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
