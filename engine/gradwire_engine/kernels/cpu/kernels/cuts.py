"""What is cut at a number, and the gradients that go through above it: loops of NumPy's own making, called as its are.

A call of such a loop takes half a microsecond where one of a kernel with a range takes three, and arrays may lie in
memory as they like. Large arrays are left to kernels, for several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numba import float32, float64, vectorize

from ....autograd.registry import bind_layout, compiled
from ....runtime.arrays import Array, Namespace, Native
from .. import object_code, threads
from ..later import LoadedLater, later, loaded, object_file
from ..native import BLOCK, Count, Double, Element, In1, Out1, blocks, in_memory, native

LARGE: Final = 1 << 15
"""Elements from which a kernel does it, which several threads share."""

WORTHWHILE: Final = 1 << 11
"""Elements from which one pass beats NumPy's several."""

Loop = Callable[..., Any]


def _loop(operands: int) -> Callable[[Callable[..., Any]], Loop]:
    """Compile a function of so many numbers of one dtype to one of arrays."""

    def compile_(function: Callable[..., Any]) -> Loop:
        signatures = {np.dtype(T.name): T(*[T] * operands) for T in (float32, float64)}

        file = object_file(function)

        def make(dtypes: Sequence[Native | None]) -> Loop:
            chosen = [signatures[cast(Native, dtype)] for dtype in dtypes]
            made: Any = vectorize(chosen, nopython=True, cache=True)(function)  # type: ignore[no-untyped-call]
            for dtype, signature in zip(dtypes, chosen, strict=True):
                object_code.note(file(dtype), partial(object_code.loop_of, made, signature))
            loop: Loop = getattr(made, "ufunc", made)  # Numba's own look at the operands takes as long as the loop
            return loop

        def from_object(path: Path, dtype: Native | None) -> Loop:
            loop: Loop = object_code.ufunc(path, function, cast(Native, dtype), operands)
            return loop

        place = later()
        if place is None:
            return make(list(signatures))
        return LoadedLater(function, make, list(signatures), 0, place, file, from_object)

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


@native("float32", "float64")
def above_zero_in_blocks(x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = _ZERO if a[i] <= _ZERO else a[i]


@native("float32", "float64")
def passed_above_zero_in_blocks(g: In1, x: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = g[at : at + BLOCK], x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = _ZERO if b[i] <= _ZERO else a[i]


@native("float32", "float64")
def cut_in_blocks(x: In1, least: Double, most: Double, out: Out1, start: Count, stop: Count) -> None:
    low, high = x.dtype.type(least), x.dtype.type(most)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            v = low if a[i] < low else a[i]
            done[i] = high if v > high else v


@native("float32", "float64")
def passed_between_in_blocks(g: In1, x: In1, least: Double, most: Double, out: Out1, start: Count, stop: Count) -> None:
    low, high = x.dtype.type(least), x.dtype.type(most)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = g[at : at + BLOCK], x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = _ZERO if (b[i] <= low) | (b[i] >= high) else a[i]


@native("float32", "float64")
def leaking_in_blocks(g: In1, x: In1, slope: Double, out: Out1, start: Count, stop: Count) -> None:
    factor = x.dtype.type(slope)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = g[at : at + BLOCK], x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] if b[i] > _ZERO else a[i] * factor


def _with_numbers(kernel: Callable[..., None], arrays: tuple[Array, ...], *numbers: float) -> Array:
    """A kernel's result for large arrays that are laid out alike."""
    x = arrays[0]
    if x.size < WORTHWHILE or not _fits(*arrays):
        return NotImplemented
    out = np.empty_like(x)
    flat = in_memory(*arrays, out)
    if flat is None:
        return NotImplemented
    threads.split(kernel, blocks(out.size), BLOCK, *flat[:-1], *numbers, flat[-1])
    return out


def _run(loop: Loop, kernel: Callable[..., None], *arrays: Array) -> Array:
    """The loop's result, or for large arrays the kernel's, which is the same."""
    if arrays[0].size >= LARGE:
        out = np.empty_like(arrays[0])
        flat = in_memory(*arrays, out)
        if flat is not None:
            threads.split(kernel, blocks(out.size), BLOCK, *flat)
            return out
    return loop(*arrays)


@compiled("relu")
def relu(xp: Namespace, x: Array) -> Array:
    return _run(above_zero, above_zero_in_blocks, x) if x.dtype.char in "fd" else NotImplemented


@compiled("threshold_backward")
def threshold_backward(xp: Namespace, g: Array, x: Array, limit: float) -> Array:
    if not _fits(g, x):
        return NotImplemented
    if limit == 0:
        return _run(passed_above_zero, passed_above_zero_in_blocks, g, x)
    return passed_above(g, x, x.dtype.type(limit))


@compiled("relu6")
def relu6(xp: Namespace, x: Array) -> Array:
    return _with_numbers(cut_in_blocks, (x,), 0, 6)


@compiled("hardtanh")
def hardtanh(xp: Namespace, x: Array, low: float, high: float) -> Array:
    if low != low or high != high:
        return NotImplemented
    return _with_numbers(cut_in_blocks, (x,), low, high)


@compiled("hardtanh_backward")
def hardtanh_backward(xp: Namespace, g: Array, x: Array, low: float, high: float) -> Array:
    return _with_numbers(passed_between_in_blocks, (g, x), low, high)


@compiled("leaky_relu")
def leaky_relu(xp: Namespace, x: Array, slope: float) -> Array:
    return _with_numbers(leaking_in_blocks, (x, x), slope)


@compiled("leaky_relu_backward")
def leaky_relu_backward(xp: Namespace, g: Array, x: Array, slope: float) -> Array:
    return _with_numbers(leaking_in_blocks, (g, x), slope)


@bind_layout("relu")
def settled_relu(x: Array) -> Loop | None:
    return loaded(above_zero, x.dtype) if x.size < LARGE else None


@bind_layout("threshold_backward")
def settled_threshold_backward(g: Array, x: Array, limit: float) -> Loop | None:
    return loaded(passed_above_zero, x.dtype) if x.size < LARGE and limit == 0 else None
