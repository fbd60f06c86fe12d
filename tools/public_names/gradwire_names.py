"""Which of PyTorch's public names gradwire lacks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import gradwire
from gradwire._core.surface.argument_aliases import HINTS, NUMPY, OF_ONE, ONE_VALUE
from gradwire._core.surface.stand_ins import StandIn
from gradwire._core.surface.unsupported import AbsentAttribute
from gradwire.cli.running.names import counterpart

if TYPE_CHECKING:
    from .torch_names import Names

_MISSING: Final = object()
_OPTION_OF_NATIVE: Final = frozenset({"self", "input", "tensor"})
"""How PyTorch's declarations call a first operand, in one place so and in another so."""
_REFUSING: Final = "torch.fx.immutable_collections."
"""Classes that exist to refuse what changes them, in PyTorch as well."""


def lacking(names: Names) -> Iterator[str]:
    """The full names of what is missing: ``torch.x`` for a module or its name, ``torch.x.C.m`` for a member of a
    class, ``torch.x.f(k=)`` for a keyword. What is in a missing module, or a member of a missing class, is not
    repeated, nor are members of a class under its other names. A name that raises in every call counts as missing, and
    a package that is named as a whole does if some of its names do.
    """
    for module_name, described in names.items():
        module = _module(module_name)
        if module is None or (not described and _refuses_some(module)):
            yield module_name
            continue
        for name, entry in described.items():
            full = f"{module_name}.{name}"
            value = _attribute(module, name)
            if value is _MISSING:
                yield full
                continue
            if _refused(value):
                yield full
            elif isinstance(entry, dict):
                yield from _lacking_members(value, entry, full)
            elif isinstance(entry, list):
                yield from (f"{full}({keyword}=)" for keyword in _not_taken(value, entry, name))


def _module(name: str) -> ModuleType | None:
    if name == "torch":
        return gradwire
    found = counterpart(name.removeprefix("torch."))
    return None if found is None else import_module(found)


def _refuses_some(package: ModuleType) -> bool:
    """Whether a name of a package, or of a module below it, is refused at the call."""
    if any(isinstance(getattr(package, name, None), StandIn) for name in dir(package)):
        return True
    below = iter_modules(getattr(package, "__path__", ()), f"{package.__name__}.")
    return any(_refuses_some(import_module(entry.name)) for entry in below)


def _attribute(owner: Any, name: str) -> Any:
    try:
        value = getattr(owner, name)
    except (AttributeError, NotImplementedError):
        return _MISSING
    return value


def _lacking_members(cls: Any, members: dict[str, list[str]], full: str) -> Iterator[str]:
    for name, keywords in members.items():
        if name == "__init__":
            yield from (f"{full}({keyword}=)" for keyword in _not_taken(cls, keywords, name))
            continue
        value = inspect.getattr_static(cls, name, _MISSING)
        if value is _MISSING and name in _annotated(cls):
            continue  # an attribute of its instances
        if value is _MISSING or (_refused(value) and not full.startswith(_REFUSING)):
            yield f"{full}.{name}"
        elif callable(value):
            yield from (f"{full}.{name}({keyword}=)" for keyword in _not_taken(value, keywords, name))


def _refused(value: Any) -> bool:
    """Whether a name is there to raise an error: where it is mentioned, or in any call of it."""
    if isinstance(value, (AbsentAttribute, StandIn)):
        return True
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return inspect.isfunction(function) and function.__annotations__.get("return") in ("NoReturn", NoReturn)


def _annotated(cls: Any) -> set[str]:
    """Attributes that instances have, which the class only declares."""
    return {name for base in getattr(cls, "__mro__", ()) for name in vars(base).get("__annotations__", {})}


def _not_taken(function: Any, keywords: list[str], name: str) -> list[str]:
    """The keywords that a function does not take. One that says nothing of its parameters is not asked."""
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return []
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return []
    own_name = getattr(function, "__name__", name)
    plain = name.removesuffix("_copy")
    taken = {*parameters, *_OPTION_OF_NATIVE, *OF_ONE.get(name, {}), *OF_ONE.get(own_name, {})}
    taken |= {*ONE_VALUE.get(name, {}), *HINTS.get(plain, ())}
    taken |= {other for other, own in NUMPY.items() if own in taken}
    return [keyword for keyword in keywords if keyword not in taken]
