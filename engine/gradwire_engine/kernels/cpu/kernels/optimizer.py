"""Optimizer steps, each parameter in one pass over it, its gradient and its states. The order of operations is that of
:mod:`....ops.optimizer`."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace
from ..native import BLOCK, Count, Double, Flag, In1, Out1, blocks, in_memory, native
from ..threads import split


@native("float32", "float64")
def sgd_blocks(
    g: In1, p: Out1, buffer: Out1, lr: Double, momentum: Double, dampening: Double, decay: Double, nesterov: Flag,
    maximize: Flag, starts: Flag, start: Count, stop: Count,
) -> None:  # fmt: skip
    T = g.dtype.type
    rate, keep, add, shrink, sign = T(-lr), T(momentum), T(1 - dampening), T(decay), T(-1 if maximize else 1)
    for at in range(start * BLOCK, min(stop * BLOCK, p.size), BLOCK):
        a, x = g[at : at + BLOCK], p[at : at + BLOCK]
        if not buffer.size:
            for i in range(x.size):
                x[i] += rate * (shrink * x[i] + sign * a[i] if decay else sign * a[i])
            continue
        b = buffer[at : at + BLOCK]
        for i in range(x.size):
            d = shrink * x[i] + sign * a[i] if decay else sign * a[i]
            moved = d if starts else keep * b[i] + add * d
            b[i] = moved
            x[i] += rate * (d + keep * moved if nesterov else moved)


@native("float32", "float64")
def adam_blocks(
    g: In1, p: Out1, mean: Out1, square: Out1, largest: Out1, lr: Double, step_size: Double, correction: Double,
    beta1: Double, beta2: Double, eps: Double, decay: Double, decoupled: Flag, maximize: Flag, start: Count,
    stop: Count,
) -> None:  # fmt: skip
    T = g.dtype.type
    rate, scaled, least, sign = T(-step_size), T(correction), T(eps), T(-1 if maximize else 1)
    left, added, b2 = T(beta1), T(1 - beta1), T(beta2)
    new_square = T(1 - beta2)
    shrunk = T(1 - lr * decay) if decoupled else T(1)
    coupled = T(0) if decoupled else T(decay)
    near = 1 - beta1 < 0.5
    for at in range(start * BLOCK, min(stop * BLOCK, p.size), BLOCK):
        a, x, m, v = g[at : at + BLOCK], p[at : at + BLOCK], mean[at : at + BLOCK], square[at : at + BLOCK]
        if largest.size:
            top = largest[at : at + BLOCK]
            for i in range(x.size):
                d = sign * a[i]
                d = coupled * x[i] + d if coupled != 0 else d
                d2 = new_square * d * d
                m[i] = m[i] + added * (d - m[i]) if near else d - left * (d - m[i])
                v[i] = b2 * v[i] + d2
                # A NaN stays, as with NumPy's maximum.
                s = v[i] if v[i] > top[i] or v[i] != v[i] else top[i]
                top[i] = s
                x[i] = x[i] * shrunk + rate * m[i] / (math.sqrt(s) / scaled + least)
        else:
            for i in range(x.size):
                d = sign * a[i]
                d = coupled * x[i] + d if coupled != 0 else d
                d2 = new_square * d * d
                moved = m[i] + added * (d - m[i]) if near else d - left * (d - m[i])
                s = b2 * v[i] + d2
                m[i] = moved
                v[i] = s
                x[i] = x[i] * shrunk + rate * moved / (math.sqrt(s) / scaled + least)


_ABSENT: Final = {dtype: np.empty(0, dtype) for dtype in (np.dtype("f"), np.dtype("d"))}


def _as_one(p: Array, g: Array, states: list[Any]) -> Any:
    """Gradient, parameter and states as one dimension each, an absent one as one without elements; ``None`` if they do
    not fit together."""
    shape, dtype = p.shape, p.dtype
    absent = _ABSENT.get(dtype)
    if absent is None:
        return None
    arrays = [g, p, *[s for s in states if s is not None]]
    simple = True  # as most are
    for a in arrays:
        if a.dtype != dtype or a.shape != shape:
            return None
        simple = simple and a.flags.carray
    if simple:
        present = arrays if len(shape) == 1 else [a.reshape(-1) for a in arrays]
    else:
        found = in_memory(*arrays)
        if found is None or not all(a.flags.writeable for a in found[1:]):
            return None
        present = found
    if len(present) == 2 + len(states):
        return present
    rest = iter(present[2:])
    return [*present[:2], *[absent if s is None else next(rest) for s in states]]


@compiled("sgd_step")
def sgd_step(
    xp: Namespace, p: Array, g: Array, buffer: Array, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool, starts: bool,
) -> Any:  # fmt: skip
    """One parameter's step; ``starts`` if its buffer has nothing yet."""
    found = _as_one(p, g, [buffer])
    if found is None:
        return NotImplemented
    numbers = (lr, momentum, dampening, weight_decay)
    split(sgd_blocks, blocks(p.size), BLOCK, *found, *map(float, numbers), nesterov, maximize, starts)
    return None


@compiled("adam_step")
def adam_step(
    xp: Namespace, p: Array, g: Array, mean: Array, square: Any, largest: Any, lr: float, step_size: float,
    correction: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool, amsgrad: bool,
    maximize: bool,
) -> Any:  # fmt: skip
    """One parameter's step, with the corrections of the bias already computed."""
    found = _as_one(p, g, [mean, square, largest if amsgrad else None])
    if found is None:
        return NotImplemented
    numbers = (lr, step_size, correction, beta1, beta2, eps, weight_decay)
    split(adam_blocks, blocks(p.size), BLOCK, *found, *map(float, numbers), bool(weight_decay) and decoupled, maximize)
    return None
