"""Products of matrices, of the sizes that layers and attention have; the smallest and the largest are left to BLAS."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final, TypeVar, cast

import numpy as np
from numba import types
from numba.core.typing.templates import Signature

from ....autograd.registry import bind_layout, compiled
from ....runtime.arrays import Array, Namespace, Native
from ..emitter import VECTOR
from ..native import dense, kernel_of
from ..panels import WIDE, address, aligned, matrix_of, multiply_panel, panels_of, room_for, terms_together
from ..threads import SHARE, split, threads

ROWS: Final = 512
"""Rows of a unit of work, at most."""

FEWEST_ROWS: Final = 64
"""Rows of a unit of work that is cut for several threads, at least."""

SMALLEST: Final = 1 << 20
"""Products of numbers, for all matrices of a stack, below which BLAS is faster: it is called in less time."""

SMALLEST_OF_STACK: Final = 1 << 17
"""The same, for one of them."""

SMALLEST_TURNED: Final = 3 << 15
"""The same, for all matrices of a stack, where the second factor's columns are consecutive in memory: BLAS is slow with
that."""

LARGEST: Final = 1 << 27
"""Products of numbers above which BLAS does it: it lays out the first factor as well, which is then worth it."""

LARGEST_TURNED: Final = 1 << 20
"""Bytes of the first factor above which BLAS is faster, where its columns are consecutive."""

LEAST: Final = 8
"""Rows, columns and terms that a product has at least."""

F = TypeVar("F", bound=Callable[..., Any])
Way = Callable[..., Any]
"""How operands of one layout are multiplied, as a function of them."""

WAYS_KEPT: Final = 4096

_PLACES: Final = types.int64


def _native(ndim: int) -> Callable[[F], F]:
    """Compile for operands with any strides, unlike :func:`..native.native`."""

    def compile_(function: F) -> F:
        signatures: dict[Native | None, Signature] = {}
        for T in (types.float32, types.float64):
            read, out = types.Array(T, ndim, "A", readonly=True), types.Array(T, ndim, "C")
            signatures[np.dtype(T.name)] = types.void(read, read, read, types.boolean, _PLACES, out, _PLACES, _PLACES)
        return cast(F, kernel_of(function, signatures, 0, nogil=True, error_model="numpy"))

    return compile_


@_native(2)
def product(a: Array, b: Array, first: Array, added: bool, high: int, out: Array, start: int, stop: int) -> None:
    """``out = a @ b``, and ``first`` (or its only row) added to it.

    Units from ``start`` on: of blocks of ``high`` rows, the panels.
    """
    one = a.dtype.type(1)
    room = np.empty(room_for(terms_together(b.shape[0]), one), a.dtype)
    panel = aligned(address(room))
    begun = address(first) if added else 0
    step = first.strides[0] if added and first.shape[0] > 1 else 0
    for unit in range(start, stop):
        multiply_panel(
            unit, high, address(a), a.strides[0], a.strides[1], address(b), b.strides[0], b.strides[1], out.shape[0],
            b.shape[0], out.shape[1], begun, step, address(out), out.strides[0], panel, one,
        )  # fmt: skip
    room[0] = 0  # an array is freed after its last mention, and its address is none


@_native(4)
def products(a: Array, b: Array, first: Array, added: bool, high: int, out: Array, start: int, stop: int) -> None:
    """:func:`product` for stacks of stacks of matrices: the units of one matrix after those of another."""
    one = a.dtype.type(1)
    lanes = VECTOR // a.itemsize
    room = np.empty(room_for(terms_together(b.shape[2]), one), a.dtype)
    panel = aligned(address(room))
    units = panels_of((out.shape[3] + lanes - 1) // lanes) * ((out.shape[2] + high - 1) // high)
    step = first.strides[2] if added and first.shape[2] > 1 else 0
    for unit in range(start, stop):
        matrix = unit // units
        i, j = matrix // out.shape[1], matrix % out.shape[1]
        begun = matrix_of(first, i, j) if added else 0
        multiply_panel(
            unit % units, high, matrix_of(a, i, j), a.strides[2], a.strides[3], matrix_of(b, i, j), b.strides[2],
            b.strides[3], out.shape[2], b.shape[2], out.shape[3], begun, step, matrix_of(out, i, j), out.strides[2],
            panel, one,
        )  # fmt: skip
    room[0] = 0


_ways: dict[tuple[Any, ...], Way | None] = {}


def way_of(a: Array, b: Array, first: Array | None = None) -> Way | None:
    """How ``a @ b + first`` is computed for matrices laid out like these, and stacks of them; ``None`` where BLAS shall
    do it."""
    key: tuple[Any, ...] = (
        a.dtype.char, b.dtype.char, a.shape, a.strides, b.shape, b.strides, a.flags.aligned, b.flags.aligned, threads()
    )  # fmt: skip
    if first is not None:
        key = (*key, first.dtype.char, first.shape, first.strides, first.flags.aligned)
    found = _ways.get(key, _ways)
    if found is _ways:
        if len(_ways) >= WAYS_KEPT:
            _ways.clear()
        found = _ways[key] = _new_way(a, b, first)
    return found  # type: ignore[return-value]


def _new_way(a: Array, b: Array, first: Array | None) -> Way | None:
    dtype, shape, others = a.dtype, a.shape, b.shape
    if dtype.char not in "fd" or b.dtype != dtype or len(shape) < 2 or len(others) < 2:
        return None
    rows, inner, columns, size = shape[-2], shape[-1], others[-1], a.itemsize
    ndim = max(len(shape), len(others))
    b_row, b_step = b.strides[-2:]
    if inner == 1 and first is None and others[-2] == 1:
        return np.multiply
    count = rows * inner * columns
    if ndim > 4 or count > LARGEST:
        return None
    leads = [each.shape[:2] for each in (_stacked(a), _stacked(b))]
    lead = tuple([n if m == 1 else m for n, m in zip(*leads, strict=True)])
    matrices = prod(lead)
    if b_step != size:
        if count * matrices < SMALLEST_TURNED:
            return None
    elif count * matrices < SMALLEST or count < SMALLEST_OF_STACK:
        return None
    if rows < LEAST or inner < LEAST or columns < LEAST or not a.flags.aligned or not b.flags.aligned:
        return None
    if a.strides[-1] != size and rows * inner * size > LARGEST_TURNED:
        return None
    if first is not None and (
        first.dtype != dtype or not first.flags.aligned or first.shape[-1:] != (columns,) or first.strides[-1] != size
    ):
        return None
    panels, high, most = -(-columns * size // (WIDE * VECTOR)), ROWS, threads()
    if most > 1:  # what is done together does not matter for the bits
        while high > FEWEST_ROWS and -(-rows // high) * panels * matrices < 2 * most:
            high //= 2
    work = min(high, rows) * inner * columns // panels // 64
    units = matrices * -(-rows // high) * panels
    return _way(
        (*lead[4 - ndim :], rows, columns), dtype, ndim, high, units, work,
        first is not None and first.ndim, b_step != size and b_row != size,
    )  # fmt: skip


def _way(
    shape: tuple[int, ...], dtype: Native, ndim: int, high: int, units: int, work: int, added: int, laid_out: bool
) -> Way:
    """The function.

    Args:
        added: dimensions of what is added; 0 for nothing.
        laid_out: whether the second factor has to be laid out in memory first.
    """
    empty, kernel = np.empty, product if ndim == 2 else products
    alone = units == 1 or units * work < 2 * SHARE

    def multiply(a: Array, b: Array, first: Any = None) -> Array:
        out = made = empty(shape, dtype)
        if laid_out:
            b = dense(b)
        if ndim > 2:
            a, b, out = _stacked(a), _stacked(b), _stacked(made)
            first = None if first is None else _stacked(first)
        elif added == 1:
            first = first[None]
        if alone:
            kernel(a, b, out if first is None else first, first is not None, high, out, 0, units)
        else:
            split(kernel, units, work, a, b, out if first is None else first, first is not None, high, out)
        return made

    return multiply


def _stacked(x: Array) -> Array:
    return x if x.ndim == 4 else x[(None,) * (4 - x.ndim)]


def multiplied(a: Array, b: Array, first: Array | None = None) -> Array:
    """``a @ b + first``; ``NotImplemented`` where BLAS shall do it."""
    way = way_of(a, b, first)
    return NotImplemented if way is None else way(a, b, first)


@compiled("matmul")
def matmul(xp: Namespace, a: Array, b: Array) -> Array:
    if a.ndim > 2 and b.ndim == 2:
        # One large product instead of a small one per batch entry.
        rows = multiplied(a.reshape(-1, a.shape[-1]), b) if a.size else NotImplemented
        return rows if rows is NotImplemented else rows.reshape((*a.shape[:-1], b.shape[1]))
    return multiplied(a, b)


@compiled("mm", "bmm")
def mm(xp: Namespace, a: Array, b: Array) -> Array:
    return multiplied(a, b)


@compiled("linear")
def linear(xp: Namespace, x: Array, weight: Array, bias: Array) -> Array:
    if weight.ndim != 2 or not x.size:
        return NotImplemented
    rows = multiplied(x if x.ndim == 2 else x.reshape(-1, x.shape[-1]), weight.T, bias)
    return rows if rows is NotImplemented else rows.reshape((*x.shape[:-1], weight.shape[0]))


@compiled("addmm", "baddbmm")
def addmm(xp: Namespace, self: Any, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return multiplied(a, b, self) if beta == 1 and alpha == 1 else NotImplemented


@bind_layout("matmul", "mm", "bmm")
def settled_product(a: Array, b: Array) -> Way | None:
    return way_of(a, b) if a.ndim == 2 or b.ndim > 2 else None


@bind_layout("linear")
def settled_linear(x: Array, weight: Array, bias: Array) -> Way | None:
    way = way_of(x, weight.T, bias) if x.ndim == 2 else None
    return None if way is None else lambda x, weight, bias=None: way(x, weight.T, bias)


@bind_layout("addmm", "baddbmm")
def settled_sum(self: Any, a: Array, b: Array, beta: float, alpha: float) -> Way | None:
    way = way_of(a, b, self)
    return None if way is None else lambda self, a, b: way(a, b, self)
