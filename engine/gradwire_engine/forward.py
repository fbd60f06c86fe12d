"""Forward mode: the tangents of an op's results, from those of its operands, without a rule of its own per op.

A view's tangent is the same view of the tangent. Linear ops are applied to the tangents. Anything else goes through the
op's derivative: ``g = derivative(u)`` is linear in ``u``, so differentiating it for ``u`` along the tangents gives the
transpose of the transpose. All of it runs through the pipeline with only the lower levels open, so that mixed
derivatives come out and directions are never confused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradwire_protocol.meta import Inference, Meta

from .functional import F
from .linearity import ELEMENTWISE, FLAT_AT_ZERO, LINEAR, MULTILINEAR, OWN_RULES
from .registry import Row, row
from .tape import Node, SavedTensor, edge_of
from .tensor import Tensor

if TYPE_CHECKING:
    from .engine import Engine

Given = list[Any]
"""One entry per differentiable operand, flattened over lists: its tangent, or None."""


class Tangents(dict[int, "Tensor | None"]):
    """The tangents of one tensor by level; None where a view has none though its base has."""

    __slots__ = ("__weakref__",)


# One tensor


def tangent_at(tensor: Tensor, level: int) -> Tensor | None:
    """The tensor's tangent at a level. A view of a tensor that became dual by a write shows part of its tangent."""
    own = tensor.tangents
    if own is not None and level in own:
        found: Tensor | None = own[level]
        return found
    base = tensor.base
    if base is None or base.tangents is None or base.tangents.get(level) is None:
        return None
    engine = tensor.engine
    visible, engine.dual_levels = engine.dual_levels, tuple(n for n in engine.dual_levels if n < level)
    try:
        part = _part(base.tangents[level], base, tensor)
    finally:
        engine.dual_levels = visible
    _keep(engine, tensor, level, part)
    return part


def _part(tangent: Any, base: Tensor, view: Tensor) -> Tensor:
    """Of the tangent of a base, what a view of the base shows."""
    meta = view.meta
    if meta.dtype.is_complex != tangent.dtype.is_complex:
        tangent = F.view_as_complex(tangent) if meta.dtype.is_complex else F.view_as_real(tangent)
    start = base.offset * base.dtype.itemsize // meta.dtype.itemsize
    part: Tensor = F.as_strided(tangent, meta.shape, meta.stride, view.offset - start)
    return part


def _keep(engine: Engine, tensor: Tensor, level: int, tangent: Tensor | None) -> None:
    tangents = tensor.tangents
    if tangents is None:
        tangents = tensor.tangents = Tangents()
    tangents[level] = tangent
    engine.duals[level][id(tangents)] = tangents


def set_tangent(engine: Engine, tensor: Tensor, level: int, tangent: Tensor) -> None:
    """Give a tensor a tangent, in the dtype and memory order of the tensor, so that what views one views the other."""
    if tangent.dtype is not tensor.dtype:
        tangent = F.to(tangent, dtype=tensor.dtype)
    if tangent.shape != tensor.shape:
        tangent = F.expand(tangent, tensor.shape)
    if not _same_order(tangent.meta, tensor.meta):
        tangent = _laid_out(tangent, tensor.meta)
    _keep(engine, tensor, level, tangent)


def _same_order(one: Meta, other: Meta) -> bool:
    return one.stride == other.stride or all(
        a == b or n <= 1 for a, b, n in zip(one.stride, other.stride, one.shape, strict=True)
    )


def _laid_out(tangent: Tensor, like: Meta) -> Tensor:
    """A copy with the strides of another tensor."""
    if like.contiguous:
        copy: Tensor = F.clone(F.contiguous(tangent)) if tangent.meta.contiguous else F.contiguous(tangent)
        return copy
    reach = 1 + sum((n - 1) * s for n, s in zip(like.shape, like.stride, strict=True)) if like.numel else 0
    if any(s == 0 and n > 1 for s, n in zip(like.stride, like.shape, strict=True)):
        return tangent  # elements that share a place may have tangents of their own
    flat = F.restride(tangent, like.stride, 0, (reach,), (1,), 0)
    laid: Tensor = F.as_strided(flat, like.shape, like.stride, 0)
    return laid


def without(engine: Engine, tensor: Tensor, level: int) -> Tensor:
    """A view of the tensor that has no tangent at a level."""
    visible, engine.dual_levels = engine.dual_levels, tuple(n for n in engine.dual_levels if n != level)
    try:
        alias: Tensor = F.view(tensor, tensor.shape)
    finally:
        engine.dual_levels = visible
    if level in visible:
        _keep(engine, alias, level, None)
    return alias


def copy_tangents(engine: Engine, source: Tensor, copy: Tensor) -> None:
    """Give a copy of a tensor copies of its tangents, since those of the tensor are about to be written to."""
    for level in engine.dual_levels:
        tangent = tangent_at(source, level)
        if tangent is not None:
            visible, engine.dual_levels = engine.dual_levels, tuple(n for n in engine.dual_levels if n < level)
            try:
                set_tangent(engine, copy, level, F.clone(tangent))
            finally:
                engine.dual_levels = visible


# One op


