"""Forward mode: who carries tangents, and how ops hand them on.

What is computed for a level runs through the pipeline with only the lower levels open, so that mixed derivatives come
out and directions are never confused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradwire_protocol.meta import Inference, Meta

from .directional import Given, tangents_of_results
from .functional import F
from .registry import Row, row
from .tape import Node, SavedTensor
from .tensor import Tensor

if TYPE_CHECKING:
    from .engine_context import EngineContext


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


def _part(tangent: Tensor, base: Tensor, view: Tensor) -> Tensor:
    """Of the tangent of a base, what a view of the base shows."""
    meta = view.meta
    if meta.dtype.is_complex != tangent.dtype.is_complex:
        tangent = F.view_as_complex(tangent) if meta.dtype.is_complex else F.view_as_real(tangent)
    start = base.offset * base.dtype.itemsize // meta.dtype.itemsize
    part: Tensor = F.as_strided(tangent, meta.shape, meta.stride, view.offset - start)
    return part


def _keep(engine: EngineContext, tensor: Tensor, level: int, tangent: Tensor | None) -> None:
    tangents = tensor.tangents
    if tangents is None:
        tangents = tensor.tangents = Tangents()
    tangents[level] = tangent
    engine.duals[level][id(tangents)] = tangents


def set_tangent(engine: EngineContext, tensor: Tensor, level: int, tangent: Tensor) -> None:
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


def without(engine: EngineContext, tensor: Tensor, level: int) -> Tensor:
    """A view of the tensor that has no tangent at a level."""
    visible, engine.dual_levels = engine.dual_levels, tuple(n for n in engine.dual_levels if n != level)
    try:
        alias: Tensor = F.view(tensor, tensor.shape)
    finally:
        engine.dual_levels = visible
    if level in visible:
        _keep(engine, alias, level, None)
    return alias


def copy_tangents(engine: EngineContext, source: Tensor, copy: Tensor) -> None:
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
    engine: EngineContext,
    entry: Row,
    values: list[Any],
    rule_args: list[Any],
    inferred: Inference,
    results: list[Tensor],
) -> None:
    """Give the results of an op their tangents, at every open level at which an operand is dual."""
    if engine.inference or not entry.has_derivative:
        return
    if not any(r.dtype.carries_gradient for r in results):
        return
    visible = engine.dual_levels
    dual = False
    try:
        for level in visible:
            given = _given(entry, values, level)
            if not any(g is not None for g in given):
                if inferred.offsets is not None and level in (values[0].tangents or ()):
                    for result in results:  # a view of a primal is none of the dual tensor it shares memory with
                        _keep(engine, result, level, None)
                continue
            dual = True
            engine.dual_levels = tuple(n for n in visible if n < level)
            found = tangents_of_results(engine, entry, values, rule_args, inferred, results, given)
            for result, tangent in zip(results, found, strict=True):
                if tangent is None or not result.dtype.carries_gradient:
                    continue
                if inferred.offsets is None and any(g is not None and g.storage is tangent.storage for g in given):
                    tangent = F.clone(tangent)
                set_tangent(engine, result, level, tangent)
            engine.dual_levels = visible
    finally:
        engine.dual_levels = visible
    node = next((r.grad_fn for r in results if r.grad_fn is not None), None)
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
    return tangent_at(tensor, level) if tensor.dtype.carries_gradient else None


# Writes


def before_write(engine: EngineContext, entry: Row, values: list[Any]) -> dict[int, Tensor | None]:
    """What the tangents of a tensor will be, by level, after an in-place op that is about to write to it."""
    target: Tensor = values[0]
    if engine.inference or not target.dtype.carries_gradient:
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
    source = values[1] if len(values) > 1 else None
    after: dict[int, Tensor | None] = {}
    for level in levels:
        after[level] = _of_number(source, level) if type(source) is Tensor else None
    return after


def _written(entry: Row, values: list[Any], level: int) -> Given:
    return [_of_number(values[0], level), *_given(entry, values, level)]


def _mapped_zero(tangent: Tensor | None) -> Any:
    return 0 if type(tangent) is Tensor else F.sum(F.zeros_like(tangent))


def after_write(engine: EngineContext, target: Tensor, after: dict[int, Tensor | None]) -> None:
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
