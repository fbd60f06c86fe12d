"""The live autograd graph as data: nodes and edges, for the graph endpoint and for drawings."""

from __future__ import annotations

from typing import Any

from .tensor import Tensor


def describe_graph(tensors: dict[int, Tensor]) -> dict[str, Any]:
    """Nodes and edges reachable from the tensors, each named once.

    A node has ``id``, ``name``, the ``shapes`` of its results, ``saved_bytes``, and for a leaf the ``tensor`` ids it
    stands for. An edge goes ``from`` a node ``to`` the node its gradient flows to, at output ``slot``.
    """
    numbers: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, int]] = []
    roots = []
    leaves: dict[int, list[int]] = {}
    stack = []

    def number(node: Any) -> int:
        key = id(node)
        if key not in numbers:
            numbers[key] = len(nodes)
            nodes.append({
                "id": len(nodes), "name": node.name, "shapes": [list(m.shape) for m in node.outs],
                "saved_bytes": node.saved_bytes, "tensors": [],
            })  # fmt: skip
            stack.append(node)
        return numbers[key]

    for tensor_id, tensor in tensors.items():
        node = tensor.grad_fn
        if node is not None:
            at = number(node)
            nodes[at]["tensors"].append(tensor_id)
            roots.append({"tensor": tensor_id, "node": at})
        elif tensor.requires_grad:
            leaves.setdefault(id(tensor), []).append(tensor_id)
    while stack:
        node = stack.pop()
        source = numbers[id(node)]
        for edge in node.edges:
            if edge is not None:
                target = number(edge[0])
                edges.append({"from": source, "to": target, "slot": edge[1]})
                leaf = getattr(edge[0], "leaf", None)
                if leaf is not None and not nodes[target]["tensors"]:
                    nodes[target]["tensors"] = leaves.get(id(leaf), [])
    return {"nodes": nodes, "edges": edges, "roots": roots}
