"""Ops that are left to classes and modes of the program (``__torch_function__``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.table import Op

from ..context.modes import MODES
from ..graph.recorded_call import OpBinding
from ..tensor.tensor import Tensor

_DEFAULTS: Final[dict[str, Callable[..., Any]]] = {}
PUBLIC: Final[dict[str, Callable[..., Any]]] = {}
"""The functions that stand for ops, by name. Those that are generated fill it."""

TRACERS: Final[list[Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]]] = []
"""Functions of a function and its arguments that may take over the call, asked before an argument is looked at. They
return NotImplemented where they do not."""

_maker: list[Callable[[Op], Any]] = []


def register_maker(maker: Callable[[Op], Any]) -> None:
    """Have functions that stand for ops without a public one come from here."""
    _maker[:] = [maker]


def refuses_overrides(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_function__`` of classes that ops are not left to, such as ``Parameter``."""
    return NotImplemented


def handler_of(kind: type) -> Any:
    """What handles the ops of a class; None for plain tensors, for classes that do not want it and for all else."""
    if kind is Tensor:
        return None
    handler = getattr(kind, "__torch_function__", None)
    return None if getattr(handler, "__func__", handler) is refuses_overrides else handler


def overriding(values: Any) -> list[Any]:
    """One value of each class among arguments that ops are left to: subclasses before the classes they are of."""
    found: list[Any] = []
    for value in values:
        inner = value if type(value) in (list, tuple) else (value,)
        for item in inner:
            kind = type(item)
            if handler_of(kind) is None or any(type(other) is kind for other in found):
                continue
            at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
            found.insert(at, item)
    return found


def asked(func: Any, among: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the first class gives that does not decline.

    Raises:
        ArgumentTypeError: where all of them do.
    """
    types = tuple(type(value) for value in among)
    for value in among:
        made = type(value).__torch_function__(func, types, args, kwargs)
        if made is not NotImplemented:
            return made
    name = getattr(func, "__name__", func)
    raise ArgumentTypeError(f"{name}: none of the classes {', '.join(t.__name__ for t in types)} handles it")


@contextmanager
def without_classes() -> Iterator[None]:
    """Ops are not left to classes inside of it."""
    before = MODES.without_classes
    MODES.without_classes = True
    try:
        yield
    finally:
        MODES.without_classes = before


@contextmanager
def within(modes: tuple[Any, ...]) -> Iterator[None]:
    """Ops are left to these modes inside of it, the last one first."""
    before = MODES.functions
    MODES.functions = modes
    try:
        yield
    finally:
        MODES.functions = before


def _public(entry: OpBinding) -> Any:
    """The function that stands for an op."""
    name = entry.op.name
    found = PUBLIC.get(name) or _DEFAULTS.get(name)
    if found is None:
        found = _DEFAULTS[name] = _maker[0](entry.op)
    return found


def left_to_classes(entry: OpBinding, values: list[Any]) -> Any:
    """What a mode or a class makes of an op; NotImplemented where it is to be run as it is."""
    modes = MODES.functions
    among = [] if MODES.without_classes else overriding(values)
    if not modes and not among:
        return NotImplemented
    given = list(values)
    while len(given) > entry.op.required and given[-1] is entry.defaults[len(given) - 1]:
        given.pop()
    func, args = _public(entry), tuple(given)
    if modes:
        with within(modes[:-1]):
            made = modes[-1].__torch_function__(func, tuple(type(value) for value in among), args, {})
        if made is not NotImplemented:
            return made
        raise ArgumentTypeError(f"{entry.op.name}: the mode {type(modes[-1]).__name__} does not handle it")
    return asked(func, among, args, {})


def left_to_others(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a class that is no tensor makes of a function that did not take its arguments."""
    among = [value for value in overriding((*args, *kwargs.values())) if not isinstance(value, Tensor)]
    return asked(function, among, args, kwargs) if among else NotImplemented
