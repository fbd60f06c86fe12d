"""The live autograd graph as data: nodes and edges, for the graph endpoint and for drawings, and what it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradwire_protocol.errors import LimitExceeded

from .inplace import looked_at
from .tape import SavedTensor
from .tensor import Tensor


def describe_graph(
    tensors: dict[int, Tensor], everything: dict[int, Tensor] | None = None, most: int | None = None
) -> dict[str, Any]:
    """Nodes and edges reachable from the tensors, each named once, and the bytes that they keep together.

    A node has ``id``, ``name``, the ``shapes`` and ``dtypes`` of its results, the ``saved_bytes`` that it keeps for
    backward (memory that several nodes keep counts for each, here), whether it is ``freed``, whether its derivative
    is ``custom`` (the program's own), the ``position`` of the
    record that made it (see ``Node.position``), and the ids of the ``tensors`` that it made or, for a leaf, stands
    for; these are looked for among ``everything``, which is the tensors themselves by default. An edge goes ``from``
    a node ``to`` the node its gradient flows to, at output ``slot``. In ``saved_bytes`` of the whole, memory counts
    once.

    Raises:
        LimitExceeded: for more nodes than ``most``.
    """
    numbers: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, int]] = []
    roots = []
    stack = []
    storages: dict[int, int] = {}

    def number(node: Any) -> int:
        key = id(node)
        if key not in numbers:
            if most is not None and len(nodes) >= most:
                raise LimitExceeded(
                    f"the graph behind these tensors has more than {most:,} nodes (GRADWIRE_MAX_GRAPH_EXPORT)",
                    setting="GRADWIRE_MAX_GRAPH_EXPORT", limit=most,
                )  # fmt: skip
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
    """Bytes that the graphs behind these tensors, and behind their gradients, keep for backward.

    Memory counts once, and counts whether or not a tensor holds it too.
    """
    storages: dict[int, int] = {}
    seen: set[int] = set()
    stack: list[Any] = []
    looked_at: list[Any] = []  # keeps alive what the ids in ``seen`` and ``storages`` belong to
    waiting = list(tensors)
    while waiting or stack:
        while waiting:
            tensor = waiting.pop()
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            looked_at.append(tensor)
            # Not ``grad_fn``, which would write the history of a view anew: looking must change nothing.
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
            # A node may keep a tensor whose own history is on none of its edges.
            stack.extend(t._grad_fn for t in kept if t._grad_fn is not None and id(t._grad_fn) not in seen)
    return sum(storages.values())


def kept_by(node: Any) -> Iterator[Tensor]:
    """The tensors that a node keeps for backward."""
    saved = _keeper(node)
    for entry in saved.values() if type(saved) is dict else saved or ():
        for item in entry if type(entry) in (list, tuple) else (entry,):
            tensor = item.tensor if type(item) is SavedTensor else item
            if type(tensor) is Tensor:
                yield tensor


def _keeper(node: Any) -> Any:
    """What a node keeps, in the node's own form: ``None`` once freed, empty for a node that keeps nothing."""
    return getattr(getattr(node, "inner", node), "saved", ())


def _storages(tensors: Iterable[Tensor]) -> dict[int, int]:
    """The size of each piece of memory that the tensors show, by its identity."""
    # By the array: Tensor.data has a storage of its own over the same memory.
    return {id(t.storage.array): int(t.storage.array.nbytes) for t in tensors}
