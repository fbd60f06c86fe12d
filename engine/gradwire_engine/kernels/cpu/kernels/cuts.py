"""What is cut at a number, and the gradients that go through above it: loops of NumPy's own making, called as its are.

A call of such a loop takes half a microsecond where one of a kernel with a range takes three, and arrays may lie in
memory as they like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import float32, float64, vectorize

from ....autograd.registry import bind_layout, compiled
from ....runtime.arrays import Array, Namespace
from .. import threads
from ..native import BLOCK, Element, blocks, in_memory

Loop = Callable[..., Any]


def _loop(operands: int) -> Callable[[Callable[..., Any]], Loop]:
    """Compile a function of so many numbers of one dtype to one of arrays."""

    def compile_(function: Callable[..., Any]) -> Loop:
        signatures = [T(*[T] * operands) for T in (float32, float64)]
        made: Any = vectorize(signatures, nopython=True, cache=True)(function)  # type: ignore[no-untyped-call]
        loop: Loop = getattr(made, "ufunc", made)  # Numba's own look at the operands takes as long as the loop
        return loop

    return compile_


_ZERO: Final = np.float32(0)  # a number of both dtypes; nothing that is NaN is below it


@_loop(1)
def above_zero(x: Element) -> Element:
    return _ZERO if x <= _ZERO else x


@_loop(2)
def passed_above_zero(g: Element, x: Element) -> Element:
    return _ZERO if x <= _ZERO else g


@_loop(3)
def passed_above(g: Element, x: Element, limit: Element) -> Element:
    return _ZERO if x <= limit else g


def _fits(*arrays: Array) -> bool:
    x = arrays[0]
    return x.dtype.char in "fd" and all(a.shape == x.shape and a.dtype == x.dtype for a in arrays[1:])


def _run(loop: Loop, *arrays: Array) -> Array:
    """The loop's result; a large one by several threads."""
    if arrays[0].size >= threads.WORTH:
        out = np.empty_like(arrays[0])
        flat = in_memory(*arrays, out)
        if flat is not None:
            threads.split(_range, blocks(out.size), BLOCK, loop, *flat)
            return out
    return loop(*arrays)


def _range(loop: Loop, *rest: Any) -> None:
    *flat, start, stop = rest
    part = slice(start * BLOCK, stop * BLOCK)
    *operands, out = [each[part] for each in flat]
    with np.errstate(all="ignore"):  # which holds for a thread
        loop(*operands, out=out)


@compiled("relu")
def relu(xp: Namespace, x: Array) -> Array:
    return _run(above_zero, x) if x.dtype.char in "fd" else NotImplemented


@compiled("threshold_backward")
def threshold_backward(xp: Namespace, g: Array, x: Array, limit: float) -> Array:
    if not _fits(g, x):
        return NotImplemented
    if limit == 0:
        return _run(passed_above_zero, g, x)
    return passed_above(g, x, x.dtype.type(limit))


@bind_layout("relu")
def settled_relu(x: Array) -> Loop | None:
    return above_zero if x.size < threads.WORTH else None


@bind_layout("threshold_backward")
def settled_threshold_backward(g: Array, x: Array, limit: float) -> Loop | None:
    return passed_above_zero if x.size < threads.WORTH and limit == 0 else None
