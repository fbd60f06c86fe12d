"""The live autograd graph as data, for the graph endpoint and for drawings, and the memory that it saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradwire_protocol.errors import LimitExceeded

from ..autograd.inplace import looked_at
from ..autograd.tape import GraphNode, SavedTensor
from ..autograd.tensor import Tensor


def describe_graph(
    tensors: dict[int, Tensor], everything: dict[int, Tensor] | None = None, most: int | None = None
) -> dict[str, Any]:
    """The nodes and edges reachable from the tensors, and the memory that they save.

    A node has ``id``, ``name``, the ``shapes`` and ``dtypes`` of its results, its ``saved_bytes`` for backward (shared
    memory counts for each node), whether it is ``freed``, whether its derivative is ``custom`` (a program's own), the
    ``position`` of the record that created it (see ``Node.position``), and the ids of its ``tensors``: its results, or
    for a leaf the leaf itself. Ids are those in ``everything``, by default the tensors. An edge leads ``from`` a node
    ``to`` the node that gets its gradient, at output ``slot``. In the total ``saved_bytes``, shared memory counts once.

    Raises:
        LimitExceeded: when the graph has more than ``most`` nodes.
    """
    numbers: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, int]] = []
    roots = []
    stack = []
    storages: dict[int, int] = {}

    def number(node: GraphNode) -> int:
        key = id(node)
        if key not in numbers:
            if most is not None and len(nodes) >= most:
                raise LimitExceeded(
                    f"the graph behind these tensors has more than {most:,} nodes (GRADWIRE_MAX_GRAPH_EXPORT)",
                    setting="GRADWIRE_MAX_GRAPH_EXPORT",
                    limit=most,
                )
            kept = _storages(kept_by(node))
            storages.update(kept)
            numbers[key] = len(nodes)
            outs = node.outs
            nodes.append({
                "id": len(nodes), "name": node.name, "shapes": [list(m.shape) for m in outs],
                "dtypes": [m.dtype.name for m in outs], "saved_bytes": sum(kept.values()),
                "freed": bool(node.edges) and _keeper(node) is None,
                "custom": bool(node.suspends), "position": getattr(node, "position", 0), "tensors": [],
            })  # fmt: skip
            stack.append(node)
        return numbers[key]

    everything = tensors if everything is None else everything
    made_by = {id(tensor): looked_at(tensor) for tensor in (*tensors.values(), *everything.values())}
    for tensor_id, tensor in tensors.items():
        node = made_by[id(tensor)]
        if node is not None:
            roots.append({"tensor": tensor_id, "node": number(node)})
    leaves: dict[int, int] = {}
    while stack:
        node = stack.pop()
        source = numbers[id(node)]
        for edge in node.edges:
            if edge is not None:
                target = number(edge[0])
                edges.append({"from": source, "to": target, "slot": edge[1]})
                leaf = getattr(edge[0], "leaf", None)
                if leaf is not None:
                    leaves[id(leaf)] = target
    for tensor_id, tensor in everything.items():
        made = made_by[id(tensor)]
        at = leaves.get(id(tensor)) if made is None else numbers.get(id(made))
        if at is not None:
            nodes[at]["tensors"].append(tensor_id)
    return {"nodes": nodes, "edges": edges, "roots": roots, "saved_bytes": sum(storages.values())}


def saved_bytes(tensors: Iterable[Tensor]) -> int:
    """The bytes that the graphs of these tensors and of their gradients save for backward.

    Shared memory counts once, even if a tensor uses it, too.
    """
    storages: dict[int, int] = {}
    seen: set[int] = set()
    stack: list[Any] = []
    looked_at: list[Any] = []  # keeps the objects alive whose ids are in ``seen`` and ``storages``
    waiting = list(tensors)
    while waiting or stack:
        while waiting:
            tensor = waiting.pop()
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            looked_at.append(tensor)
            # Not ``grad_fn``, which would update the history of a view: inspection must change nothing.
            if tensor._grad_fn is not None:
                stack.append(tensor._grad_fn)
            waiting.extend(t for t in (tensor.grad, tensor.base) if t is not None)
        if stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            looked_at.append(node)
            stack.extend(edge[0] for edge in node.edges if edge is not None and id(edge[0]) not in seen)
            kept = list(kept_by(node))
            storages.update(_storages(kept))
            # A node may save a tensor whose history is not reachable by its edges.
            stack.extend(t._grad_fn for t in kept if t._grad_fn is not None and id(t._grad_fn) not in seen)
    return sum(storages.values())


def kept_by(node: GraphNode) -> Iterator[Tensor]:
    """The tensors that a node saves for backward."""
    saved = _keeper(node)
    for entry in saved.values() if isinstance(saved, dict) else ():
        for item in entry if type(entry) in (list, tuple) else (entry,):
            tensor = item.tensor if type(item) is SavedTensor else item
            if type(tensor) is Tensor:
                yield tensor


def _keeper(node: GraphNode) -> dict[str, Any] | tuple[()] | None:
    """A node's saved values in its own form: ``None`` after they were freed, empty if it saves nothing."""
    return getattr(getattr(node, "inner", node), "saved", ())


def _storages(tensors: Iterable[Tensor]) -> dict[int, int]:
    """The sizes of the tensors' memory blocks by identity."""
    # Identify memory by its array, because Tensor.data has its own storage for the same memory.
    return {id(t.storage.array): int(t.storage.array.nbytes) for t in tensors}
