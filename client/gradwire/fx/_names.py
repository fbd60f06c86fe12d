"""What functions and types are called in the code of a graph."""

from __future__ import annotations

import builtins
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from gradwire_protocol.errors import Unsupported

from .._core.tensor.tensor import Tensor

NAMESPACES: Final = (
    "", "nn.functional", "linalg", "special", "fft", "nn.init", "utils.checkpoint", "nn.utils", "fx._symbolic_trace",
)  # fmt: skip
"""Where PyTorch has its functions, those that come first go before: the name that a program reads is there."""
PREFIXED: Final = ("linalg", "special", "fft")
"""Namespaces that PyTorch repeats in a function's name, so that a node is called ``linalg_norm``."""

_homes: dict[Any, tuple[str, str]] = {}


def members(namespace: str) -> Iterator[tuple[str, Any]]:
    """The names of a namespace of ``torch`` and what they are; those are loaded that come at first mention."""
    module = import_module(f"gradwire.{namespace}" if namespace else "gradwire")
    yield from list(vars(module).items())
    if not namespace:  # names that are imported at first mention
        for name, home in list(module._INSIDE_OF.items()):
            if home.startswith(("_core.surface", "_core.composed")):
                yield name, getattr(module, name)


def _find_homes() -> None:
    for namespace in NAMESPACES:
        for name, value in members(namespace):
            if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and not name.startswith("__"):
                if name == getattr(value, "__name__", name) or value not in _homes:
                    _homes.setdefault(value, (namespace, name))


def home_of(function: Any) -> tuple[str, str] | None:
    """The namespace of ``torch`` ("" for itself) that has a function, and its name there; None for other functions."""
    if not _homes:
        _find_homes()
    try:
        found = _homes.get(function)
    except TypeError:  # it has no hash
        return None
    return found


def method_of(function: Any) -> str | None:
    """The name of the method of tensors that a function is; None for other functions."""
    name = getattr(function, "__name__", "")
    if vars(Tensor).get(name) is function:
        return str(name)
    return next((known for known, value in vars(Tensor).items() if value is function), None)


def node_name_of(function: Any) -> str:
    """What a node that calls a function is called after."""
    home = home_of(function)
    if home is None:
        return str(getattr(function, "__name__", type(function).__name__))
    namespace, name = home
    return f"{namespace}_{name}" if namespace in PREFIXED else name


def qualified(target: Any) -> str:
    """The path of a function or class in the language of the program: ``torch.relu``, ``module.function``.

    Raises:
        Unsupported: for what has no name (a lambda of which the source is unknown).
    """
    name = getattr(target, "__name__", None)
    if name is not None and getattr(builtins, name, None) is target:
        return str(name)
    home = home_of(target)
    if home is not None:
        return ".".join(part for part in ("torch", *home) if part)
    if name is None:
        raise Unsupported(f"{target!r:.80} has no name: code that calls it cannot be written")
    if vars(Tensor).get(name) is target:
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(target).split("=")[0].strip()
        except (OSError, TypeError) as error:
            raise Unsupported("a lambda whose source is unknown has no name in the code of a graph") from error
    module = getattr(target, "__module__", None)
    if module is None:
        raise Unsupported(f"the module of {target!r:.80} is unknown: code that calls it cannot be written")
    if module.partition(".")[0] in ("gradwire", "gradwire_protocol"):
        inside = module.partition(".")[2]
        return f"torch.{public_class(target) or f'{inside}.{name}'}"
    return f"{module}.{name}"


def public_class(target: Any) -> str | None:
    """Where ``torch`` has a class or an object of gradwire's, named without ``torch.``."""
    name = target.__name__
    for namespace in ("", "nn", *NAMESPACES[1:]):
        module = import_module(f"gradwire.{namespace}" if namespace else "gradwire")
        if vars(module).get(name) is target:
            return f"{namespace}.{name}" if namespace else str(name)
    return None


def is_own(obj: Any) -> bool:
    """Whether it is gradwire's own, which code reaches by ``torch``."""
    if home_of(obj) is not None:
        return True
    module = getattr(obj, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("gradwire", "gradwire_protocol")


def shown_type(obj: Any) -> str:
    """A type as it is written: builtins by their name, other classes with their module."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        return obj.__qualname__ if obj.__module__ == "builtins" else _class_path(obj)
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


def _class_path(kind: type) -> str:
    if is_own(kind):
        found = public_class(kind)
        if found is not None:
            return f"torch.{found}"
    return f"{kind.__module__}.{kind.__qualname__}"


def generic_parts(obj: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """The class and the arguments of ``list[int]`` and its like; None for other types."""
    origin = typing.get_origin(obj)
    return None if origin is None else (origin, typing.get_args(obj))


Target = Callable[..., Any] | str
