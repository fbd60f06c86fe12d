"""Activations and their gradients, one pass over memory each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace
from ..elementary import erf, exp, tanh
from ..native import BLOCK, Count, Element, In1, Out1, blocks, in_memory, inline, native
from ..threads import split

F = np.float32

_HALF, _ONE = F(0.5), F(1)
_ROOT_HALF: Final = F(math.sqrt(0.5))
_DENSITY: Final = F(1 / math.sqrt(2 * math.pi))
_TANH_SCALE: Final = F(math.sqrt(2 / math.pi))
_TANH_CUBE: Final = F(0.044715 * math.sqrt(2 / math.pi))


SMALLEST: Final = 256
"""Elements below which NumPy is quicker at what it does in two or three passes."""


def _run_if_many(kernel: Callable[..., None], dtypes: str, *arrays: Array) -> Array:
    return _run(kernel, dtypes, *arrays) if arrays[0].size >= SMALLEST else NotImplemented


def _run(kernel: Callable[..., None], dtypes: str, *arrays: Array) -> Array:
    """The kernel's result in the memory order of its arrays; ``NotImplemented`` if they are not laid out alike."""
    x = arrays[0]
    if x.dtype.char not in dtypes or any(a.shape != x.shape or a.dtype != x.dtype for a in arrays[1:]):
        return NotImplemented
    out = np.empty_like(x)
    found = in_memory(*arrays, out)
    if found is None:
        return NotImplemented
    split(kernel, blocks(x.size), BLOCK, *found)
    return out


# Each kernel has its loop to itself: with one for all, that takes a formula, each would be two functions.


# gelu


@inline
def _gelu_by_erf(x: Element) -> Element:
    return x * (_HALF * (erf(x * _ROOT_HALF) + _ONE))


@inline
def _gelu_by_tanh(x: Element) -> Element:
    return x * (_HALF * (tanh(x * (x * x * _TANH_CUBE + _TANH_SCALE)) + _ONE))


@native()
def gelu_by_erf(x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = _gelu_by_erf(a[i])


@native()
def gelu_by_tanh(x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = _gelu_by_tanh(a[i])


@native()
def gelu_slope_by_erf(g: In1, x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = g[at : at + BLOCK], x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            v = b[i]
            share = _HALF * (erf(v * _ROOT_HALF) + _ONE)
            done[i] = a[i] * (share + v * (exp(v * v * -_HALF) * _DENSITY))


@native()
def gelu_slope_by_tanh(g: In1, x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = g[at : at + BLOCK], x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            v = b[i]
            s = v * v * _TANH_CUBE
            t = tanh(v * (s + _TANH_SCALE))
            done[i] = a[i] * (_HALF * (_ONE + t) + _HALF * v * (_ONE - t * t) * (s * F(3) + _TANH_SCALE))


@compiled("gelu")
def gelu(xp: Namespace, x: Array, approximate: str) -> Array:
    return _run(gelu_by_tanh if approximate == "tanh" else gelu_by_erf, "f", x)


@compiled("gelu_backward")
def gelu_backward(xp: Namespace, g: Array, x: Array, approximate: str) -> Array:
    return _run(gelu_slope_by_tanh if approximate == "tanh" else gelu_slope_by_erf, "f", g, x)


_ITSELF: Final = F(3e-4)
"""Below this a number is its own hyperbolic tangent; the smallest would lose digits in the quotient."""


@native()
def tanh_each(x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            v = a[i]
            done[i] = v if (v > -_ITSELF) & (v < _ITSELF) else tanh(v)


# sigmoid and what is made with it


@native()
def sigmoid_each(x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = _ONE / (_ONE + exp(-a[i]))


@native()
def silu_each(x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] / (_ONE + exp(-a[i]))


@native()
def silu_slope(g: In1, x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = g[at : at + BLOCK], x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            share = _ONE / (_ONE + exp(-b[i]))
            done[i] = a[i] * (share * (b[i] * (_ONE - share) + _ONE))


@native("float32", "float64")
def sigmoid_slope(g: In1, y: In1, out: Out1, start: Count, stop: Count) -> None:
    one = g.dtype.type(1)
    for at in range(start * BLOCK, min(stop * BLOCK, y.size), BLOCK):
        a, b, done = g[at : at + BLOCK], y[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] * (b[i] * (one - b[i]))


@native("float32", "float64")
def tanh_slope(g: In1, y: In1, out: Out1, start: Count, stop: Count) -> None:
    one = g.dtype.type(1)
    for at in range(start * BLOCK, min(stop * BLOCK, y.size), BLOCK):
        a, b, done = g[at : at + BLOCK], y[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] * (one - b[i] * b[i])


ONE_PASS: Final[dict[str, tuple[Callable[..., None], str]]] = {
    "tanh": (tanh_each, "f"),
    "sigmoid": (sigmoid_each, "f"),
    "silu": (silu_each, "f"),
    "silu_backward": (silu_slope, "f"),
    "sigmoid_backward": (sigmoid_slope, "fd"),
    "tanh_backward": (tanh_slope, "fd"),
}
"""Of an op that takes arrays only: its kernel, and for which dtypes."""


def _register(name: str, kernel: Callable[..., None], dtypes: str) -> None:
    @compiled(name)
    def run(xp: Namespace, *arrays: Array) -> Array:
        return _run_if_many(kernel, dtypes, *arrays)


for _name, _row in ONE_PASS.items():
    _register(_name, *_row)
