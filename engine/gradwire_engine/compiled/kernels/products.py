"""Products of matrices, of the sizes that layers and attention have; the smallest and the largest are left to BLAS."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final, TypeVar, cast

import numpy as np
from numba import njit, types

from ...registry import compiled
from ..emitter import VECTOR
from ..native import dense
from ..panels import WIDE, address, lay_out, multiply_rows, panel_begin, panels_of
from ..threads import split, threads

CHUNK: Final = 256
"""Terms of a sum that are added up before they are added to what there is: a panel's rows, which the nearest cache
holds."""

ROWS: Final = 512
"""Rows of a unit of work, at most."""

FEWEST_ROWS: Final = 64
"""Rows of a unit of work that is cut for several threads, at least."""

SMALLEST: Final = 1 << 20
"""Products of numbers, for one matrix, below which BLAS is faster: it is called in less time."""

SMALLEST_TURNED: Final = 1 << 18
"""The same, for all matrices of a stack, where the second factor's columns are consecutive in memory: BLAS is slow with
that."""

LARGEST: Final = 1 << 27
"""Products of numbers above which BLAS does it: it lays out the first factor as well, which is then worth it."""

LARGEST_TURNED: Final = 1 << 20
"""Bytes of the first factor above which BLAS is faster, where its columns are consecutive."""

LEAST: Final = 8
"""Rows, columns and terms that a product has at least."""

F = TypeVar("F", bound=Callable[..., Any])

_PLACES: Final = types.int64


def _native(function: F) -> F:
    """Compile for operands with any strides, unlike :func:`..native.native`."""
    signatures = []
    for T in (types.float32, types.float64):
        read = types.Array(T, 4, "A", readonly=True)
        signatures.append(
            types.void(
                read, read, read, types.boolean, _PLACES, types.Array(T, 4, "C"), _PLACES, _PLACES
            )
        )  # fmt: skip
    made: Any = njit(signatures, cache=True, nogil=True, error_model="numpy")(function)
    return cast(F, made)


@_native
def products(a: Any, b: Any, first: Any, added: bool, high: int, out: Any, start: int, stop: int) -> None:
    """``out = a @ b``, and ``first`` added to it, for stacks of stacks of matrices.

    Units from ``start`` on: of each matrix, blocks of ``high`` rows, and of each block the panels.
    """
    one, size = a.dtype.type(1), a.itemsize
    lanes = VECTOR // size
    inner, rows, columns = b.shape[2], out.shape[2], out.shape[3]
    vectors = (columns + lanes - 1) // lanes
    panels, blocks = panels_of(vectors), (rows + high - 1) // high
    chunks = (inner + CHUNK - 1) // CHUNK
    most = (inner + chunks - 1) // chunks
    room = np.empty((most * WIDE + 1) * lanes, a.dtype)
    panel = (address(room) + VECTOR - 1) // VECTOR * VECTOR
    a_row, a_step, b_row, b_step, out_row = a.strides[2], a.strides[3], b.strides[2], b.strides[3], out.strides[2]
    turned = b_step != size
    for unit in range(start, stop):
        matrix, rest = unit // (panels * blocks), unit % (panels * blocks)
        i, j = matrix // out.shape[1], matrix % out.shape[1]
        m, p = rest // panels * high, rest % panels
        v = panel_begin(vectors, p)
        wide, n = panel_begin(vectors, p + 1) - v, v * lanes
        ours = address(a) + m * a_row
        ours += (i if a.shape[0] > 1 else 0) * a.strides[0] + (j if a.shape[1] > 1 else 0) * a.strides[1]
        theirs = address(b) + n * b_step
        theirs += (i if b.shape[0] > 1 else 0) * b.strides[0] + (j if b.shape[1] > 1 else 0) * b.strides[1]
        to = address(out) + i * out.strides[0] + j * out.strides[1] + m * out_row + n * size
        seen = step = 0
        if added:
            step = first.strides[2]
            seen = address(first) + i * first.strides[0] + j * first.strides[1] + m * step + n * size
        for c in range(chunks):
            k = c * most
            count = min(most, inner - k)
            if turned:
                lay_out(wide, theirs + k * b_row, b_step, count, columns - n, panel, one)
            multiply_rows(
                min(high, rows - m), wide, ours + k * a_step, a_row, a_step, theirs + k * b_row, b_row, turned, panel,
                count, to, out_row, columns - n, seen, step, one,
            )  # fmt: skip
            seen, step = to, out_row
    room[0] = 0  # an array is freed after its last mention, and its address is none


def multiplied(a: Any, b: Any, first: Any = None) -> Any:
    """``a @ b + first`` for matrices and stacks of them; ``NotImplemented`` where BLAS shall do it."""
    dtype, shape, others = a.dtype, a.shape, b.shape
    if dtype.char not in "fd" or b.dtype != dtype or len(shape) < 2 or len(others) < 2:
        return NotImplemented
    rows, inner, columns, size = shape[-2], shape[-1], others[-1], a.itemsize
    ndim = max(len(shape), len(others))
    b_row, b_step = b.strides[-2:]
    count = rows * inner * columns
    if b_step != size:
        count = count * prod(shape[:-2]) if ndim > 2 else count
    if not (SMALLEST if b_step == size else SMALLEST_TURNED) <= count <= LARGEST or ndim > 4:
        return NotImplemented
    if rows < LEAST or inner < LEAST or columns < LEAST or not a.flags.aligned or not b.flags.aligned:
        return NotImplemented
    if a.strides[-1] != size and rows * inner * size > LARGEST_TURNED:
        return NotImplemented
    if b_step != size and b_row != size:
        b = dense(b)
    a, b = _stacked(a), _stacked(b)
    (i, j), (k, m) = a.shape[:2], b.shape[:2]
    lead = (i if k == 1 else k, j if m == 1 else m)
    made = np.empty((*lead[4 - ndim :], rows, columns), dtype)
    out = begun = _stacked(made)
    if first is not None:
        if first.dtype != dtype or not first.flags.aligned or first.shape[-1:] != (columns,):
            return NotImplemented
        if first.ndim == 1:
            first = first[None]
        if first.strides[-1] != size:
            return NotImplemented
        begun = np.broadcast_to(first, out.shape)
    panels = (columns * size + WIDE * VECTOR - 1) // (WIDE * VECTOR)
    matrices, high, most = lead[0] * lead[1], ROWS, threads()
    if most > 1:  # what is done together does not matter for the bits
        while high > FEWEST_ROWS and -(-rows // high) * panels * matrices < 4 * most:
            high //= 2
    work = min(high, rows) * inner * columns // panels // 64
    split(products, matrices * -(-rows // high) * panels, work, a, b, begun, first is not None, high, out)
    return made


def _stacked(x: Any) -> Any:
    return x if x.ndim == 4 else x[None] if x.ndim == 3 else x[None, None]


@compiled("matmul")
def matmul(xp: Any, a: Any, b: Any) -> Any:
    if a.ndim > 2 and b.ndim == 2:
        # One large product instead of a small one per batch entry.
        rows = multiplied(a.reshape(-1, a.shape[-1]), b) if a.size else NotImplemented
        return rows if rows is NotImplemented else rows.reshape((*a.shape[:-1], b.shape[1]))
    return multiplied(a, b)


@compiled("mm", "bmm")
def product(xp: Any, a: Any, b: Any) -> Any:
    return multiplied(a, b)


@compiled("linear")
def linear(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    if weight.ndim != 2 or not x.size:
        return NotImplemented
    rows = multiplied(x if x.ndim == 2 else x.reshape(-1, x.shape[-1]), weight.T, bias)
    return rows if rows is NotImplemented else rows.reshape((*x.shape[:-1], weight.shape[0]))


@compiled("addmm", "baddbmm")
def addmm(xp: Any, self: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    return multiplied(a, b, self) if beta == 1 and alpha == 1 else NotImplemented
