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
from .collectives import check_rank, done, group_of
from .transport import ALL_REDUCED, PASSED_ON, Transport, average_beside, to_device


def _joined(
    engine: EngineContext, arrays: Sequence[Array | None], like: Sequence[Tensor], more: int, on_gpu: bool
) -> Array:
    """All arrays in one array, zeros where there is none, and ``more`` elements; in host memory unless it is to stay
    on the GPU."""
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
    found: Array = joined if on_gpu or like[0].device == "cpu" else backend.to_host(joined)
    return found


def _joined_bytes(like: Sequence[Tensor], more: int) -> int:
    return (sum(tensor.meta.numel for tensor in like) + more) * like[0].dtype.itemsize


def _spread(engine: EngineContext, values: Array, tensors: Sequence[Tensor | None], like: Sequence[Tensor]) -> None:
    """Write one array over all tensors, in their order."""
    joined = to_device(engine.backends[like[0].device], values)
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
    engine: EngineContext,
    gradients: Sequence[Array | None],
    params: list[Tensor],
    unused: tuple[int, ...] | None,
    on_gpu: bool,
) -> Array:
    """What travels: the gradients, and for each whether this rank has used it, where ranks tell each other."""
    flags = 0 if unused is None else len(params)
    values = _joined(engine, gradients, params, flags, on_gpu)
    if flags:
        used = np.ones(flags, native(params[0].dtype))
        used[list(unused or ())] = 0
        values[-flags:] = to_device(engine.backends[params[0].device], used) if on_gpu else used
    return values


def _used(engine: EngineContext, values: Array, params: list[Tensor], flags: int) -> Array:
    """Which parameters some rank has used."""
    if not flags:
        return np.ones(len(params), bool)
    told = values[-flags:]
    host = told if type(told) is np.ndarray else engine.backends[params[0].device].to_host(told)
    found: Array = host != 0
    return found


@control("average_gradients", writes="gradients", backward=True)
def average_gradients(engine: EngineContext, params: list[Tensor], group: str, unused: tuple[int, ...] | None) -> None:
    found = group_of(engine, group)
    flags = 0 if unused is None else len(params)
    with found.collective(_told_average(params, flags), engine.clock):
        values = found.started()
        if values is None:
            transport = Transport(engine, found, params[0].device)
            gradients = [None if param.grad is None else param.grad.array for param in params]
            values = _packed(engine, gradients, params, unused, transport.on_gpu)
            transport.run(ALL_REDUCED, values, "avg")
    done(engine)
    kept = _used(engine, values, params, flags)
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

    Gradients on a GPU that go through host memory are taken there once backward has issued all its work, so that it
    need not wait for them in the middle; then one bucket travels while the next one is copied. From GPU to GPU, a
    bucket travels when backward has computed it, on a stream of its own.
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
            params, group = self._due[0].params, self._engine.groups.get(self._due[0].group)
            waits = params[0].device != "cpu" and not self._over and not (group is not None and group.meets)
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
            on_gpu = group.meets and params[0].device != "cpu"
            values = _packed(engine, [self._final(param) for param in params], params, bucket.unused, on_gpu)
            work = average_beside(engine.backends[params[0].device], group, values)
        except (GradwireError, MemoryError):
            return False
        for param in params:
            self._arrived.pop(id(param), None)
        group.start(_told_average(params, flags), values, work)
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
        transport = Transport(engine, found, tensors[0].device)
        values = _joined(engine, [tensor.array for tensor in tensors], tensors, 0, transport.on_gpu)
        transport.run(PASSED_ON, values, src)
    done(engine)
    if found.rank != src:
        _spread(engine, values, tensors, tensors)
