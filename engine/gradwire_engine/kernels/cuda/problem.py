"""A matrix product as the GPU's library is asked for it: extents, which operands are transposed, strides of batches.

The library counts matrices by columns. A matrix by rows is its own transpose by columns, so ``C = A B`` is asked for as
``C' = B' A'``: the second operand comes first, and neither result nor operands are copied.
"""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

import numpy as np

from ...runtime.arrays import Array, DeviceArray

ALIGNMENT: Final = 16
"""Bytes that operands of a library begin at multiples of: the widest access of a thread."""


class Operand(NamedTuple):
    """How a stack of matrices lies in memory, by columns.

    Attributes:
        rows, cols: of the matrix by columns, before it is transposed.
        lead: distance between its columns in elements.
        transposed: whether the product takes its transpose.
        batch: distance between matrices in elements; 0 for one that serves the whole stack.
    """

    rows: int
    cols: int
    lead: int
    transposed: bool
    batch: int


class MatmulProblem(NamedTuple):
    """``D = alpha * A B + beta * C``, all counted by columns; ``A`` is the second operand as it was written.

    Attributes:
        element: NumPy's name of the operands' type. float16 and bfloat16 are added up in float32.
        result: that of the result's type: the same, or float32.
        coarse: whether products of float32 may be rounded to TF32.
        stack: how many products.
        bias: whether a vector is added to each column of the result.
    """

    element: str
    result: str
    coarse: bool
    stack: int
    a: Operand
    b: Operand
    out: Operand
    bias: bool


def lay(x: Array, lead: tuple[int, ...]) -> Operand | None:
    """How an array's last two dimensions lie, as a stack of shape ``lead``; ``None`` when it has to be copied."""
    rows, cols = x.shape[-2:]
    size = x.dtype.itemsize
    down, along = (s // size for s in x.strides[-2:])
    batch = _batch(x, lead)
    if batch is None or batch < 0:
        return None
    if (along == 1 or cols == 1) and (down >= max(cols, 1) or rows == 1):
        return Operand(cols, rows, down if rows > 1 else max(cols, 1), False, batch)
    if (down == 1 or rows == 1) and (along >= max(rows, 1) or cols == 1):
        return Operand(rows, cols, along if cols > 1 else max(rows, 1), True, batch)
    return None


def _batch(x: Array, lead: tuple[int, ...]) -> int | None:
    """The one distance between matrices of a stack, ``None`` when there is none."""
    own = x.shape[:-2]
    if prod(own) == 1:
        return 0
    if own != lead:
        return None
    found: int | None = None
    reach = 0
    for n, s in zip(reversed(own), reversed(x.strides[:-2]), strict=True):
        if n == 1:
            continue
        step = s // x.dtype.itemsize
        if found is None:
            found, reach = step, step * n
        elif step != reach:
            return None
        else:
            reach *= n
    return found


def aligned(x: DeviceArray) -> DeviceArray:
    """The array, or a copy of one that begins between two blocks of :data:`ALIGNMENT` bytes: libraries choose by it,
    and the same product must have the same bits wherever its operands lie."""
    return x.copy(order="K") if x.data.ptr % ALIGNMENT else x


def dense(x: Array) -> Operand:
    """How a result in row-major order lies."""
    rows, cols = x.shape[-2:]
    return Operand(cols, rows, max(cols, 1), False, rows * cols)


def stack_of(a: Array, b: Array) -> tuple[int, ...]:
    """The shape of the stack of products."""
    return tuple(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
