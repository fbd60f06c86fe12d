"""Nodes of a graph that are created when somebody asks for one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.memory import MemoryAccount


class LazyNodes:
    """Nodes that are not made yet.

    Args:
        make: makes them, of ``arguments``.
        names: theirs, in the order in which they are made.
    """

    __slots__ = ("_account", "_arguments", "_make", "_nodes", "names")

    def __init__(
        self, make: Callable[..., list[Any]], arguments: tuple[Any, ...], account: MemoryAccount, names: tuple[str, ...]
    ) -> None:
        self._make = make
        self._arguments = arguments
        self._account = account
        self._nodes: list[Any] = []
        self.names = names
        account.nodes += len(names)

    def __del__(self) -> None:
        if not self._nodes:
            self._account.nodes -= len(self.names)

    def at(self, i: int) -> Any:
        """The ``i``-th node."""
        if not self._nodes:
            nodes = self._make(*self._arguments)
            self._account.nodes -= len(nodes)
            self._nodes, self._arguments = nodes, ()
        return self._nodes[i]
