"""The client's light mirror of the autograd graph: names and edges, no values.

It answers what a program asks about history (``grad_fn``, ``next_functions``, which leaves receive a gradient)
without a round trip.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

_NAMESPACED = ("AccumulateGrad", "CopyBackwards", "CopySlices")

Edge = tuple["Node", int]


class Node:
    """One recorded operation: ``grad_fn`` as a program sees it."""

    __slots__ = ("__weakref__", "_name", "edges", "metadata_", "retained")

    def __init__(self, name: str, edges: tuple[Edge | None, ...]) -> None:
        self._name = name
        self.edges = edges
        self.retained: list[ref[Any]] | None = None
        self.metadata_: dict[Any, Any] | None = None

    def name(self) -> str:
        """PyTorch's name of the node, e.g. ``MulBackward0``; with its namespace for those that PyTorch gives one."""
        return f"torch::autograd::{self._name}" if self._name in _NAMESPACED else self._name

    @property
    def label(self) -> str:
        """The name as tensors print it."""
        return self._name

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Where the gradients go: pairs of a node (or None) and its output's number."""
        return tuple((None, 0) if e is None else e for e in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the program's own use."""
        if self.metadata_ is None:
            self.metadata_ = {}
        return self.metadata_

    def __repr__(self) -> str:
        return f"<{self._name} object at {id(self):#x}>"


class AccumulateGrad(Node):
    """Where a gradient arrives at a leaf."""

    __slots__ = ("variable",)

    def __init__(self, leaf: Any) -> None:
        super().__init__("AccumulateGrad", ())
        self.variable = leaf


def edge_of(tensor: Any) -> Edge | None:
    """Where a gradient for this proxy goes."""
    node = tensor._node if tensor._base_tensor is None else tensor.grad_fn
    if node is not None:
        return node, tensor._slot
    if not tensor._requires:
        return None
    found = tensor._accumulator() if tensor._accumulator is not None else None
    if found is None:
        found = AccumulateGrad(tensor)
        tensor._accumulator = ref(found)
    return found, 0


def receivers(start: list[Node]) -> list[Any]:
    """The tensors that a backward from these nodes gives a gradient to: leaves, and those that retain theirs."""
    seen = set(start)
    stack = list(seen)
    found = []
    while stack:
        node = stack.pop()
        if type(node) is AccumulateGrad:
            found.append(node.variable)
            continue
        if node.retained:
            found.extend(t for r in node.retained if (t := r()) is not None)
        for edge in node.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return found


def reaches(start: list[Node], targets: list[Node]) -> list[bool]:
    """For each target, whether a gradient from the start arrives there."""
    seen = set(start)
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return [t in seen for t in targets]
