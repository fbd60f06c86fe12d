"""``GradientEdge``: an output of a node, named without a tensor, where backward may start or end."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentTypeError, GraphError
from gradwire_protocol.table import TABLE

from ..context.modes import no_grad
from ..graph.graph_mirror import AccumulateGrad, Node, edge_of, shown
from ..graph.node_hooks import place_of, remember_tensor
from ..tensor.tensor import Tensor


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: the node, and which of its outputs the tensor is."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that a gradient for this tensor takes.

    Raises:
        GraphError: when the tensor does not require grad.
    """
    edge = edge_of(tensor)
    if edge is None:
        raise GraphError(f"a {tensor._form!r} tensor that does not require grad has no gradient edge")
    if not isinstance(edge[0], AccumulateGrad):
        remember_tensor(edge[0], tensor)  # the edge may outlive the tensor
    return GradientEdge(shown(edge[0]), edge[1])


def tensors_at(values: Any) -> list[Any]:
    """What backward starts from or goes to, as a list: tensors, and a tensor in the place of each gradient edge."""
    if values is None:
        return []
    if isinstance(values, (Tensor, GradientEdge)):
        values = [values]
    return [_tensor_at(value) if isinstance(value, GradientEdge) else value for value in values]


def edges_among(values: list[Any]) -> set[int]:
    """The places of the gradient edges among these."""
    return {i for i, value in enumerate(values) if isinstance(value, GradientEdge)}


def _tensor_at(edge: GradientEdge) -> Any:
    """A tensor that stands in the graph where the edge does: the leaf, the one that retains its gradient there, or one
    without values that is made for this."""
    node, slot = edge.node, edge.output_nr
    if not isinstance(node, Node):
        raise ArgumentTypeError(f"the node of a gradient edge is a grad_fn, not {type(node).__name__}")
    if not 0 <= slot < len(node.outs):
        raise GraphError(f"{node.label} has {len(node.outs)} outputs, a gradient edge names output {slot}")
    if isinstance(node, AccumulateGrad):
        return node.variable
    reference = (node.retained or {}).get(slot)
    if reference is not None and (found := reference()) is not None:
        return found
    place, described = place_of(node), node.outs[slot]
    with no_grad():
        memory = place.new_empty((), dtype=described.dtype, device=described.device).expand(described.shape)
    session = place._session
    number = session.record(TABLE["rejoin"], [memory, place, slot], 1)
    return Tensor._make(session, number, memory._form, node, slot)


__all__ = ["GradientEdge", "edges_among", "get_gradient_edge", "tensors_at"]
