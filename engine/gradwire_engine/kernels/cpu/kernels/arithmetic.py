"""NumPy's arithmetic on large arrays, divided among threads. Each result is rounded once, so the bits are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from ....runtime.arithmetic import BY_THREADS
from ....runtime.arrays import Array
from ..native import BLOCK, Count, Double, In1, Out1, blocks, in_memory, native
from ..threads import split

# One operation per loop: the compiler must not fuse a product with a sum.


@native("float32", "float64")
def sums(x: In1, y: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = x[at : at + BLOCK], y[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] + b[i]


@native("float32", "float64")
def differences(x: In1, y: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = x[at : at + BLOCK], y[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] - b[i]


@native("float32", "float64")
def products(x: In1, y: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = x[at : at + BLOCK], y[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] * b[i]


@native("float32", "float64")
def quotients(x: In1, y: In1, out: Out1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, b, done = x[at : at + BLOCK], y[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] / b[i]


@native("float32", "float64")
def sums_with_number(x: In1, number: Double, out: Out1, start: Count, stop: Count) -> None:
    b = x.dtype.type(number)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] + b


@native("float32", "float64")
def differences_from_number(x: In1, number: Double, out: Out1, start: Count, stop: Count) -> None:
    b = x.dtype.type(number)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = b - a[i]


@native("float32", "float64")
def products_with_number(x: In1, number: Double, out: Out1, start: Count, stop: Count) -> None:
    b = x.dtype.type(number)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] * b


@native("float32", "float64")
def quotients_by_number(x: In1, number: Double, out: Out1, start: Count, stop: Count) -> None:
    b = x.dtype.type(number)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            done[i] = a[i] / b


class Loops(NamedTuple):
    """The kernels of an operation: of two arrays, of an array and a number, of a number and an array."""

    arrays: Callable[..., None]
    number: Callable[..., None] | None
    reversed: Callable[..., None] | None


LOOPS: Final = {
    "add": Loops(sums, sums_with_number, sums_with_number),
    "subtract": Loops(differences, None, differences_from_number),
    "multiply": Loops(products, products_with_number, products_with_number),
    "true_divide": Loops(quotients, quotients_by_number, None),
}

NUMBERS: Final = (float, int)
MOST_EXACT: Final = 1 << 53
"""Ints up to here are floats."""


def _split(kernel: Callable[..., None], arrays: list[Array], *numbers: float) -> Array | None:
    out = np.empty_like(arrays[0])
    found = in_memory(*arrays, out)
    if found is None:
        return None
    split(kernel, blocks(out.size), BLOCK, *found[:-1], *numbers, found[-1])
    return out


def _register(name: str, loops: Loops) -> None:
    plain = getattr(np, name)
    of_arrays, of_number, reversed_ = loops

    def run(x: Any, y: Any) -> Any:
        out = None
        if type(x) is np.ndarray and x.dtype.char in "fd":
            if type(y) is np.ndarray:
                if y.dtype == x.dtype and y.shape == x.shape:
                    out = _split(of_arrays, [x, y])
            elif of_number is not None and type(y) in NUMBERS and abs(y) < MOST_EXACT:
                out = _split(of_number, [x], y)
        elif reversed_ is not None and type(x) in NUMBERS and abs(x) < MOST_EXACT and type(y) is np.ndarray:
            out = _split(reversed_, [y], x) if y.dtype.char in "fd" else None
        return plain(x, y) if out is None else out

    BY_THREADS[name] = run


for _name, _loops in LOOPS.items():
    _register(_name, _loops)
