"""The derivative of an op along the tangents of its operands, without a rule of its own per op.

A view's tangent is the same view of the tangent. Linear ops are applied to the tangents. Anything else goes through the
op's derivative: ``g = derivative(u)`` is linear in ``u``, so differentiating it for ``u`` along the tangents gives the
transpose of the transpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradwire_protocol.meta import Inference

from .backward import differentiate
from .functional import F
from .registry import Row
from .tape import Node, Saved, edge_of
from .tensor import Tensor

if TYPE_CHECKING:
    from .engine_context import EngineContext

Given = list[Tensor | None]
"""One entry per differentiable operand, flattened over lists: its tangent, or None."""


def tangents_of_results(
    engine: EngineContext,
    entry: Row,
    values: list[Any],
    rule_args: list[Any],
    inferred: Inference,
    results: list[Tensor],
    given: Given,
) -> list[Tensor | None]:
    """One tangent per result, None for a result that can have none."""
    op = entry.op
    if inferred.offsets is not None or op.linear:
        return _applied(engine, entry, values, given)
    if op.multilinear:
        return [_each_in_turn(engine, entry, values, given)]
    if entry.forward is not None:
        return [entry.forward(*values, *given)]
    if op.elementwise and entry.joint is None and len(results) == 1 and _all_real(values, results):
        return [_scaled(engine, entry, values, rule_args, results, given)]
    found = _transposed_twice(engine, entry, values, rule_args, results, given)
    if entry.flat is not None and found[0] is not None:
        found[0] = F.masked_fill(found[0], (values[0] if entry.flat == "self" else results[0]) == 0, 0)
    return found


def _all_real(values: list[Any], results: list[Tensor]) -> bool:
    return not any(r.dtype.is_complex for r in results) and not any(
        type(v) is Tensor and v.dtype.is_complex for v in values
    )


def _replaced(entry: Row, values: list[Any], given: Given, only: int | None = None) -> list[Any]:
    """The arguments with operands replaced by their tangents (by zeros where they have none), or one of them only."""
    changed = list(values)
    k = 0
    for i in entry.differentiable:
        value = values[i]
        if type(value) in (list, tuple):
            parts = list(value)
            for n, part in enumerate(parts):
                if part is not None and (only is None or only == k):
                    parts[n] = given[k] if given[k] is not None else F.zeros_like(part)
                k += 1
            changed[i] = parts
            continue
        if type(value) is Tensor and (only is None or only == k):
            changed[i] = given[k] if given[k] is not None else F.zeros_like(value)
        elif only is None and value is not None and type(value) is not Tensor:
            changed[i] = 0  # x + 1: a number is a constant
        k += 1
    return changed


def _applied(engine: EngineContext, entry: Row, values: list[Any], given: Given) -> list[Tensor | None]:
    found = engine.run(entry, _replaced(entry, values, given))
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _each_in_turn(engine: EngineContext, entry: Row, values: list[Any], given: Given) -> Tensor:
    total: Any = None
    for k, tangent in enumerate(given):
        if tangent is not None:
            term = engine.run(entry, _replaced(entry, values, given, k))
            total = term if total is None else total + term
    found: Tensor = total
    return found


def _node(entry: Row, values: list[Any], rule_args: list[Any], results: list[Tensor], given: Given) -> Node:
    """A node that is on no tape, for its derivative's sake."""
    engine = results[0].engine
    kept = list(rule_args)
    for i in entry.number_like_at:
        if type(values[i]) is not Tensor:
            kept[i] = values[i]
    node = Node(entry.op.name, entry, kept, (), tuple(r.meta for r in results), 0, engine.account)
    saved: dict[str, Any] = {}
    needs = entry.kept(given)
    for name, at in needs.operands:
        if type(values[at]) is Tensor or type(values[at]) in (list, tuple):
            saved[name] = values[at]
    for name, i in needs.results:
        saved[name] = results[i]
    node.saved = saved
    return node


