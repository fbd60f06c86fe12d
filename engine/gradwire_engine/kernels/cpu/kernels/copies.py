"""Transposed copies, and running sums."""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from gradwire_protocol.dtypes import DType

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace
from ..moves import transpose, transpose_eight
from ..native import Count, In1, Out1, flat, native
from ..threads import split

SIDE: Final = 64
"""Rows of a source that are transposed together: their lines stay in the nearest cache."""

SMALLEST: Final = 1 << 10
"""Elements below which a copy by NumPy is as fast."""


@native("float32", "float64")
def transposed(x: In1, rows: Count, columns: Count, out: Out1, start: Count, stop: Count) -> None:
    """Matrices ``(rows, columns)`` with the two exchanged; units of some columns from ``start`` on."""
    blocks = (columns + SIDE - 1) // SIDE
    for unit in range(start, stop):
        matrix, first = unit // blocks * rows * columns, unit % blocks * SIDE
        count = min(SIDE, columns - first)
        whole = rows // 8 * 8
        for r in range(0, whole, 8):
            transpose_eight(x, matrix + r * columns + first, columns, out, matrix + first * rows + r, rows, count)
        if whole < rows:
            transpose(
                rows - whole, x, matrix + whole * columns + first, columns, out, matrix + first * rows + whole, rows,
                count,
            )  # fmt: skip


@compiled("contiguous")
def contiguous(xp: Namespace, x: Array) -> Array:
    if x.ndim < 2 or x.size < SMALLEST or x.flags.c_contiguous or x.dtype.kind not in "fiuc":
        return NotImplemented
    source = x.swapaxes(-1, -2)
    if not source.flags.c_contiguous or min(x.shape[-2:]) < 8:
        return NotImplemented
    bits = {4: np.float32, 8: np.float64}.get(x.itemsize)
    if bits is None or not source.flags.aligned:
        return NotImplemented
    rows, columns = source.shape[-2:]
    out = np.empty(x.shape, x.dtype)
    units = prod(x.shape[:-2]) * -(-columns // SIDE)
    split(transposed, units, rows * SIDE, source.reshape(-1).view(bits), rows, columns, out.reshape(-1).view(bits))
    return out


@native("float32", "float64")
def running_sums(x: In1, number: Count, width: Count, out: Out1, start: Count, stop: Count) -> None:
    """Along the middle of ``(before, number, width)``, added in float64."""
    sums = np.zeros(width, np.float64)
    for unit in range(start, stop):
        at = unit * number * width
        if width == 1:
            total = 0.0
            for i in range(number):
                total += x[at + i]
                out[at + i] = total
            continue
        sums[:] = 0
        for i in range(number):
            given, made = x[at + i * width : at + (i + 1) * width], out[at + i * width : at + (i + 1) * width]
            for j in range(sums.size):
                sums[j] += given[j]
            for j in range(sums.size):
                made[j] = sums[j]


@compiled("cumsum")
def cumsum(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
    if x.dtype.char not in "fd" or not x.ndim or x.size < SMALLEST:
        return NotImplemented
    axis = dim % x.ndim
    before, number, width = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    out = np.empty(x.shape, x.dtype)
    split(running_sums, before, number * width, flat(x), number, width, out.reshape(-1))
    return out
