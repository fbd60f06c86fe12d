"""Attention: two products of stacks with one kernel between them, which scales, masks and normalizes the scores in
place. The weights are a result of the op, so no kernel that never writes them would do."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import arithmetic, kernel, row_block
from ...runtime.cuda.registry import fused
from .products import library, multiply
from .rows import MOST_ROWS, through_softmax

WIDE = ("float32", "float64")


def _flat(xp: Namespace, x: Array, lead: tuple[int, ...]) -> Array:
    """A stack of matrices, broadcast to this leading shape, in three dimensions."""
    if x.shape[:-2] != lead:
        x = xp.broadcast_to(x, (*lead, *x.shape[-2:]))
    return x.reshape((prod(lead), *x.shape[-2:]))


def _mask(xp: Namespace, mask: Array, lead: tuple[int, ...], rows: int, cols: int, kind: Any) -> tuple[Any, int, int]:
    """The mask as the kernel takes it, its kind, and after how many elements it repeats."""
    if mask.dtype.kind != "b":
        mask = mask.astype(kind, copy=False)
    whole = (rows, cols) if prod(mask.shape[:-2]) == 1 else (*lead, rows, cols)
    mask = mask.reshape(mask.shape[-2:]) if whole == (rows, cols) and mask.ndim > 2 else mask
    mask = xp.ascontiguousarray(xp.broadcast_to(mask, whole))
    return mask, 1 if mask.dtype.kind == "b" else 2, mask.size


@fused("attention", half=True, products=True)
def attention(
    xp: Namespace, query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool, scale: float, *,
    coarse: bool,
) -> tuple[Array, Array]:  # fmt: skip
    rows, cols = query.shape[-2], key.shape[-2]
    lead = tuple(np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2]))
    applies = library(xp) is not None and query.dtype == key.dtype == value.dtype and query.size and value.size
    if not applies or not key.size or prod(lead) * rows > MOST_ROWS:
        return NotImplemented
    element, kind = query.dtype.name, arithmetic(query.dtype.name)
    q, k, v = (_flat(xp, x, lead) for x in (query, key, value))
    scores = xp.empty((prod(lead), rows, cols), kind)
    if multiply(xp, q, k.swapaxes(1, 2), coarse, out=scores) is NotImplemented:
        return NotImplemented
    mask, way, period = None, 0, 0
    if attn_mask is not None and not is_causal:
        mask, way, period = _mask(xp, attn_mask, lead, rows, cols, kind)
    rounded = None if scores.dtype == v.dtype else xp.empty(scores.shape, v.dtype)
    numbers = (np.int32(way), np.int64(period), np.int64(rows), np.int64(cols), np.int32(is_causal), kind(scale))
    kernel(xp, "attention_weights", "rows", element)(
        (prod(lead) * rows,), row_block(cols), (scores, rounded, mask, *numbers)
    )
    weights = scores if rounded is None else rounded
    out = multiply(xp, weights, v, coarse)
    if out is NotImplemented:
        out = xp.matmul(weights, v)
    return out.reshape((*lead, rows, v.shape[2])), scores.reshape((*lead, rows, cols))


@fused("attention_backward", products=True)
def attention_backward(
    xp: Namespace, g: Array, query: Array, key: Array, value: Array, weights: Array, scale: float, *, coarse: bool
) -> tuple[Array, Array, Array]:
    lead = query.shape[:-2]
    if library(xp) is None or weights.dtype.name not in WIDE or not weights.size or not g.size or not query.size:
        return NotImplemented
    g, q, k, v, w = (_flat(xp, x, lead) for x in (g, query, key, value, weights))
    if len({x.dtype for x in (g, q, k, v, w)}) != 1 or not w.flags.c_contiguous:
        return NotImplemented
    through = multiply(xp, g, v.swapaxes(1, 2), coarse)
    g_v = multiply(xp, w.swapaxes(1, 2), g, coarse)
    if through is NotImplemented or g_v is NotImplemented:
        return NotImplemented
    through_softmax(xp, through, w, through, w.shape[2], 0, scale)
    g_q, g_k = multiply(xp, through, k, coarse), multiply(xp, through.swapaxes(1, 2), q, coarse)
    if g_q is NotImplemented or g_k is NotImplemented:
        return NotImplemented
    return g_q.reshape(query.shape), g_k.reshape(key.shape), g_v.reshape(value.shape)
