"""What a program's objects hold in Python beside their tensors, and goes with a checkpoint of a session.

An optimizer's step counts and options, a schedule's epoch, a module's mode: they are no tensors, so no server knows
them. The rooms that define such classes say here how an object of one is kept and put back.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple
from weakref import ref


class Keeper(NamedTuple):
    """How objects of a class are kept: ``take`` returns what ``put`` puts back."""

    take: Callable[[Any], Any]
    put: Callable[[Any, Any], None]


KEEPERS: Final[dict[type, Keeper]] = {}
AFTER_REWIND: Final[list[Callable[[], None]]] = []
"""Called after a rewind: what was noted of tensors that are gone is to be forgotten."""

_CONTAINERS: Final = (list, tuple, dict, OrderedDict, defaultdict)


def copied(value: Any) -> Any:
    """A value with its lists and dictionaries copied, to any depth; all else is the same object."""
    if type(value) not in _CONTAINERS:
        return value
    if isinstance(value, dict):
        found = value.copy()
        for key, each in value.items():
            found[key] = copied(each)
        return found
    return type(value)([copied(each) for each in value])


def take_attributes(thing: Any) -> dict[str, Any]:
    """The attributes of an object, with their lists and dictionaries copied."""
    return {name: copied(value) for name, value in vars(thing).items()}


def put_attributes(thing: Any, kept: dict[str, Any]) -> None:
    """Put back what :func:`take_attributes` gave."""
    vars(thing).clear()
    vars(thing).update({name: copied(value) for name, value in kept.items()})


ATTRIBUTES: Final = Keeper(take_attributes, put_attributes)


class KeptObjects:
    """The state of all objects of the program that a :class:`Keeper` knows."""

    def __init__(self, objects: Iterable[Any]) -> None:
        found: dict[type, Keeper | None] = {}
        self._kept: list[tuple[ref[Any], Keeper, Any]] = []
        for thing in objects:
            kind = type(thing)
            if kind not in found:
                found[kind] = next((KEEPERS[each] for each in kind.__mro__ if each in KEEPERS), None)
            keeper = found[kind]
            if keeper is not None:
                self._kept.append((ref(thing), keeper, keeper.take(thing)))

    def put_back(self) -> None:
        """Give all of them that are still there their state."""
        for reference, keeper, kept in self._kept:
            thing = reference()
            if thing is not None:
                keeper.put(thing, kept)

    def of(self, thing: Any) -> Any:
        """What was kept of an object; ``None`` if it was not there."""
        return next((kept for reference, _, kept in self._kept if reference() is thing), None)

    def everything(self) -> list[tuple[Any, Keeper, Any]]:
        """The objects that are still there, with what was kept of them."""
        return [(thing, keeper, kept) for reference, keeper, kept in self._kept if (thing := reference()) is not None]
