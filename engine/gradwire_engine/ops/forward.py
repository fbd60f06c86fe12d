"""What the control ops of forward mode do: levels, duals and their parts."""

from __future__ import annotations

from typing import Final
from weakref import WeakValueDictionary

from gradwire_protocol.errors import ArgumentError, LimitExceeded

from ..autograd.engine_context import EngineContext
from ..autograd.forward import set_tangent, tangent_at, without
from ..autograd.functional import F
from ..autograd.registry import control
from ..autograd.tensor import Tensor

LEVELS_OPEN: Final = 64


@control("enter_dual_level")
def enter_dual_level(engine: EngineContext, level: int) -> None:
    if level < 0 or level in engine.dual_levels:
        raise ArgumentError(f"level {level} is already open or negative")
    if len(engine.dual_levels) >= LEVELS_OPEN:
        raise LimitExceeded(
            f"{LEVELS_OPEN} levels of forward mode are open, the maximum; exit some first", limit=LEVELS_OPEN
        )
    engine.duals[level] = WeakValueDictionary()
    engine.dual_levels = tuple(sorted((*engine.dual_levels, level)))


@control("exit_dual_level")
def exit_dual_level(engine: EngineContext, level: int) -> None:
    _check_open(engine, level)
    engine.dual_levels = tuple(n for n in engine.dual_levels if n != level)
    for tangents in list(engine.duals.pop(level).values()):
        tangents.pop(level, None)


def _check_open(engine: EngineContext, level: int) -> None:
    if level not in engine.dual_levels:
        raise ArgumentError(f"level {level} of forward mode is not open; the open levels are {engine.dual_levels}")


@control("make_dual")
def make_dual(engine: EngineContext, primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    _check_open(engine, level)
    if tangent_at(primal, level) is not None:
        raise ArgumentError(f"the tensor is already dual at level {level}; unpack it first")
    if tangent_at(tangent, level) is not None:
        raise ArgumentError(f"the tangent is itself dual at level {level}; unpack it first")
    visible = engine.dual_levels
    dual: Tensor = F.view(primal, primal.shape)
    engine.dual_levels = tuple(n for n in visible if n < level)
    try:
        set_tangent(engine, dual, level, tangent)
    finally:
        engine.dual_levels = visible
    return dual


@control("primal_of")
def primal_of(engine: EngineContext, tensor: Tensor, level: int) -> Tensor:
    return without(engine, tensor, level)


@control("tangent_of")
def tangent_of(engine: EngineContext, tensor: Tensor, level: int) -> Tensor:
    found = tangent_at(tensor, level)
    if found is not None:
        return found
    zeros: Tensor = F.zeros_like(tensor)
    return zeros