def _scaled(
    engine: EngineContext, entry: Row, values: list[Any], rule_args: list[Any], results: list[Tensor], given: Given
) -> Tensor:
    """An elementwise real op's derivative is diagonal, and its own transpose."""
    node = _node(entry, values, rule_args, results, given)
    saved = Saved(node, [g is not None for g in given])
    result = results[0]
    total: Any = None
    for tangent, i in zip(given, entry.differentiable, strict=True):
        rule = entry.rules.get(entry.op.params[i].name)
        if tangent is None or rule is None:
            continue
        if tangent.shape != result.shape:
            tangent = F.expand(tangent, result.shape)
        if tangent.dtype is not result.dtype:
            tangent = F.to(tangent, dtype=result.dtype)
        term = rule[1](saved, tangent)
        if term is not None:
            total = term if total is None else total + term
    if total is None:
        return F.zeros_like(result)
    found: Tensor = total
    return found


def _transposed_twice(
    engine: EngineContext, entry: Row, values: list[Any], rule_args: list[Any], results: list[Tensor], given: Given
) -> list[Tensor | None]:
    node = _node(entry, values, rule_args, results, given)
    floor = engine.new_node_seq()
    before, engine.grad_enabled = engine.grad_enabled, True
    try:
        seeds: list[Any] = [F.zeros_like(r) if r.dtype.carries_gradient else None for r in results]
        for seed in seeds:
            if seed is not None:
                seed.requires_grad_flag = True
        needed = [g is not None for g in given]
        gradients = differentiate(node, engine, list(seeds), needed)
        roots = [
            (edge, tangent)
            for gradient, tangent in zip(gradients, given, strict=True)
            if gradient is not None and tangent is not None and (edge := edge_of(gradient)) is not None
        ]
        engine.grad_enabled = before
        arrived = _transpose(engine, roots, seeds, floor)
    finally:
        engine.grad_enabled = before
    return [
        (F.zeros_like(result) if found is None else found) if result.dtype.carries_gradient else None
        for result, found in zip(results, arrived, strict=True)
    ]


def _transpose(engine: EngineContext, roots: list[Any], seeds: list[Tensor | None], floor: int) -> list[Tensor | None]:
    """The gradients for the seeds, going through nodes made since ``floor`` only: what is older is a constant here."""
    leaves = {id(edge[0]): k for k, s in enumerate(seeds) if s is not None and (edge := edge_of(s)) is not None}
    seen: dict[int, Any] = {id(n): n for (n, _), _ in roots}
    stack = list(seen.values())
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and id(edge[0]) not in seen and edge[0].seq > floor:
                seen[id(edge[0])] = edge[0]
                stack.append(edge[0])
    order = sorted((n for n in seen.values() if n.edges), key=lambda n: n.seq, reverse=True)
    wanted = {key for key in leaves if key in seen}
    for node in reversed(order):
        if any(e is not None and id(e[0]) in wanted for e in node.edges):
            wanted.add(id(node))
    pending: dict[int, list[Any]] = {}

    def deliver(node: Any, slot: int, gradient: Tensor) -> None:
        if id(node) in wanted:
            buffer = pending.setdefault(id(node), [None] * len(node.outs))
            buffer[slot] = gradient if buffer[slot] is None else buffer[slot] + gradient

    for (node, slot), tangent in roots:
        deliver(node, slot, tangent)
    for node in order:
        arrived = pending.pop(id(node), None)
        if arrived is None:
            continue
        needed = [e is not None and id(e[0]) in wanted for e in node.edges]
        for edge, gradient in zip(node.edges, node.apply(engine, arrived, needed), strict=True):
            if edge is not None and gradient is not None:
                deliver(edge[0], edge[1], gradient)
    found: list[Tensor | None] = [None] * len(seeds)
    for key, k in leaves.items():
        if key in pending:
            found[k] = pending[key][0]
    return found
