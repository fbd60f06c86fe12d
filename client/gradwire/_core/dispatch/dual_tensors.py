"""Tensors with tangents: views of a primal and a tangent, and back. What is known of them is in
:mod:`..graph.forward_levels`."""

from __future__ import annotations

from typing import Any

from ..context.modes import is_grad_enabled
from ..graph.forward_levels import ABSENT, STACK, ForwardLevel, duals_of
from ..graph.graph_mirror import Node, edge_of
from ..graph.node_signature import NodeSignature
from . import dispatch


def make_dual(primal: Any, tangent: Any, level: ForwardLevel) -> Any:
    """A view of ``primal`` with a tangent at a level."""
    dual = dispatch.call("make_dual", primal, tangent, level.number(primal._session))
    dual._levels = primal._levels  # where only the tangent is mapped, the values are the same for all samples
    level.mapped.update(tangent._levels)
    _as_view(dual, primal)
    edge = edge_of(tangent) if is_grad_enabled() else None
    dual._duals = {**duals_of(primal), level: edge}
    return dual


def _as_view(alias: Any, source: Any) -> None:
    recording = is_grad_enabled()
    if recording and source.requires_grad:
        alias._node = Node(NodeSignature("ViewBackward0", (source._form,)), (edge_of(source),))
    alias._view_of(source, True, False, recording)


def primal_of(tensor: Any, level: ForwardLevel) -> Any:
    """A view of a dual tensor without its tangent at a level."""
    alias = dispatch.call("primal_of", tensor, level.number(tensor._session))
    _as_view(alias, tensor)
    alias._duals = {**duals_of(tensor), level: ABSENT}
    return alias


def tangent_of(tensor: Any, level: ForwardLevel) -> Any:
    """The tangent of a dual tensor, itself dual at the levels outside; None for a tensor that is not dual."""
    duals = duals_of(tensor)
    if level not in duals:
        return None
    found = dispatch.call("tangent_of", tensor, level.number(tensor._session))
    found._levels = tuple(sorted({*tensor._levels, *level.mapped}))
    edge = duals[level]
    if edge is not None and is_grad_enabled():
        found._node = Node(NodeSignature("AliasBackward0", (tensor._form,)), (edge,))
    outside = STACK.levels[: STACK.levels.index(level)]
    found._duals = {n: e for n, e in duals.items() if n in outside}
    return found
