"""Normalization of rows, forward in two passes over a row that is in the cache, and backward in two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace, Native
from ..native import Count, Double, Element, In1, In2, Out1, Out2, dense, native, reducing
from ..rows import row_dot, row_squares, row_sum
from ..threads import split

LONGEST: Final = 1 << 16
"""Elements of a row beyond which NumPy's sums, made of blocks, round less."""

PART_ROWS: Final = 64
MOST_PARTS: Final = 16
"""Gradients of weight and bias are sums over rows: of so many parts at most, with as many rows at least."""


@native("float32", "float64")
def layer_norm_rows(
    x: In2, weight: In1, bias: In1, eps: Double, out: Out2, mean: Out1, rstd: Out1, start: Count, stop: Count
) -> None:
    one, each, least = x.dtype.type(1), x.dtype.type(x.shape[1]), x.dtype.type(eps)
    for i in range(start, stop):
        row, done = x[i], out[i]
        m = row_sum(row) / each
        k = one / math.sqrt(row_squares(row, m) / each + least)
        mean[i], rstd[i] = m, k
        if weight.size and bias.size:
            for j in range(row.size):
                done[j] = (row[j] - m) * k * weight[j] + bias[j]
        elif weight.size:
            for j in range(row.size):
                done[j] = (row[j] - m) * k * weight[j]
        else:
            for j in range(row.size):
                done[j] = (row[j] - m) * k


@reducing
def _sums_with_weight(
    g: Array, row: Array, m: Element, k: Element, weight: Array, of_weight: Array, of_bias: Array
) -> Any:
    level = along = g.dtype.type(0)
    for j in range(g.size):
        hat = (row[j] - m) * k
        of_weight[j] += g[j] * hat
        of_bias[j] += g[j]
        scaled = g[j] * weight[j]
        level += scaled
        along += scaled * hat
    return level, along


@reducing
def _sums(g: Array, row: Array, m: Element, k: Element) -> Any:
    level = along = g.dtype.type(0)
    for j in range(g.size):
        level += g[j]
        along += g[j] * ((row[j] - m) * k)
    return level, along


@native("float32", "float64")
def layer_norm_slopes(
    g: In2, x: In2, mean: In1, rstd: In1, weight: In1, out: Out2, of_weight: Out2, of_bias: Out2, parts: Count,
    start: Count, stop: Count,
) -> None:  # fmt: skip
    rows, each = x.shape[0], x.dtype.type(x.shape[1])
    step = (rows + parts - 1) // parts
    for part in range(start, stop):
        for i in range(part * step, min(rows, part * step + step)):
            a, row, done, m, k = g[i], x[i], out[i], mean[i], rstd[i]
            if weight.size:
                level, along = _sums_with_weight(a, row, m, k, weight, of_weight[part], of_bias[part])
                level, along = level / each, along / each
                for j in range(a.size):
                    done[j] = (a[j] * weight[j] - (row[j] - m) * k * along - level) * k
            else:
                level, along = _sums(a, row, m, k)
                level, along = level / each, along / each
                for j in range(a.size):
                    done[j] = (a[j] - (row[j] - m) * k * along - level) * k


@native("float32", "float64")
def rms_norm_rows(x: In2, weight: In1, eps: Double, out: Out2, rstd: Out1, start: Count, stop: Count) -> None:
    one, each, least = x.dtype.type(1), x.dtype.type(x.shape[1]), x.dtype.type(eps)
    for i in range(start, stop):
        row, done = x[i], out[i]
        k = one / math.sqrt(row_dot(row, row) / each + least)
        rstd[i] = k
        if weight.size:
            for j in range(row.size):
                done[j] = row[j] * k * weight[j]
        else:
            for j in range(row.size):
                done[j] = row[j] * k


@reducing
def _sum_with_weight(g: Array, row: Array, k: Element, weight: Array, of_weight: Array) -> Element:
    along = g.dtype.type(0)
    for j in range(g.size):
        product = g[j] * (row[j] * k)
        of_weight[j] += product
        along += product * weight[j]
    return along


@native("float32", "float64")
def rms_norm_slopes(
    g: In2, x: In2, rstd: In1, weight: In1, out: Out2, of_weight: Out2, parts: Count, start: Count, stop: Count
) -> None:
    rows, each = x.shape[0], x.dtype.type(x.shape[1])
    step = (rows + parts - 1) // parts
    for part in range(start, stop):
        for i in range(part * step, min(rows, part * step + step)):
            a, row, done, k = g[i], x[i], out[i], rstd[i]
            if weight.size:
                along = _sum_with_weight(a, row, k, weight, of_weight[part]) / each
                for j in range(a.size):
                    done[j] = (a[j] * weight[j] - row[j] * k * along) * k
            else:
                along = row_dot(a, row) * k / each
                for j in range(a.size):
                    done[j] = (a[j] - row[j] * k * along) * k


