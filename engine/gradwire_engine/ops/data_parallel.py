"""Collectives over many tensors at once: they travel as one flat array, in the tensors' order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.engine_context import EngineContext
from ..autograd.registry import control
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, native
from .collectives import all_reduced, check_rank, done, group_of, passed_on


def _joined(engine: EngineContext, tensors: Sequence[Tensor | None], like: Sequence[Tensor], more: int) -> Array:
    """The values of all tensors in one array in host memory, zeros where there is none, and ``more`` elements."""
    backend = engine.backends[like[0].device]
    xp, dtype = backend.xp, native(like[0].dtype)
    total = sum(tensor.meta.numel for tensor in like)
    engine.account.check((total + more) * dtype.itemsize, "the buffer of a collective")
    joined = xp.zeros(total + more, dtype)
    at = 0
    for tensor, shaped in zip(tensors, like, strict=True):
        count = shaped.meta.numel
        if tensor is not None:
            joined[at : at + count] = tensor.array.reshape(-1)
        at += count
    found: Array = joined if like[0].device == "cpu" else backend.to_host(joined)
    return found


def _spread(engine: EngineContext, values: Array, tensors: Sequence[Tensor | None], like: Sequence[Tensor]) -> None:
    """Write one array over all tensors, in their order."""
    joined = values if like[0].device == "cpu" else engine.backends[like[0].device].from_host(values)
    at = 0
    for tensor, shaped in zip(tensors, like, strict=True):
        count = shaped.meta.numel
        if tensor is not None:
            tensor.array[...] = joined[at : at + count].reshape(tensor.shape)
            tensor.storage.version += 1
        at += count


def _told(name: str, tensors: Sequence[Tensor], *rest: Any) -> str:
    total = sum(tensor.meta.numel for tensor in tensors)
    return f"{name}({len(tensors)} of {tensors[0].dtype.name}, {total} elements{''.join(f', {r}' for r in rest)})"


@control("average_gradients", writes="gradients", backward=True)
def average_gradients(engine: EngineContext, params: list[Tensor], group: str, unused: tuple[int, ...] | None) -> None:
    found = group_of(engine, group)
    flags = 0 if unused is None else len(params)
    with found.collective(_told("average_gradients", params, *(["unused"] if flags else [])), engine.clock):
        values = _joined(engine, [param.grad for param in params], params, flags)
        if flags:
            used = np.ones(flags, values.dtype)
            used[list(unused or ())] = 0
            values[-flags:] = used
        all_reduced(found, values, "avg")
    done(engine)
    kept = values[-flags:] != 0 if flags else np.ones(len(params), bool)
    recording, engine.grad_enabled = engine.grad_enabled, False
    try:
        targets: list[Tensor | None] = []
        for param, is_used in zip(params, kept, strict=True):
            if param.grad is None and is_used:
                param.grad = engine.call("zeros_like", param)
            targets.append(param.grad if is_used else None)
    finally:
        engine.grad_enabled = recording
    _spread(engine, values, targets, params)


@control("broadcast_each", writes="operands")
def broadcast_each(engine: EngineContext, tensors: list[Tensor], group: str, src: int) -> None:
    found = group_of(engine, group)
    check_rank(found, "broadcast_each", "src", src)
    with found.collective(_told("broadcast_each", tensors, src), engine.clock):
        values = _joined(engine, tensors, tensors, 0)
        passed_on(found, values, src)
    done(engine)
    if found.rank != src:
        _spread(engine, values, tensors, tensors)
