"""What a program attaches to a tensor: ``tensor.__dict__`` shows that alone, and not what the proxy keeps there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any


class Everything:
    """The base of tensors: it holds their attributes, the proxy's among them."""

    __slots__ = ("__dict__",)


everything = vars(Everything)["__dict__"].__get__
"""The dictionary of all attributes of a tensor."""


class OwnAttributes(MutableMapping[str, Any]):
    """The attributes that a program attached to a tensor. Writing here attaches one."""

    __slots__ = ("_all", "_hidden")

    def __init__(self, attributes: dict[str, Any], hidden: Mapping[str, Any]) -> None:
        self._all, self._hidden = attributes, hidden

    def __getitem__(self, name: str) -> Any:
        if name in self._hidden:
            raise KeyError(name)
        return self._all[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self._hidden:
            raise KeyError(f"{name} is an attribute of gradwire's own")
        self._all[name] = value

    def __delitem__(self, name: str) -> None:
        if name in self._hidden:
            raise KeyError(name)
        del self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._all if name not in self._hidden])

    def __len__(self) -> int:
        return sum(name not in self._hidden for name in self._all)

    def copy(self) -> dict[str, Any]:
        """A dictionary with the same entries."""
        return dict(self)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        from copy import deepcopy

        return deepcopy(dict(self), memo)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}

    def __repr__(self) -> str:
        return repr(dict(self))
