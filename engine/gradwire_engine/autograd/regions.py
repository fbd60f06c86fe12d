"""Stretches of the graph that keep nothing for backward: they are computed again when backward comes by.

Nodes made while a region is open give up what they would save. When a client runs the same computation again, it
opens a second region over the first, and what the second saved is handed over, node by node.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from gradwire_protocol.errors import CheckpointError

from .tape import Edge, Node, SavedTensor, join
from .tensor import Tensor


class RecomputedRegion:
    """The nodes made while it was open, in order.

    Attributes:
        source: the region that is being computed again, or ``None`` the first time.
    """

    __slots__ = ("__weakref__", "_latest", "_nodes", "source")

    def __init__(self, source: RecomputedRegion | None = None) -> None:
        self.source = source
        # What is computed again must live until it is handed over; the first time, the graph alone decides.
        self._nodes: list[Any] = []
        self._latest: ref[Node] | None = None

    def note(self, node: Node) -> None:
        """Count a node in that was just made. What it saves is given up as soon as that is complete."""
        if self.source is None:
            self.settle()
            self._nodes.append(ref(node))
            self._latest = ref(node)
        else:
            self._nodes.append(node)

    def settle(self) -> None:
        """Give up what the latest node saved: its results are known by now."""
        latest = self._latest() if self._latest is not None else None
        if latest is not None:
            latest.free()
        self._latest = None

    def nodes(self) -> list[Node]:
        """The nodes that still live."""
        if self.source is not None:
            return list(self._nodes)
        return [node for reference in self._nodes if (node := reference()) is not None]

    def entries(self) -> list[Node | None]:
        """The nodes in order, ``None`` for those that are gone."""
        return list(self._nodes) if self.source is not None else [reference() for reference in self._nodes]

    @classmethod
    def resumed(cls, source: RecomputedRegion | None, entries: list[Node | None]) -> RecomputedRegion:
        """A region with these :meth:`entries`."""
        region = cls(source)
        region._nodes = entries if source is not None else [_gone if node is None else ref(node) for node in entries]
        return region

    def hand_over(self) -> None:
        """Give the nodes of the source what was saved anew.

        Raises:
            CheckpointError: when the computation was not the same.
        """
        source = self.source
        assert source is not None
        if len(source._nodes) != len(self._nodes):
            raise CheckpointError(
                f"the checkpointed computation recorded {len(source._nodes)} operations in its forward run, but "
                f"{len(self._nodes)} in its recomputation"
            )
        for i, (reference, again) in enumerate(zip(source._nodes, self._nodes, strict=True)):
            node = reference()
            if node is None:
                continue
            if node.name != again.name or [m.shape for m in node.outs] != [m.shape for m in again.outs]:
                raise CheckpointError(
                    f"operation {i} of the checkpointed computation was {node.name} with results of shape "
                    f"{[list(m.shape) for m in node.outs]}, but {again.name} with "
                    f"{[list(m.shape) for m in again.outs]} in its recomputation"
                )
            node.saved = _with_edges_of(node, again)
        self._nodes.clear()

    def forget(self) -> None:
        """Give up again what was handed over."""
        for node in self.nodes():
            node.free()


def _with_edges_of(node: Node, again: Node) -> dict[str, Any] | None:
    """What ``again`` saved, with the history that the operands of ``node`` have.

    A derivative that is itself recorded leads on through what was saved: into the graph of the first computation,
    since that of the second ends with it.
    """
    if again.saved is None or node.edges == again.edges:
        return again.saved
    saved: dict[str, Any] = dict(again.saved)
    for (name, item), edge, former in zip(node.row.targets(node.values), node.edges, again.edges, strict=True):
        entry = saved.get(name)
        if edge == former:
            continue
        if type(entry) is SavedTensor:
            saved[name] = _with_edge(entry, edge)
        elif type(entry) is list and item is not None and type(entry[item]) is SavedTensor:
            saved[name] = [*entry[:item], _with_edge(entry[item], edge), *entry[item + 1 :]]
    return saved


def _with_edge(kept: SavedTensor, edge: Edge | None) -> SavedTensor:
    tensor = kept.tensor
    alias = Tensor(tensor.engine, tensor.array, tensor.meta, tensor.storage, tensor.offset)
    alias.tangents = tensor.tangents
    join(alias, edge)
    found = SavedTensor(alias)
    found.version = kept.version
    return found


def _gone() -> None:
    """A weak reference to a node that is no more."""


class Hold:
    """Stands in the order of a backward where a region is about to be passed."""

    __slots__ = ("region",)

    def __init__(self, region: RecomputedRegion) -> None:
        self.region = region