def propagate(
    engine: Engine, entry: Row, values: list[Any], rule_args: list[Any], inferred: Inference, results: list[Tensor]
) -> None:
    """Give the results of an op their tangents, at every open level at which an operand is dual."""
    if engine.inference or not entry.has_derivative:
        return
    if not any(r.dtype.category >= 2 for r in results):
        return
    visible = engine.dual_levels
    dual = False
    try:
        for level in visible:
            given = _given(entry, values, level)
            if not any(g is not None for g in given):
                continue
            dual = True
            engine.dual_levels = tuple(n for n in visible if n < level)
            found = _tangents(engine, entry, values, rule_args, inferred, results, given)
            for result, tangent in zip(results, found, strict=True):
                if tangent is None or result.dtype.category < 2:
                    continue
                if inferred.offsets is None and any(g is not None and g.storage is tangent.storage for g in given):
                    tangent = F.clone(tangent)
                set_tangent(engine, result, level, tangent)
            engine.dual_levels = visible
    finally:
        engine.dual_levels = visible
    node = results[0].grad_fn
    if dual and isinstance(node, Node) and node.saved:
        for name, i in entry.kept(node.edges).results:
            saved = node.saved.get(name)
            if type(saved) is SavedTensor:
                saved.tensor.tangents = results[i].tangents


def _given(entry: Row, values: list[Any], level: int) -> Given:
    given: Given = []
    for i in entry.differentiable:
        value = values[i]
        if type(value) is Tensor:
            given.append(_of_number(value, level))
        elif type(value) in (list, tuple):
            given.extend(None if t is None else _of_number(t, level) for t in value)
        else:
            given.append(None)
    return given


def _of_number(tensor: Tensor, level: int) -> Tensor | None:
    return tangent_at(tensor, level) if tensor.dtype.category >= 2 else None


def _tangents(
    engine: Engine,
    entry: Row,
    values: list[Any],
    rule_args: list[Any],
    inferred: Inference,
    results: list[Tensor],
    given: Given,
) -> list[Tensor | None]:
    name = entry.op.name
    if inferred.offsets is not None or name in LINEAR:
        return _applied(engine, entry, values, given)
    if name in MULTILINEAR:
        return [_each_in_turn(engine, entry, values, given)]
    if name in ELEMENTWISE and entry.joint is None and len(results) == 1 and _all_real(values, results):
        return [_scaled(engine, entry, values, rule_args, results, given)]
    own = OWN_RULES.get(name)
    if own is not None:
        return [own(*values, *given)]
    found = _transposed_twice(engine, entry, values, rule_args, results, given)
    if name in FLAT_AT_ZERO and found[0] is not None:
        found[0] = F.masked_fill(found[0], (values[0] if name == "angle" else results[0]) == 0, 0)
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


def _applied(engine: Engine, entry: Row, values: list[Any], given: Given) -> list[Tensor | None]:
    found = engine.run(entry, _replaced(entry, values, given))
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _each_in_turn(engine: Engine, entry: Row, values: list[Any], given: Given) -> Tensor:
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
    engine: Engine, entry: Row, values: list[Any], rule_args: list[Any], results: list[Tensor], given: Given
) -> Tensor:
    """An elementwise real op's derivative is diagonal, and its own transpose."""
    from .tape import Saved

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
    engine: Engine, entry: Row, values: list[Any], rule_args: list[Any], results: list[Tensor], given: Given
) -> list[Tensor | None]:
    from .backward import differentiate

    node = _node(entry, values, rule_args, results, given)
    floor = engine.new_node_seq()
    before, engine.grad_enabled = engine.grad_enabled, True
    try:
        seeds: list[Any] = [F.zeros_like(r) if r.dtype.category >= 2 else None for r in results]
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
        (F.zeros_like(result) if found is None else found) if result.dtype.category >= 2 else None
        for result, found in zip(results, arrived, strict=True)
    ]


def _transpose(engine: Engine, roots: list[Any], seeds: list[Any], floor: int) -> list[Tensor | None]:
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


# Writes


def before_write(engine: Engine, entry: Row, values: list[Any]) -> dict[int, Tensor | None]:
    """What the tangents of a tensor will be, by level, after an in-place op that is about to write to it."""
    target: Tensor = values[0]
    if engine.inference or target.dtype.category < 2:
        return {}
    levels = [n for n in engine.dual_levels if any(g is not None for g in _written(entry, values, n))]
    if not levels:
        return {}
    if entry.op.base is not None:
        state = engine.generator.get_state()
        found = engine.run(row(entry.op.base.name), values)
        if entry.op.random:
            engine.generator.set_state(state)
        found = found[0] if isinstance(found, tuple) else found
        return {n: tangent_at(found, n) for n in levels}
    source = values[1] if entry.op.name in ("copy_", "fill_") else None
    after: dict[int, Tensor | None] = {}
    for level in levels:
        after[level] = _of_number(source, level) if type(source) is Tensor else None
    return after


def _written(entry: Row, values: list[Any], level: int) -> Given:
    return [_of_number(values[0], level), *_given(entry, values, level)]


def _mapped_zero(tangent: Any) -> Any:
    return 0 if type(tangent) is Tensor else F.sum(F.zeros_like(tangent))


def after_write(engine: Engine, target: Tensor, after: dict[int, Tensor | None]) -> None:
    """Write the new tangents: into the memory of the old ones, and where there are none into new ones of the base."""
    visible = engine.dual_levels
    try:
        for level, tangent in after.items():
            place = tangent_at(target, level)
            engine.dual_levels = tuple(n for n in visible if n < level)
            if place is None and tangent is None:
                continue
            if place is None:
                base = target.base if target.base is not None else target
                # A tangent may be mapped by vmap where the tensor is not: its product with zeros is, too.
                set_tangent(engine, base, level, F.zeros_like(base) + _mapped_zero(tangent))
                if base is not target:
                    assert base.tangents is not None
                    _keep(engine, target, level, _part(base.tangents[level], base, target))
                place = tangent_at(target, level)
            assert place is not None
            engine.call("zero_", place) if tangent is None else engine.call("copy_", place, tangent)
            engine.dual_levels = visible
    finally:
        engine.dual_levels = visible
