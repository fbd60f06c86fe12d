"""Lists and dicts that cannot be changed: arguments of nodes, whose users the graph counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from gradwire_protocol.errors import ArgumentTypeError


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise ArgumentTypeError(
        f"{type(self).__name__!r} object does not support mutation: arguments of nodes are replaced as a whole; "
        "change a copy (list(...), dict(...)) and assign it to the node's args or kwargs"
    )


class immutable_list(list[Any]):
    """A list that refuses changes."""

    __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that refuses changes."""

    def __init__(self, items: Mapping[Any, Any] | Iterable[Any] = (), /, **named: Any) -> None:
        super().__init__(items, **named)

    __delitem__ = __setitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


__all__ = ["immutable_dict", "immutable_list"]
