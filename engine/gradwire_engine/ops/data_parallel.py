"""Collectives over many tensors at once: they travel as one flat array, in the tensors' order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradwire_protocol.errors import GradwireError, Unsupported

from ..autograd.engine_context import EngineContext
from ..autograd.registry import control
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, native
from ..runtime.background import Lane
from .collectives import all_reduced, check_rank, done, group_of, passed_on


def _joined(engine: EngineContext, arrays: Sequence[Array | None], like: Sequence[Tensor], more: int) -> Array:
    """All arrays in one array in host memory, zeros where there is none, and ``more`` elements."""
    backend = engine.backends[like[0].device]
    xp, dtype = backend.xp, native(like[0].dtype)
    engine.account.check(_joined_bytes(like, more), "the buffer of a collective")
    joined = xp.zeros(sum(tensor.meta.numel for tensor in like) + more, dtype)
    at = 0
    for array, shaped in zip(arrays, like, strict=True):
        count = shaped.meta.numel
        if array is not None:
            joined[at : at + count] = array.reshape(-1)
        at += count
    found: Array = joined if like[0].device == "cpu" else backend.to_host(joined)
    return found


def _joined_bytes(like: Sequence[Tensor], more: int) -> int:
    return (sum(tensor.meta.numel for tensor in like) + more) * like[0].dtype.itemsize


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


def _told_average(params: list[Tensor], flags: int) -> str:
    return _told("average_gradients", params, *(["unused"] if flags else []))


def _packed(
    engine: EngineContext, gradients: Sequence[Array | None], params: list[Tensor], unused: tuple[int, ...] | None
) -> Array:
    """What travels: the gradients, and for each whether this rank has used it, where ranks tell each other."""
    flags = 0 if unused is None else len(params)
    values = _joined(engine, gradients, params, flags)
    if flags:
        used = np.ones(flags, values.dtype)
        used[list(unused or ())] = 0
        values[-flags:] = used
    return values


def _average(lane: Lane, values: Array) -> None:
    all_reduced(lane, values, "avg")


@control("average_gradients", writes="gradients", backward=True)
def average_gradients(engine: EngineContext, params: list[Tensor], group: str, unused: tuple[int, ...] | None) -> None:
    found = group_of(engine, group)
    flags = 0 if unused is None else len(params)
    with found.collective(_told_average(params, flags), engine.clock):
        values = found.started()
        if values is None:
            gradients = [None if param.grad is None else param.grad.array for param in params]
            values = _packed(engine, gradients, params, unused)
            _average(found, values)
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


class Bucket(NamedTuple):
    """The arguments of an ``average_gradients`` that is to come."""

    params: list[Tensor]
    group: str
    unused: tuple[int, ...] | None


class EarlyAverages:
    """Starts the averages that follow a backward while it runs: each bucket as soon as its gradients are complete, in
    the buckets' order. What is averaged is what the leaves will have. Their record waits for it, and is where errors
    appear; what cannot be started early is left to it.

    Gradients on a GPU are taken to host memory once backward has issued all its work, so that it need not wait for
    them in the middle; then one bucket travels while the next one is copied.
    """

    def __init__(self, engine: EngineContext, buckets: list[Bucket]) -> None:
        self._engine = engine
        self._due = deque(buckets)
        self._coming: set[int] = set()
        self._arrived: dict[int, Tensor] = {}
        self._held = 0
        self._over = False

    def begin(self, leaves: list[Tensor]) -> None:
        self._coming.update(map(id, leaves))
        self._start_complete()

    def arrived(self, leaf: Tensor, gradient: Tensor | None) -> None:
        if gradient is not None:
            self._arrived[id(leaf)] = gradient
        self._coming.discard(id(leaf))
        self._start_complete()

    def finish(self) -> None:
        self._over = True
        self._start_complete()
        self._due.clear()
        self._arrived.clear()  # whoever accumulates looks whether somebody else holds them

    def _start_complete(self) -> None:
        while self._due:
            params = self._due[0].params
            waits = params[0].device != "cpu" and not self._over
            if waits or any(id(param) in self._coming for param in params):
                return
            if not self._start(self._due.popleft()):
                self._due.clear()

    def _start(self, bucket: Bucket) -> bool:
        params, engine = bucket.params, self._engine
        group, flags = engine.groups.get(bucket.group), 0 if bucket.unused is None else len(params)
        if group is None or not group.starts:
            return False
        self._held += _joined_bytes(params, flags)
        try:
            engine.account.check(self._held, "the buffers of collectives")
            values = _packed(engine, [self._final(param) for param in params], params, bucket.unused)
        except (GradwireError, MemoryError):
            return False
        for param in params:
            self._arrived.pop(id(param), None)
        group.start(_told_average(params, flags), values, lambda lane: _average(lane, values))
        return True

    def _final(self, param: Tensor) -> Array | None:
        """The gradient that a parameter will have after this backward."""
        before, gradient = param.grad, self._arrived.get(id(param))
        if gradient is None:
            return None if before is None else before.array
        kept = param.requires_grad_flag and param.grad_dtype in (None, gradient.dtype)
        if not kept or type(gradient) is not Tensor or gradient.dtype is not param.dtype:
            raise Unsupported("this gradient is known once the parameter has it")
        if gradient.shape != param.shape or (before is not None and before.dtype is not gradient.dtype):
            raise Unsupported("this gradient is known once the parameter has it")
        if before is None:
            return gradient.array
        xp = self._engine.backends[param.device].xp
        total: Array = xp.add(before.array, gradient.array)
        return total


@control("broadcast_each", writes="operands")
def broadcast_each(engine: EngineContext, tensors: list[Tensor], group: str, src: int) -> None:
    found = group_of(engine, group)
    check_rank(found, "broadcast_each", "src", src)
    with found.collective(_told("broadcast_each", tensors, src), engine.clock):
        values = _joined(engine, [tensor.array for tensor in tensors], tensors, 0)
        passed_on(found, values, src)
    done(engine)
    if found.rank != src:
        _spread(engine, values, tensors, tensors)
