"""Sums along axes. Some hundred elements are added in their own dtype, then everything in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import DType

from ....autograd.registry import bind_layout, compiled
from ....numerics.axes import axes_of, count
from ....runtime.arrays import Array, Namespace
from .. import threads
from ..native import Count, DoubleOut1, In1, flat, native
from ..rows import row_sum

RUN: Final = 512
"""Elements that are added in their own dtype."""

COLUMNS: Final = 256
"""Of a matrix that are added up together."""

ROWS: Final = 16
"""Of a matrix that are added in their own dtype."""

CHUNK: Final = 1 << 15
"""Elements of a sum over everything that make a row of their own."""

SMALLEST: Final = 1 << 12
"""Elements below which NumPy is as fast."""

LARGE: Final = 1 << 17
"""Elements from which several threads are worth a longer way."""

SMALLEST_COLUMNS: Final = 1 << 8
"""The same, where the rows of a matrix are added up."""


@native("float32", "float64")
def sums_of_rows(x: In1, width: Count, out: DoubleOut1, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        end, total = min((i + 1) * width, x.size), 0.0
        for at in range(i * width, end, RUN):
            total += row_sum(x[at : min(at + RUN, end)])
        out[i] = total


@native("float32", "float64")
def sums_of_columns(x: In1, number: Count, width: Count, out: DoubleOut1, start: Count, stop: Count) -> None:
    """Of matrices ``(number, width)``; units of columns from ``start`` on."""
    blocks = (width + COLUMNS - 1) // COLUMNS
    part = np.empty(COLUMNS, x.dtype)
    for unit in range(start, stop):
        matrix, first = unit // blocks, unit % blocks * COLUMNS
        size = min(COLUMNS, width - first)
        sums, own = out[matrix * width + first : matrix * width + first + size], part[:size]
        sums[:] = 0
        for top in range(0, number, ROWS):
            own[:] = 0
            for i in range(top, min(top + ROWS, number)):
                row = x[(matrix * number + i) * width + first : (matrix * number + i) * width + first + size]
                for j in range(own.size):
                    own[j] += row[j]
            for j in range(sums.size):
                sums[j] += own[j]


def _pattern(x: Array, axes: tuple[int, ...]) -> list[tuple[bool, int]]:
    """Neighbouring axes that are reduced, or kept, as one: whether it is reduced, and its extent."""
    found: list[tuple[bool, int]] = []
    for axis, extent in enumerate(x.shape):
        if extent == 1:
            continue
        reduced = axis in axes
        if found and found[-1][0] == reduced:
            found[-1] = (reduced, found[-1][1] * extent)
        else:
            found.append((reduced, extent))
    return found


def _rows(x: Array, rows: int, width: int) -> Array:
    out = np.empty(rows, np.float64)
    threads.split(sums_of_rows, rows, width, flat(x), width, out)
    return out


def _columns(x: Array, matrices: int, number: int, width: int) -> Array:
    out = np.empty(matrices * width, np.float64)
    units = matrices * -(-width // COLUMNS)
    threads.split(sums_of_columns, units, number * min(width, COLUMNS), flat(x), number, width, out)
    return out


def total(x: Array, axes: tuple[int, ...]) -> Any:
    """The sum in float64, of all kept elements in a row; ``None`` where the kernels do not apply."""
    if x.dtype.char not in "fd" or x.size < SMALLEST or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    kinds, extents = zip(*_pattern(x, axes), strict=True)
    if kinds == (True,):
        return _rows(x, -(-x.size // CHUNK), CHUNK).sum()
    if kinds == (False, True):
        return _rows(x, *extents)
    if kinds == (True, False):
        return _columns(x, 1, *extents)
    if kinds == (False, True, False):
        return _columns(x, *extents)
    if kinds == (True, False, True):
        return _rows(x, extents[0] * extents[1], extents[2]).reshape(extents[:2]).sum(axis=0)
    return None


def _reduced(x: Array, dim: int | Sequence[int] | None, divisor: int) -> Array:
    axes = axes_of(x, dim)
    found = total(x, axes)
    if found is None:
        return NotImplemented
    shape = [n for i, n in enumerate(x.shape) if i not in axes]
    return np.asarray(found / divisor if divisor > 1 else found).astype(x.dtype).reshape(shape)


@compiled("sum")
def sum_(xp: Namespace, x: Array, dim: int | Sequence[int] | None, keepdim: bool, dtype: DType | None) -> Array:
    return _reduced(x, dim, 1)


@compiled("mean")
def mean(xp: Namespace, x: Array, dim: int | Sequence[int] | None, keepdim: bool, dtype: DType | None) -> Array:
    return _reduced(x, dim, count(x, axes_of(x, dim)))


def _reduced_to(x: Array, size: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of ``x`` that are added up for this size."""
    lead = x.ndim - len(size)
    return (*range(lead), *(lead + i for i, n in enumerate(size) if n != x.shape[lead + i]))


@compiled("sum_to_size")
def sum_to_size(xp: Namespace, x: Array, size: tuple[int, ...]) -> Array:
    way = settled_sum_to_size(x, size)
    if way is not None:
        return way(x)
    found = total(x, _reduced_to(x, size))
    return NotImplemented if found is None else np.asarray(found).astype(x.dtype).reshape(size)


@bind_layout("sum_to_size")
def settled_sum_to_size(x: Array, size: tuple[int, ...]) -> Callable[[Any], Any] | None:
    """Of the rows of a matrix, as a layer's bias needs it, where that is short."""
    if x.dtype.char not in "fd" or not SMALLEST_COLUMNS <= x.size < LARGE or not x.flags.c_contiguous:
        return None
    pattern = _pattern(x, _reduced_to(x, size))
    if [reduced for reduced, _ in pattern] != [True, False] or not x.flags.aligned:
        return None
    (_, number), (_, width) = pattern
    units, dtype = -(-width // COLUMNS), x.dtype

    def add_up(x: Array) -> Array:
        out = np.empty(width, np.float64)
        sums_of_columns(x.reshape(-1), number, width, out, 0, units)
        return out.astype(dtype).reshape(size)

    return add_up