def _fits(cols: int, *arrays: Array) -> bool:
    """Whether rows of so many elements are for these kernels, and all arrays of one dtype that they know."""
    dtype = arrays[0].dtype
    return dtype.char in "fd" and 0 < cols <= LONGEST and all(a is None or a.dtype == dtype for a in arrays)


def _vector(x: Array | None, dtype: Native) -> Array:
    """A parameter as one dimension; an absent one has no elements."""
    return np.empty(0, dtype) if x is None else dense(x).reshape(-1)


def _parts(rows: int) -> int:
    return max(1, min(MOST_PARTS, rows // PART_ROWS))


@compiled("layer_norm", "layer_norm_training")
def layer_norm(
    xp: Namespace, x: Array, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> tuple[Array, Array, Array]:
    cols = prod(normalized_shape)
    if not x.size or not _fits(cols, x, weight, bias) or (weight is None and bias is not None):
        return NotImplemented
    rows = dense(x).reshape(-1, cols)
    count = rows.shape[0]
    out, mean, rstd = np.empty(rows.shape, x.dtype), np.empty(count, x.dtype), np.empty(count, x.dtype)
    parameters = _vector(weight, x.dtype), _vector(bias, x.dtype)
    split(layer_norm_rows, count, cols, rows, *parameters, eps, out, mean, rstd)
    return out.reshape(x.shape), mean.reshape(count, 1), rstd.reshape(count, 1)


@compiled("layer_norm_backward")
def layer_norm_backward(xp: Namespace, g: Array, x: Array, mean: Array, rstd: Array, weight: Any, bias: bool) -> Any:
    count = mean.size
    cols = x.size // max(count, 1)
    if not x.size or not _fits(cols, x, g, mean, rstd, weight):
        return NotImplemented
    rows, slopes = dense(x).reshape(count, cols), dense(g).reshape(count, cols)
    parts = _parts(count)
    out = np.empty(rows.shape, x.dtype)
    sums = np.zeros((2, parts, cols if weight is not None else 0), x.dtype)
    split(
        layer_norm_slopes, parts, count // parts * cols, slopes, rows, _vector(mean, x.dtype), _vector(rstd, x.dtype),
        _vector(weight, x.dtype), out, sums[0], sums[1], parts,
    )  # fmt: skip
    if weight is None:
        return out.reshape(x.shape)
    of_weight, of_bias = sums.sum(axis=1)
    found = (out.reshape(x.shape), of_weight.reshape(weight.shape))
    return (*found, of_bias.reshape(weight.shape)) if bias else found


@compiled("rms_norm", "rms_norm_training")
def rms_norm(
    xp: Namespace, x: Array, normalized_shape: Sequence[int], weight: Array, eps: float | None
) -> tuple[Array, Array]:
    cols = prod(normalized_shape)
    if not x.size or not _fits(cols, x, weight):
        return NotImplemented
    rows = dense(x).reshape(-1, cols)
    out, rstd = np.empty(rows.shape, x.dtype), np.empty(rows.shape[0], x.dtype)
    least = float(np.finfo(x.dtype).eps) if eps is None else eps
    split(rms_norm_rows, *rows.shape, rows, _vector(weight, x.dtype), least, out, rstd)
    return out.reshape(x.shape), rstd.reshape(-1, 1)


@compiled("rms_norm_backward")
def rms_norm_backward(xp: Namespace, g: Array, x: Array, rstd: Array, weight: Any) -> Any:
    count = rstd.size
    cols = x.size // max(count, 1)
    if not x.size or not _fits(cols, x, g, rstd, weight):
        return NotImplemented
    rows, slopes = dense(x).reshape(count, cols), dense(g).reshape(count, cols)
    parts = _parts(count)
    out = np.empty(rows.shape, x.dtype)
    sums = np.zeros((parts, cols if weight is not None else 0), x.dtype)
    split(
        rms_norm_slopes, parts, count // parts * cols, slopes, rows, _vector(rstd, x.dtype), _vector(weight, x.dtype),
        out, sums, parts,
    )  # fmt: skip
    out = out.reshape(x.shape)
    return out if weight is None else (out, sums.sum(axis=0).reshape(weight.shape))
