"""Sums at places that indices name. What is named twice adds up in the order of the indices, whoever adds."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol.errors import IndexOutOfRange

from ....autograd.registry import compiled
from ....numerics.axes import at_least_1d
from ....numerics.scatter import check_range, wrapped
from ....runtime.arrays import Array, Namespace
from ..native import Count, In1, Int1, Out1, flat, native
from ..threads import split

COLUMNS: Final = 64
"""Of a slice that are added in one go: threads share long slices, never the indices."""


@native("float32", "float64")
def add_slices(source: In1, index: Int1, extent: Count, width: Count, target: Out1, start: Count, stop: Count) -> None:
    """``target[before, index[i], column] += source[before, i, column]``; units of columns from ``start`` on."""
    blocks = (width + COLUMNS - 1) // COLUMNS
    for unit in range(start, stop):
        before, first = unit // blocks, unit % blocks * COLUMNS
        count = min(COLUMNS, width - first)
        for i in range(index.size):
            at, to = (before * index.size + i) * width + first, (before * extent + index[i]) * width + first
            given, sums = source[at : at + count], target[to : to + count]
            for j in range(sums.size):
                sums[j] += given[j]


@native("float32", "float64")
def add_elements(
    source: In1, index: Int1, number: Count, extent: Count, width: Count, target: Out1, start: Count, stop: Count
) -> None:
    """``target[before, index[before, i, column], column] += source[before, i, column]``."""
    blocks = (width + COLUMNS - 1) // COLUMNS
    for unit in range(start, stop):
        if width == 1:
            named, given = index[unit * number : (unit + 1) * number], source[unit * number : (unit + 1) * number]
            sums = target[unit * extent : (unit + 1) * extent]
            for i in range(given.size):
                sums[named[i]] += given[i]
            continue
        before, first = unit // blocks, unit % blocks * COLUMNS
        last = min(first + COLUMNS, width)
        for i in range(number):
            at = (before * number + i) * width
            for j in range(first, last):
                target[(before * extent + index[at + j]) * width + j] += source[at + j]


def _units(before: int, width: int) -> int:
    return before * -(-width // COLUMNS)


def _into_slices(target: Array, axis: int, index: Array, source: Array) -> bool:
    """Add slices to a target in row-major order; False where the kernels do not apply."""
    if target.dtype.char not in "fd" or source.dtype != target.dtype or index.dtype != np.int64 or not source.size:
        return False
    if not (target.flags.c_contiguous and target.flags.aligned):
        return False
    before, width = prod(target.shape[:axis]), prod(target.shape[axis + 1 :])
    if source.size != before * index.size * width:
        return False
    work = index.size * min(width, COLUMNS)
    split(
        add_slices, _units(before, width), work, flat(source), flat(index), target.shape[axis], width,
        target.reshape(-1),
    )  # fmt: skip
    return True


def _into_elements(target: Array, axis: int, index: Array, source: Array) -> bool:
    """Add elements along an axis; False where the kernels do not apply."""
    if target.dtype.char not in "fd" or getattr(source, "dtype", None) != target.dtype or index.dtype != np.int64:
        return False
    if not (target.flags.c_contiguous and target.flags.aligned) or source.shape != index.shape:
        return False
    others = tuple(n for i, n in enumerate(target.shape) if i != axis)
    if others != tuple(n for i, n in enumerate(index.shape) if i != axis):
        return False
    before, width, number = prod(target.shape[:axis]), prod(target.shape[axis + 1 :]), index.shape[axis]
    split(
        add_elements, _units(before, width), number * min(width, COLUMNS), flat(source), flat(index), number,
        target.shape[axis], width, target.reshape(-1),
    )  # fmt: skip
    return True


def _index_add(target: Array, dim: int, index: Array, source: Array, alpha: float) -> bool:
    if alpha != 1:
        return False
    target = at_least_1d(target)
    axis = dim % target.ndim
    check_range(np, "index_add", index, axis, target.shape[axis])
    return _into_slices(target, axis, index, source)


@compiled("index_add")
def index_add(xp: Namespace, x: Array, dim: int, index: Array, source: Array, alpha: float) -> Array:
    made = x.copy(order="K")
    return made if _index_add(made, dim, index, source, alpha) else NotImplemented


@compiled("index_add_")
def index_add_(xp: Namespace, target: Array, dim: int, index: Array, source: Array, alpha: float) -> Any:
    return None if _index_add(target, dim, index, source, alpha) else NotImplemented


def _scatter_add(target: Array, dim: int, index: Array, source: Array) -> bool:
    if not index.size or target.ndim == 0 or index.ndim != target.ndim:
        return False
    axis = dim % target.ndim
    check_range(np, "scatter_add", index, axis, target.shape[axis])
    return _into_elements(target, axis, index, source)


@compiled("scatter_add")
def scatter_add(xp: Namespace, x: Array, dim: int, index: Array, src: Array) -> Array:
    made = x.copy(order="K")
    return made if _scatter_add(made, dim, index, src) else NotImplemented


@compiled("scatter_add_")
def scatter_add_(xp: Namespace, target: Array, dim: int, index: Array, src: Array) -> Any:
    return None if _scatter_add(target, dim, index, src) else NotImplemented


@compiled("index_select_backward")
def index_select_backward(xp: Namespace, g: Array, size: tuple[int, ...], dim: int, index: Array) -> Array:
    if not size or g.ndim != len(size):
        return NotImplemented
    axis = dim % len(size)
    check_range(np, "index_select_backward", index, axis, size[axis], IndexOutOfRange)
    made = np.zeros(size, g.dtype)
    return made if _into_slices(made, axis, index, g) else NotImplemented


@compiled("gather_backward")
def gather_backward(xp: Namespace, g: Array, size: tuple[int, ...], dim: int, index: Array, distinct: bool) -> Array:
    if not size or not index.size or index.ndim != len(size):
        return NotImplemented
    made, axis = np.zeros(size, g.dtype), dim % len(size)
    check_range(np, "gather_backward", index, axis, size[axis], IndexOutOfRange, wrap=True)
    return made if _into_elements(made, axis, wrapped(np, index, size[axis]), g) else NotImplemented


@compiled("embedding_backward")
def embedding_backward(
    xp: Namespace, g: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    if scale_grad_by_freq or g.dtype.char not in "fd" or not g.size:
        return NotImplemented
    check_range(np, "embedding_backward", indices, 0, num_weights, IndexOutOfRange)
    width = g.shape[-1]
    made = np.zeros((num_weights, width), g.dtype)
    if not _into_slices(made, 0, indices.reshape(-1), g.reshape(-1, width)):
        return NotImplemented
    if 0 <= padding_idx < num_weights:
        made[padding_idx] = 0
    return made
