"""Running an op on mapped tensors: by its rule, as what it is composed of, or sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.errors import ArgumentError, InternalError
from gradwire_protocol.promotion import ScalarKind

from ..functional import F
from ..registry import Row, row
from ..tensor import Tensor
from .batched import Batched
from .controls import ON_BATCHED, with_its_tangents
from .default_rules import elementwise, rule_of
from .level import VmapLevel, sample_by_sample

if TYPE_CHECKING:
    from ..engine_context import EngineContext

_SEQUENCES: Final = (list, tuple)


def holds_batched(entry: Row, values: list[Any]) -> bool:
    """Whether an operand is mapped over."""
    for i in entry.tensor_at:
        value = values[i]
        if type(value) is Batched or (type(value) in _SEQUENCES and any(type(v) is Batched for v in value)):
            return True
    return False


def run_batched(engine: EngineContext, entry: Row, values: list[Any]) -> Any:
    """Run an op of which an operand is mapped over.

    Raises:
        ArgumentError: for ops that look at data, random ones where the map forbids them, and in-place ones that would
            write several samples into one place.
    """
    op = entry.op
    described, tensors = _describe(entry, values)
    inferred = engine._infer(entry, described)
    if op.control:
        handler = ON_BATCHED.get(op.name)
        if handler is None:
            raise ArgumentError(f"{op.name} does not support tensors inside vmap")
        return handler(engine, *values)
    x = VmapLevel(engine, entry, inferred, tensors)
    if engine.dual_levels:
        values = [with_its_tangents(x, v) for v in values]
    if op.random:
        return _random(x, values)
    if op.mutates is not None:
        return _write(x, values)
    found = rule_of(op)
    if found is not None:
        return finish(x, found(x, *values))
    if op.dynamic:
        raise ArgumentError(
            f"{op.name}: its result has a data-dependent shape, but samples inside vmap must have one shape"
        )
    if entry.composite is not None:
        return entry.composite(engine, *values)
    return finish(x, sample_by_sample(x, values))


def finish(x: VmapLevel, results: Any) -> Any:
    """Wrap what a rule returned, as many results as the op has."""
    outs = x.inferred.outs
    if type(results) not in _SEQUENCES:
        results = (results,)
    wrapped = tuple([x.wrap(r, outs[i] if i < len(outs) else None) for i, r in enumerate(results)])
    return wrapped[0] if x.entry.op.results == 1 else wrapped


def _describe(entry: Row, values: list[Any]) -> tuple[list[Any], list[Tensor]]:
    """What the table's rule sees of the values, and the tensors among them."""
    described = list(values)
    tensors: list[Tensor] = []
    for i in entry.tensor_at:
        value = values[i]
        if isinstance(value, Tensor):
            described[i] = value.meta
            tensors.append(value)
        elif type(value) in _SEQUENCES:
            described[i] = tuple(None if v is None else v.meta for v in value)
            tensors.extend(v for v in value if v is not None)
        elif value is not None:
            described[i] = ScalarKind.of(value)
    for i in entry.scalar_at:
        if values[i] is not None:
            described[i] = ScalarKind.of(values[i])
    return described, tensors


# Writing


def _write(x: VmapLevel, values: list[Any]) -> Tensor:
    op = x.entry.op
    target = values[0]
    if not x.has(target):
        raise ArgumentError(
            f"{op.name}: a {target.meta!r} tensor that is not mapped over would be written by each of {x.size} "
            "samples; use the out-of-place form"
        )
    found = rule_of(op)
    if found is not None:
        found(x, *values)
    elif op.base is not None:
        F.copy_(target.value, x.front(x.engine.run(row(op.base.name), values)))
    else:
        raise InternalError(f"{op.name} has no rule for writing into mapped tensors")
    return target


# Random numbers


def _random(x: VmapLevel, values: list[Any]) -> Any:
    op = x.entry.op
    if x.randomness == "error":
        raise ArgumentError(
            f"{op.name} draws random numbers inside vmap(randomness='error'); pass randomness='different' for numbers "
            "that differ between samples, or 'same'"
        )
    if op.mutates is not None and not x.has(values[0]):
        raise ArgumentError(f"{op.name}: a tensor that is not mapped over cannot take numbers of {x.size} samples")
    if x.randomness == "different" and op.elementwise:
        results = elementwise(x, *values)
    else:
        results = sample_by_sample(x, values, same_numbers=x.randomness == "same")
    return values[0] if op.mutates is not None else finish(x, results)
