"""Writing a node on the tape: its edges, and what its derivative needs kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradwire_protocol.meta import Inference, Meta

from .forward import copy_tangents
from .inplace import copy_of
from .registry import Row
from .tape import Edge, Node, SavedTensor, edge_of
from .tensor import Tensor

if TYPE_CHECKING:
    from .engine_context import EngineContext


def any_requires_grad(entry: Row, values: list[Any]) -> bool:
    """Whether a gradient is wanted for any operand that the op can be differentiated by."""
    for i in entry.differentiable:
        value = values[i]
        if type(value) is Tensor:
            if value.requires_grad_flag or value.requires_grad:
                return True
        elif type(value) in (list, tuple) and any(t is not None and t.requires_grad for t in value):
            return True
    return False


def refuse_underived(entry: Row, values: list[Any]) -> None:
    """Check that no gradient is wanted by an operand that there is no derivative by.

    Raises:
        GraphError: when one is.
    """
    for i in entry.op.underived_at:
        value = values[i]
        if type(value) is Tensor and value.requires_grad:
            raise entry.op.without_derivative(i, value.meta)


def make_node(
    engine: EngineContext,
    entry: Row,
    rule_args: list[Any],
    values: list[Any],
    inferred: Inference,
    outs: tuple[Meta, ...],
    overwritten: Tensor | None = None,
) -> Node:
    """A node with its edges and saved operands. ``rule_args`` becomes the node's own.

    ``overwritten`` is an operand about to be written to: it is copied before it is saved.
    """
    edges: list[Edge | None] = []
    for i in entry.differentiable:
        value = values[i]
        if type(value) is Tensor:
            made = value._grad_fn
            if made is not None and value.base is None and value.meta.dtype.carries_gradient:  # most often
                edges.append((made, value.slot))
            else:
                edges.append(_edge(value))
        elif type(value) in (list, tuple):
            edges.extend([None if t is None else _edge(t) for t in value])
        else:
            edges.append(None)
    for i in entry.number_like_at:
        if type(values[i]) is not Tensor:
            rule_args[i] = values[i]
    op = entry.op
    account = engine.account
    name = inferred.grad_fn or op.grad_fn or op.name
    node = Node(name, entry, rule_args, tuple(edges), outs, engine.new_node_seq(), account, engine.position)
    if account.nodes > account.limits.max_graph_nodes:
        account.check_nodes()
    saved: dict[str, Any] = {}
    node.saved = saved
    for operand, at in entry.kept(node.edges).operands:
        value = values[at]
        if type(value) is Tensor:
            saved[operand] = SavedTensor(_snapshot(engine, value) if value is overwritten else value)
        elif type(value) in (list, tuple):
            saved[operand] = [SavedTensor(v) if type(v) is Tensor else v for v in value]
        elif operand in op.wrapped:
            saved[operand] = value
    if engine.tracer is not None:
        engine.tracer.noded(node)
    if engine.region is not None:
        engine.region.note(node)
    return node


def keep_results(node: Node, results: list[Tensor]) -> None:
    """Save those results that the node's derivative asked for."""
    if not node.row.keeps_results:
        return
    for name, i in node.row.kept(node.edges).results:
        assert node.saved is not None
        node.saved[name] = SavedTensor(results[i], is_result=i not in node.row.op.constant)


def _edge(tensor: Tensor) -> Edge | None:
    return edge_of(tensor) if tensor.meta.dtype.carries_gradient else None


def _snapshot(engine: EngineContext, tensor: Tensor) -> Tensor:
    """A copy that keeps the tensor's history."""
    copy = copy_of(engine, tensor)
    copy.grad_fn, copy.slot, copy.requires_grad_flag = tensor.grad_fn, tensor.slot, tensor.requires_grad_flag
    if engine.dual_levels:
        copy_tangents(engine, tensor, copy)
    return copy
