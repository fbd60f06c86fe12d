"""What the client's mirror of the graph holds, as values that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def node_of(node: Any, spell: Callable[[int], Any]) -> Any:
    """A node and all before it, with ids of tensors spelled so that they can be compared."""
    if node is None:
        return None
    kept = [(c is None, v, at, number and spell(number), meta) for c, v, at, number, meta in node.saved or ()]
    edges = [None if e is None else (e[0].name(), e[1], node_of(e[0], spell)) for e in node.edges]
    return node.name(), node.outs, node.line, node.numbers, kept, edges
