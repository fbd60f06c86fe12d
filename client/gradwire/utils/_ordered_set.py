"""``torch.utils._ordered_set``: a set in the order in which its elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T], Reversible[T], Generic[T]):
    """A set that keeps the order of insertion."""

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __getitem__(self, index: int) -> T:
        return list(self._dict)[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    def add(self, elem: T) -> None:
        """Put an element at the end, unless it is there."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Take an element away, if it is there."""
        self._dict.pop(elem, None)

    def clear(self) -> None:
        """Take all away."""
        self._dict.clear()

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements of this one and of others."""
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements that all have."""
        kept = [set(other) for other in others]
        return OrderedSet(elem for elem in self if all(elem in each for each in kept))

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements that no other has."""
        gone = {elem for other in others for elem in other}
        return OrderedSet(elem for elem in self if elem not in gone)

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """The elements that one of both has."""
        listed = OrderedSet(other)
        return self.difference(listed).union(listed.difference(self))

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether another has all elements."""
        return self <= OrderedSet(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether this one has all elements of another."""
        return self >= OrderedSet(other)

    def copy(self) -> OrderedSet[T]:
        """Another set of the same elements."""
        return OrderedSet(self)
