"""Tensors as instances of classes of the program."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from ..context.modes import MODES
from ..tensor.tensor import Tensor
from .dispatch import call
from .overrides import handler_of, within, without_classes


def as_class(made: Tensor, cls: type[Tensor]) -> Any:
    """A proxy that nobody else holds, as one of a class of the program's."""
    if type(made) is not cls:
        try:
            made.__class__ = cls
        except TypeError:  # Python changes the class of no object if the other one has slots of its own
            made = _moved(made, cls)
    if handler_of(cls) is not None and not MODES.classes:
        MODES.leave_to_classes()
    return made


def _moved(made: Tensor, cls: type[Tensor]) -> Tensor:
    """What a proxy holds, in a new one of a class. The first is left empty, so that it drops nothing."""
    other = object.__new__(cls)
    for kind in type(made).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if name not in ("__dict__", "__weakref__") and hasattr(made, name):
                setattr(other, name, getattr(made, name))
                delattr(made, name)
    other.__dict__.update(made.__dict__)
    return other


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


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """The same tensor as one of a subclass of Tensor. Gradients flow through it."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise ArgumentTypeError(f"as_subclass takes a subclass of Tensor, not {cls!r:.60}")
    with without_classes(), within(()):
        return as_class(call("alias", self), cls)
