"""Scores to attention weights, and back, in place between the matrix products: scaled, masked and normalized in one
pass over a portion of matrices that is in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from ....autograd.registry import compiled
from ....ops.attention import BLOCK, flat_matrices, portions
from ....runtime.arrays import Array, Namespace
from ..elementary import exp
from ..native import Count, Double, Flag, In3, Out3, dense, native
from ..rows import row_dot, row_sum, row_top
from ..threads import split

F = np.float32

LEAST_ROWS: Final = 64
"""Fewer rows make matrix products slow."""


@native()
def weigh(scores: Out3, bias: In3, scale: Double, causal: Flag, first: Count, start: Count, stop: Count) -> None:
    """``bias`` has no matrix, one for all, or one for each; ``first`` is the number of the first row."""
    factor, rows = F(scale), scores.shape[1]
    for at in range(start, stop):
        i, r = at // rows, at % rows
        row = scores[i, r]
        seen = row[: min(first + r + 1, row.size)] if causal else row
        if bias.shape[0]:
            added = bias[i if bias.shape[0] > 1 else 0, first + r]
            for j in range(seen.size):
                seen[j] = seen[j] * factor + added[j]
        else:
            for j in range(seen.size):
                seen[j] *= factor
        top = row_top(seen)
        if top == F(-np.inf):
            top = F(0)
        for j in range(seen.size):
            seen[j] = exp(seen[j] - top)
        mass = row_sum(seen)
        share = F(1) / mass if mass != F(0) else F(1)
        for j in range(seen.size):
            seen[j] *= share
        for j in range(seen.size, row.size):
            row[j] = F(0)


@native("float32", "float64")
def unweigh(slopes: Out3, weights: In3, scale: Double, start: Count, stop: Count) -> None:
    """Gradients of weights to gradients of unscaled scores."""
    factor, rows = slopes.dtype.type(scale), slopes.shape[1]
    for at in range(start, stop):
        row, share = slopes[at // rows, at % rows], weights[at // rows, at % rows]
        mean = row_dot(row, share)
        for j in range(row.size):
            row[j] = (row[j] - mean) * share[j] * factor


def _tiles(count: int, rows: int, cols: int, causal: bool) -> Iterator[tuple[slice, slice, int]]:
    """Portions of ``count`` matrices: which of them, which of their rows, and how many columns these look at."""
    if rows * cols <= BLOCK:
        for part in portions(np, count, rows * cols):
            yield part, slice(0, rows), cols
        return
    step = max(LEAST_ROWS, BLOCK // cols)
    for i in range(count):
        for at in range(0, rows, step):
            end = min(at + step, rows)
            yield slice(i, i + 1), slice(at, end), min(end, cols) if causal else cols


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
    if not rows or not cols or 0 in lead or (attn_mask is not None and attn_mask.ndim < 2):
        return NotImplemented
    q, k, v = (flat_matrices(np, x, lead) for x in arrays)
    bias = _bias(attn_mask, lead, rows, cols)
    weights = np.empty((q.shape[0], rows, cols), F)
    out = np.empty((q.shape[0], rows, v.shape[2]), F)
    for part, at, seen in _tiles(q.shape[0], rows, cols, is_causal):
        w = weights[part, at]
        np.matmul(q[part, at], k[part, :seen].swapaxes(1, 2), out=w[..., :seen])
        here = bias[part] if len(bias) > 1 else bias
        split(weigh, w.shape[0] * w.shape[1], seen, w, here, float(scale), is_causal, at.start)
        np.matmul(w[..., :seen], v[part, :seen], out=out[part, at])
    return out.reshape((*lead, *out.shape[1:])), weights.reshape((*lead, rows, cols))


@compiled("attention_backward")
def attention_backward(
    xp: Namespace, g: Array, query: Array, key: Array, value: Array, weights: Array, scale: float
) -> tuple[Array, Array, Array]:
    arrays = (g, query, key, value, weights)
    if query.dtype.char not in "fd" or any(x.dtype != query.dtype for x in arrays) or not weights.size:
        return NotImplemented
    lead = query.shape[:-2]
    g, q, k, v, p = (flat_matrices(np, x, lead) for x in arrays)
    p = dense(p)
    g_q, g_k, g_v = np.empty(q.shape, q.dtype), np.empty(k.shape, k.dtype), np.empty(v.shape, v.dtype)
    for part, at, _ in _tiles(p.shape[0], p.shape[1], p.shape[2], False):
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
