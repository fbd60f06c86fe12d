"""A product of matrices that can be stopped: large ones are computed piece by piece."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from ..runtime import deadline
from ..runtime.arrays import Array, Namespace

PIECE_STEPS: Final = 50_000_000_000
"""Multiply-adds of one piece, a few seconds on one core. How a product is cut follows from its shape alone."""


def matmul(xp: Namespace, a: Array, b: Array) -> Array:
    """``a @ b``. On the CPU, whether the frame is to stop is asked after each piece.

    Raises:
        Cancelled, TimeExceeded: when it is to stop.
    """
    if xp is not np or a.size * b.size <= PIECE_STEPS or min(a.ndim, b.ndim) < 2:
        return xp.matmul(a, b)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    pieces = -(-prod(shape) * a.shape[-1] // PIECE_STEPS)
    if pieces == 1:
        return xp.matmul(a, b)
    out = np.empty(shape, np.result_type(a, b))
    size = max(1, -(-shape[0] // pieces))
    for begin in range(0, shape[0], size):
        part = slice(begin, begin + size)
        left = a[part] if _goes_along(a, shape) else a
        # The rows of a stack of matrices are not its first dimension.
        right = b[part] if len(shape) > 2 and _goes_along(b, shape) else b
        if size == 1 and len(shape) > 2:
            out[begin] = matmul(xp, left[0] if _goes_along(a, shape) else _inner(a, shape),
                                right[0] if _goes_along(b, shape) else _inner(b, shape))  # fmt: skip
        else:
            np.matmul(left, right, out=out[part])
        deadline.check("matmul")
    return out


def _goes_along(operand: Array, shape: tuple[int, ...]) -> bool:
    """Whether the operand has the first dimension of the result, and is not repeated along it."""
    return operand.ndim == len(shape) and operand.shape[0] == shape[0]


def _inner(operand: Array, shape: tuple[int, ...]) -> Any:
    """The operand for one entry of the first dimension, along which it is repeated."""
    return operand[0] if operand.ndim == len(shape) else operand
