"""Limited-memory BFGS: the vector arithmetic of a step. What is decided by its numbers, the client decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import meta

from ..autograd.engine_context import EngineContext
from ..autograd.registry import control
from ..autograd.tensor import Storage, Tensor
from ..runtime.arrays import Array, native

ENOUGH = 1e-10
"""The product of gradient change and step above which the pair tells something of the curvature."""


def _wrap(engine: EngineContext, data: Array, like: Tensor, dtype: DType) -> Tensor:
    described = meta(tuple(data.shape), dtype, like.device)
    return Tensor(engine, data, described, Storage(data, engine.account))


def _reals(array: Array) -> Array:
    """The elements in order, complex ones as pairs, as a vector that may share memory."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _gathered(engine: EngineContext, params: list[Tensor], arrays: list[Array]) -> Tensor:
    xp = engine.backends[params[0].device].xp
    from gradwire_protocol.promotion import join

    dtype = params[0].dtype.to_real()
    for param in params:
        dtype = join(dtype, param.dtype.to_real())
    engine.account.check(sum(a.nbytes for a in arrays), "the parameters as one vector")
    flat = xp.concatenate([_reals(xp.ascontiguousarray(a)).astype(native(dtype)) for a in arrays])
    return _wrap(engine, flat, params[0], dtype)


@control("flat_gradient")
def flat_gradient(engine: EngineContext, params: list[Tensor]) -> Tensor:
    xp = engine.backends[params[0].device].xp
    return _gathered(
        engine, params, [xp.zeros(p.shape, p.array.dtype) if p.grad is None else p.grad.array for p in params]
    )


@control("flat_values")
def flat_values(engine: EngineContext, params: list[Tensor]) -> Tensor:
    return _gathered(engine, params, [p.array for p in params])


@control("move_params", writes="operands")
def move_params(engine: Any, params: list[Tensor], direction: Tensor, t: float, origin: Tensor | None) -> None:
    start = 0
    for param in params:
        array = param.array
        part = slice(start, start + array.size * (2 if array.dtype.kind == "c" else 1))
        start = part.stop
        change = (direction.array[part] * t).astype(array.real.dtype)
        if array.dtype.kind == "c":
            change = change.view(array.dtype)
        if origin is None:
            array += change.reshape(array.shape)
        else:
            before = origin.array[part].astype(array.real.dtype)
            if array.dtype.kind == "c":
                before = before.view(array.dtype)
            array[...] = (before + change).reshape(array.shape)
        param.storage.version += 1


def _facts(engine: Any, like: Tensor, numbers: list[Any]) -> Tensor:
    from gradwire_protocol.dtypes import float64

    xp = engine.backends[like.device].xp
    data = xp.stack([xp.asarray(n, np.float64) for n in numbers])
    return _wrap(engine, data, like, float64)


@control("gradient_facts")
def gradient_facts(engine: Any, gradient: Tensor, direction: Tensor | None) -> Tensor:
    xp = engine.backends[gradient.device].xp
    g = gradient.array
    sizes = xp.abs(g)
    along = 0.0 if direction is None else xp.dot(g, direction.array)
    return _facts(engine, gradient, [sizes.max() if g.size else 0.0, sizes.sum(), along, xp.dot(g, g)])


@control("lbfgs_direction")
def lbfgs_direction(
    engine: Any, gradient: Tensor, previous: Tensor, direction: Tensor, t: float, old_dirs: list[Tensor],
    old_stps: list[Tensor], ro: list[Tensor], scale: Tensor, history_size: int,
) -> tuple[Tensor, ...]:  # fmt: skip
    xp = engine.backends[gradient.device].xp
    g = gradient.array
    y = g - previous.array
    s = direction.array * xp.asarray(t, g.dtype)
    product = xp.dot(y, s)
    changes, steps = [v.array for v in old_dirs], [v.array for v in old_stps]
    inverses = [r.array for r in ro]
    inverse, first = xp.zeros((), g.dtype), scale.array
    if bool(product > ENOUGH):
        inverse = xp.asarray(1 / product, g.dtype)
        first = xp.asarray(product / xp.dot(y, y), g.dtype)
        keep = max(history_size - 1, 0) if len(changes) >= history_size else len(changes)
        lost = len(changes) - keep
        changes, steps, inverses = [*changes[lost:], y], [*steps[lost:], s], [*inverses[lost:], inverse]
    q = -g
    shares = [None] * len(changes)
    for i in reversed(range(len(changes))):
        shares[i] = xp.dot(steps[i], q) * inverses[i]
        q -= shares[i] * changes[i]
    q *= first
    for i, change in enumerate(changes):
        q += (shares[i] - xp.dot(change, q) * inverses[i]) * steps[i]
    largest = xp.abs(q).max() if q.size else 0.0
    numbers = _facts(engine, gradient, [product, xp.dot(g, q), largest, 0.0])
    dtype = gradient.dtype
    vectors = [_wrap(engine, v, gradient, dtype) for v in (q, y, s, inverse, xp.asarray(first, g.dtype).copy())]
    return (*vectors, numbers)
