"""Tensors of a program's own classes: their ops are left to ``__torch_function__``, which keeps the class by default.

What is looked at is each op of the table: a function that is several ops here is left to the class op by op. While
there is no tensor of such a class, and no mode, no op looks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError

from .dispatch import Entry, call
from .methods import GENERATED, attach, function_of
from .modes import MODES
from .tensor import LATER, Tensor
from .tensor import _Moved as MOVED

_DEFAULTS: Final[dict[str, Callable[..., Any]]] = {}


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


def _public(entry: Entry) -> Any:
    """The function that stands for an op."""
    name = entry.op.name
    found = GENERATED.get(name) or _DEFAULTS.get(name)
    if found is None:
        found = _DEFAULTS[name] = function_of(entry.op)
    return found


def left_to_classes(entry: Entry, values: list[Any]) -> Any:
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


def as_class(made: Tensor, cls: type[Tensor]) -> Any:
    """A proxy that nobody else holds, as one of a class of the program's."""
    if type(made) is not cls:
        made.__class__ = cls
    if handler_of(cls) is not None and not MODES.classes:
        MODES.leave_to_classes()
    return made


def converted(made: Any, cls: type[Tensor], args: tuple[Any, ...] = ()) -> Any:
    """Results as tensors of a class, those in sequences included. What is of it already, or an operand, stays so."""
    if isinstance(made, (tuple, list)):
        parts = [converted(part, cls, args) for part in made]
        return type(made)(*parts) if hasattr(made, "_fields") else type(made)(parts)
    if not isinstance(made, Tensor) or isinstance(made, cls) or any(made is value for value in args):
        return made
    return as_class(made, cls) if type(made) is Tensor else as_subclass(made, cls)


def like(made: Tensor, other: Tensor) -> Any:
    """A new tensor as one of the class of another, where ops are left to that."""
    kind = type(other)
    return made if MODES.without_classes or handler_of(kind) is None else converted(made, kind)


@classmethod  # type: ignore[misc]
def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run a function and give its results this class. A subclass that defines its own decides what is run."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with without_classes():
        made = func(*args, **(kwargs or {}))
    return converted(made, cls, args)


def as_subclass(self: Tensor, cls: type[Tensor]) -> Any:
    """The same tensor as one of a subclass of Tensor. Gradients flow through it."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise ArgumentTypeError(f"as_subclass takes a subclass of Tensor, not {cls!r:.60}")
    with without_classes(), within(()):
        return as_class(call("alias", self), cls)


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
    """The memory of a tensor as one of a subclass, without its history."""
    with without_classes(), within(()):
        made = as_class(call("detach", data), cls)
    return made.requires_grad_() if require_grad else made


attach("__torch_function__", _torch_function)
MOVED.__torch_function__ = classmethod(refuses_overrides)  # type: ignore[attr-defined]
attach("as_subclass", as_subclass)
attach("_make_subclass", staticmethod(_make_subclass))
LATER.update(left_to_classes=left_to_classes, left_to_others=left_to_others, as_class=as_class, like=like)
