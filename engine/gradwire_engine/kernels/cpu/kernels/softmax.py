"""softmax and log_softmax over the last dimension, a row at a time: one read from memory and one write."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from gradwire_protocol.dtypes import DType

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace
from ..elementary import exp
from ..native import Count, In2, Out2, dense, native
from ..rows import row_dot, row_sum, row_top
from ..threads import split

F = np.float32

LONGEST: Final = 1 << 16
"""Elements of a row beyond which it leaves the cache between passes."""


@native()
def softmax_rows(x: In2, out: Out2, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        row, done = x[i], out[i]
        top = row_top(row)
        for j in range(row.size):
            done[j] = exp(row[j] - top)
        scale = F(1) / row_sum(done)
        for j in range(row.size):
            done[j] *= scale


@native()
def log_softmax_rows(x: In2, out: Out2, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        row, done = x[i], out[i]
        top = row_top(row)
        for j in range(row.size):
            done[j] = exp(row[j] - top)
        mass = F(math.log(row_sum(done)))
        for j in range(row.size):
            done[j] = (row[j] - top) - mass


@native("float32", "float64")
def softmax_slopes(g: In2, y: In2, out: Out2, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        a, b, done = g[i], y[i], out[i]
        shared = row_dot(a, b)
        for j in range(a.size):
            done[j] = b[j] * (a[j] - shared)


@native()
def log_softmax_slopes(g: In2, y: In2, out: Out2, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        a, b, done = g[i], y[i], out[i]
        mass = row_sum(a)
        for j in range(a.size):
            done[j] = a[j] - exp(b[j]) * mass


def _by_rows(kernel: Callable[..., None], dtypes: str, dim: int, *arrays: Array) -> Array:
    """The kernel's result for arrays as rows along their last dimension; ``NotImplemented`` where it does not apply."""
    x = arrays[0]
    if x.ndim == 0 or dim % x.ndim != x.ndim - 1 or not 0 < x.shape[-1] <= LONGEST or not x.size:
        return NotImplemented
    if any(a.dtype.char not in dtypes or a.dtype != x.dtype or a.shape != x.shape for a in arrays):
        return NotImplemented
    rows = [dense(a).reshape(-1, x.shape[-1]) for a in arrays]
    out = np.empty(rows[0].shape, x.dtype)
    split(kernel, *out.shape, *rows, out)
    return out.reshape(x.shape)


@compiled("softmax")
def softmax(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
    return _by_rows(softmax_rows, "f", dim, x)


@compiled("log_softmax")
def log_softmax(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
    return _by_rows(log_softmax_rows, "f", dim, x)


@compiled("softmax_backward")
def softmax_backward(xp: Namespace, g: Array, output: Array, dim: int) -> Array:
    return _by_rows(softmax_slopes, "fd", dim, g, output)


@compiled("log_softmax_backward")
def log_softmax_backward(xp: Namespace, g: Array, output: Array, dim: int) -> Array:
    return _by_rows(log_softmax_slopes, "f", dim, g, output)
