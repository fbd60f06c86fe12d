"""What the steps of recurrent layers have in common: products of a few states with a weight that stays in the cache.

A weight is packed once per layer in column panels, which the tiles read from beginning to end in every step. Each
sequence of a batch is computed by itself, in units of a few; so threads share a layer without waiting for each other.
Imports Numba.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ...autograd.registry import row
from ...numerics.sequences import Walk
from ...runtime import deadline
from ...runtime.arrays import Array
from .emitter import VECTOR, apart
from .moves import move, transpose
from .native import Count, In1, Out1, flat, inline, native
from .tiles import multiply, panel_rows

UNIT: Final = 8
"""Sequences that are computed together."""

VECTORS: Final = 3
"""Of a panel, but for the last."""

CALL_PRODUCTS: Final = 1 << 30
"""Products after which it is asked whether the frame's time is over."""


def units(batch: int) -> int:
    return -(-batch // UNIT)


@inline
def _width(left: int, lanes: int) -> int:
    """Of the next panel, if so many columns are left."""
    return min(VECTORS * lanes, (left + lanes - 1) // lanes * lanes)


@native("float32", "float64")
def pack_transposed(weight: In1, outs: Count, ins: Count, panels: Out1) -> None:
    """Panels of the transpose of a matrix ``(outs, ins)``."""
    lanes, at = VECTOR // weight.itemsize, 0
    for n in range(0, outs, VECTORS * lanes):
        width = _width(outs - n, lanes)
        count = min(width, outs - n)
        if count < width:
            panels[at : at + ins * width] = 0
        transpose(count, weight, n * ins, ins, panels, at, width, ins)
        at += ins * width


@native("float32", "float64")
def pack_plain(weight: In1, ins: Count, outs: Count, panels: Out1) -> None:
    """Panels of a matrix ``(ins, outs)``."""
    lanes, at = VECTOR // weight.itemsize, 0
    for n in range(0, outs, VECTORS * lanes):
        width = _width(outs - n, lanes)
        count = min(width, outs - n)
        if count < width:
            panels[at : at + ins * width] = 0
        for k in range(ins):
            move(weight, k * outs + n, panels, at + k * width, count, weight.dtype.type(0))
        at += ins * width


def panels_of(weight: Array, transposed: bool) -> Array:
    """A weight's panels, ready to multiply states with it or with its transpose."""
    rows, columns = weight.shape
    lanes = VECTOR // weight.itemsize
    ins, outs = (columns, rows) if transposed else (rows, columns)
    panels = np.empty(ins * (-(-outs // lanes) * lanes), weight.dtype)
    (pack_transposed if transposed else pack_plain)(flat(weight), rows, columns, panels)
    return panels


@inline
def places_of(ins: int, outs: int, lanes: int) -> Array:
    """Where each row is in a panel, and then where it is in the last one."""
    places = np.empty(2 * ins, np.int64)
    last = _width((outs - 1) % (VECTORS * lanes) + 1, lanes)
    for k in range(ins):
        places[k] = k * VECTORS * lanes
        places[ins + k] = k * last
    return places


@inline
def padded_width(outs: int, lanes: int) -> int:
    """The columns of all panels."""
    return (outs + lanes - 1) // lanes * lanes


@inline
def pack_states(states: Array, at: int, step: int, count: int, ins: int, packed: Array) -> None:
    """Rows of states, ``step`` apart from ``at`` on, in the order in which tiles read them."""
    rows = panel_rows(count)
    if count < rows:
        packed[: rows * ins] = 0
    transpose(count, states, at, step, packed, 0, rows, ins)


@apart
def multiply_states(
    count: int, packed: Array, ins: int, panels: Array, outs: int, places: Array, made: Array, step: int
) -> None:
    """``made[row * step + n]``: the product of packed states with a weight in panels."""
    lanes = VECTOR // packed.itemsize
    at = 0
    for n in range(0, outs, VECTORS * lanes):
        width = _width(outs - n, lanes)
        table = 0 if width == VECTORS * lanes else ins
        multiply(panel_rows(count), width // lanes, packed, 0, panels, at, places, table, ins, made, n, step, False)
        at += ins * width


def matrix_product(a: Array, b: Array) -> Array:
    """``a @ b`` of all steps together, by the compiled kernel where that applies."""
    multiply = row("mm").compiled  # by way of the table: each module of kernels has a cache of its own
    made: Any = NotImplemented if multiply is None else multiply(np, a, b)
    return np.matmul(a, b) if made is NotImplemented else made


class Steps:
    """A walk as kernels take it.

    Attributes:
        starts, sizes: of each time, its first row and how many it has.
        before: of each time, the one that the walk was at before; -1 at first.
    """

    def __init__(self, walk: Walk) -> None:
        sizes = np.array(walk.sizes, np.int64)
        self.sizes = sizes
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)[:-1]])
        times = np.arange(len(sizes))
        self.before = np.append(times[1:], -1) if walk.reverse else times - 1
        self._there = times[::-1].copy() if walk.reverse else times

    def _cut(self, times: Array, products: int) -> Iterator[Array]:
        each = max(1, CALL_PRODUCTS // max(products, 1))
        for first in range(0, len(times), each):
            deadline.check("a recurrent layer")
            yield times[first : first + each]

    def there(self, products: int) -> Iterator[Array]:
        """The times in the order of the walk, in pieces; a step takes so many products."""
        return self._cut(self._there, products)

    def back(self, products: int) -> Iterator[Array]:
        """The same, in the opposite order."""
        return self._cut(self._there[::-1].copy(), products)
