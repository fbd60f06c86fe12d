"""Attention matrix by matrix: its products, and the scores to weights and back between them, all in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from ....autograd.registry import compiled
from ....ops.attention import BLOCK, flat_matrices
from ....runtime.arrays import Array, Namespace
from ..elementary import exp
from ..native import Count, Double, Element, Flag, In3, Out3, Strided4, dense, inline, native
from ..panels import address, aligned, matrix_of, most_terms, multiply_matrix, room_for
from ..rows import row_dot, row_sum, row_top
from ..threads import split

F = np.float32

LEAST_ROWS: Final = 64
"""Of a block, for which the second factor is laid out once more. Fewer make products slow."""


@inline
def _weigh(row: Array, added: Array, factor: Element, seen: int) -> None:
    """Scores of one row to weights; ``added`` has as many numbers, or none. Those beyond ``seen`` become 0."""
    here = row[:seen]
    if added.size:
        for j in range(seen):
            here[j] = here[j] * factor + added[j]
    else:
        for j in range(seen):
            here[j] *= factor
    top = row_top(here)
    if top == F(-np.inf):
        top = F(0)
    for j in range(seen):
        here[j] = exp(here[j] - top)
    mass = row_sum(here)
    share = F(1) / mass if mass != F(0) else F(1)
    for j in range(seen):
        here[j] *= share
    for j in range(seen, row.size):
        row[j] = F(0)


@native()
def attend(
    query: Strided4, key: Strided4, value: Strided4, bias: In3, scale: Double, causal: Flag, high: Count,
    weights: Out3, out: Out3, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Units from ``start`` on: of each matrix the blocks of ``high`` rows.

    ``bias`` has no matrix, one for all, or one for each.
    """
    one, heads = F(1), query.shape[1]
    rows, cols, size, wide = weights.shape[1], weights.shape[2], query.shape[3], value.shape[3]
    room = np.empty(room_for(most_terms(max(size, cols)), one), F)
    panel = aligned(address(room))
    step, blocks = query.itemsize, (rows + high - 1) // high
    for unit in range(start, stop):
        i, first = unit // blocks, unit % blocks * high
        count = min(high, rows - first)
        seen = min(first + count, cols) if causal else cols
        q, k = matrix_of(query, i // heads, i % heads), matrix_of(key, i // heads, i % heads)
        w = address(weights) + (i * rows + first) * cols * step
        multiply_matrix(
            q + first * query.strides[2], query.strides[2], query.strides[3], k, key.strides[3], key.strides[2],
            count, size, seen, w, cols * step, panel, one,
        )  # fmt: skip
        for r in range(first, first + count):
            added = bias[i if bias.shape[0] > 1 else 0, r] if bias.shape[0] else weights[i, r, :0]
            _weigh(weights[i, r], added, F(scale), min(r + 1, seen) if causal else seen)
        multiply_matrix(
            w, cols * step, step, matrix_of(value, i // heads, i % heads), value.strides[2], value.strides[3],
            count, seen, wide, address(out) + (i * rows + first) * wide * step, wide * step, panel, one,
        )  # fmt: skip
    room[0] = 0  # an array is freed after its last mention, and its address is none


@inline
def _unweigh(slopes: Array, shares: Array, factor: Element) -> None:
    """Gradients of the weights of one row to gradients of unscaled scores."""
    mean = row_dot(slopes, shares)
    for j in range(slopes.size):
        slopes[j] = (slopes[j] - mean) * shares[j] * factor


@native("float32", "float64")
def unweigh(slopes: Out3, weights: In3, scale: Double, start: Count, stop: Count) -> None:
    """:func:`_unweigh` for the rows of several matrices."""
    rows = slopes.shape[1]
    for at in range(start, stop):
        _unweigh(slopes[at // rows, at % rows], weights[at // rows, at % rows], slopes.dtype.type(scale))


@native("float32", "float64")
def attend_back(
    gradient: Strided4, query: Strided4, key: Strided4, value: Strided4, weights: In3, scale: Double, of_query: Out3,
    of_key: Out3, of_value: Out3, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Matrix by matrix from ``start`` on."""
    one, heads = query.dtype.type(1), query.shape[1]
    rows, cols, size, wide = weights.shape[1], weights.shape[2], query.shape[3], value.shape[3]
    room = np.empty(room_for(most_terms(max(rows, cols, size, wide)), one), query.dtype)
    slopes = np.empty((rows, cols), query.dtype)
    panel, turned = aligned(address(room)), address(slopes)
    step = query.itemsize
    line = cols * step
    for i in range(start, stop):
        g, q = matrix_of(gradient, i // heads, i % heads), matrix_of(query, i // heads, i % heads)
        k, v = matrix_of(key, i // heads, i % heads), matrix_of(value, i // heads, i % heads)
        w = address(weights) + i * rows * line
        multiply_matrix(
            g, gradient.strides[2], gradient.strides[3], v, value.strides[3], value.strides[2], rows, wide, cols,
            turned, line, panel, one,
        )  # fmt: skip
        for r in range(rows):
            _unweigh(slopes[r], weights[i, r], slopes.dtype.type(scale))
        multiply_matrix(
            turned, line, step, k, key.strides[2], key.strides[3], rows, cols, size,
            address(of_query) + i * rows * size * step, size * step, panel, one,
        )  # fmt: skip
        multiply_matrix(
            w, step, line, g, gradient.strides[2], gradient.strides[3], cols, rows, wide,
            address(of_value) + i * cols * wide * step, wide * step, panel, one,
        )  # fmt: skip
        multiply_matrix(
            turned, step, line, q, query.strides[2], query.strides[3], cols, rows, size,
            address(of_key) + i * cols * size * step, size * step, panel, one,
        )  # fmt: skip
    room[0] = slopes[0, 0] = 0


def _lined_up(x: Array, lead: tuple[int, ...]) -> Array:
    """A batch of matrices, broadcast to the leading shape, as a stack of stacks with rows of consecutive elements."""
    if x.shape[:-2] != lead:
        x = np.broadcast_to(x, (*lead, *x.shape[-2:]))
    x = x.reshape((prod(lead[:-1]), lead[-1] if lead else 1, *x.shape[-2:]))
    return x if (x.strides[3] == x.itemsize or x.shape[3] == 1) and x.flags.aligned else dense(x)


def _tiles(count: int, rows: int, cols: int) -> Iterator[tuple[slice, slice]]:
    """Portions of ``count`` large matrices: which of them, and which of their rows."""
    step = max(LEAST_ROWS, BLOCK // cols)
    for i in range(count):
        for at in range(0, rows, step):
            yield slice(i, i + 1), slice(at, min(at + step, rows))


def _bias(mask: Array | None, lead: tuple[int, ...], rows: int, cols: int) -> Array:
    """What is added to the scores, as matrices; none, one, or one for each."""
    if mask is None:
        return np.empty((0, rows, cols), F)
    if mask.dtype.kind == "b":
        mask = np.where(mask, F(0), F(-np.inf))
    if prod(mask.shape[:-2]) == 1:
        return dense(np.broadcast_to(mask.reshape(mask.shape[-2:]), (rows, cols))).reshape(1, rows, cols)
    return dense(np.broadcast_to(mask, (*lead, rows, cols))).reshape(-1, rows, cols)


@compiled("attention")
def attention(
    xp: Namespace, query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    arrays = (query, key, value)
    if any(x.dtype.char != "f" for x in arrays) or (attn_mask is not None and attn_mask.dtype.char not in "?f"):
        return NotImplemented
    rows, cols = query.shape[-2], key.shape[-2]
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if not rows or not cols or not query.shape[-1] or 0 in lead or (attn_mask is not None and attn_mask.ndim < 2):
        return NotImplemented
    q, k, v = (_lined_up(x, lead) for x in arrays)
    bias = _bias(attn_mask, lead, rows, cols)
    count, size = prod(lead), max(q.shape[3], v.shape[3])
    weights = np.empty((count, rows, cols), F)
    out = np.empty((count, rows, v.shape[3]), F)
    high = min(rows, max(LEAST_ROWS, BLOCK // cols // 4))
    blocks = -(-rows // high)
    split(attend, count * blocks, high * cols * size // 32, q, k, v, bias, float(scale), is_causal, high, weights, out)
    return out.reshape((*lead, *out.shape[1:])), weights.reshape((*lead, rows, cols))


@compiled("attention_backward")
def attention_backward(
    xp: Namespace, g: Array, query: Array, key: Array, value: Array, weights: Array, scale: float
) -> tuple[Array, Array, Array]:
    arrays = (g, query, key, value, weights)
    if query.dtype.char not in "fd" or any(x.dtype != query.dtype for x in arrays) or not all(x.size for x in arrays):
        return NotImplemented
    lead = query.shape[:-2]
    p = dense(flat_matrices(np, weights, lead))
    count, rows, cols = p.shape
    if rows * cols <= BLOCK:
        g, q, k, v = (_lined_up(x, lead) for x in (g, query, key, value))
        found = [np.empty((count, n, x.shape[3]), x.dtype) for n, x in ((rows, q), (cols, k), (cols, v))]
        work = rows * cols * max(q.shape[3], v.shape[3]) // 16
        split(attend_back, count, work, g, q, k, v, p, float(scale), *found)
        g_q, g_k, g_v = found
        return g_q.reshape(query.shape), g_k.reshape(key.shape), g_v.reshape(value.shape)
    g, q, k, v = (flat_matrices(np, x, lead) for x in (g, query, key, value))
    g_q, g_k, g_v = np.empty(q.shape, q.dtype), np.empty(k.shape, k.dtype), np.empty(v.shape, v.dtype)
    for part, at in _tiles(*p.shape):
        w, of_w = p[part, at], g[part, at]
        slopes = np.matmul(of_w, v[part].swapaxes(1, 2))
        split(unweigh, w.shape[0] * w.shape[1], w.shape[2], slopes, w, float(scale))
        np.matmul(slopes, k[part], out=g_q[part, at])
        if at.start == 0:
            np.matmul(w.swapaxes(1, 2), of_w, out=g_v[part])
            np.matmul(slopes.swapaxes(1, 2), q[part, at], out=g_k[part])
        else:
            g_v[part] += np.matmul(w.swapaxes(1, 2), of_w)
            g_k[part] += np.matmul(slopes.swapaxes(1, 2), q[part, at])
    return g_q.reshape(query.shape), g_k.reshape(key.shape), g_v.reshape(value.shape)
