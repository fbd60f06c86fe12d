"""Attention, with the weights kept for backward."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod, sqrt

import numpy as np

from gradwire_protocol.dtypes import BOOLEAN, bool_, float32
from gradwire_protocol.ops.attention import heads_per_key

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import composite, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import extreme, total
from ..runtime.arrays import Array, Namespace, Native, native
from .matrix import transposed

BLOCK = 1 << 17
"""Attention weights worked on at a time: several passes over as many stay in a CPU's cache."""


def portions(xp: Namespace, count: int, size: int) -> Iterator[slice]:
    """Matrices of ``size`` elements in portions. A GPU takes all at once."""
    step = max(1, BLOCK // max(size, 1)) if xp is np else max(count, 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _wide(x: Array) -> Array:
    """Half precision as float32."""
    return x.astype(native(float32)) if x.dtype.itemsize == 2 and x.dtype.kind != "b" else x


def flat_matrices(xp: Namespace, x: Array, lead: tuple[int, ...]) -> Array:
    """A batch of matrices, broadcast to the leading shape, as one of three dimensions."""
    if x.shape[:-2] != lead:
        x = xp.broadcast_to(x, (*lead, *x.shape[-2:]))
    return x.reshape((prod(lead), *x.shape[-2:]))


def _softmax(xp: Namespace, x: Array) -> None:
    """In place, along the last dimension; rows of minus infinity become 0."""
    top = extreme(xp, x, (x.ndim - 1,), True)
    top = xp.where(top == -np.inf, x.dtype.type(0), top)
    x -= top
    xp.exp(x, out=x)
    mass = total(xp, x, (x.ndim - 1,), True)
    x /= xp.where(mass == 0, x.dtype.type(1), mass)


def _bias(xp: Namespace, allowed: Array, dtype: Native) -> Array:
    """What is added to scores so that only the allowed ones count."""
    return xp.where(allowed, dtype.type(0), dtype.type(-np.inf))


@kernel("attention", half=True)
def attention(
    xp: Namespace, query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    query, key, value = _wide(query), _wide(key), _wide(value)
    rows, cols = query.shape[-2], key.shape[-2]
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    q, k, v = (flat_matrices(xp, x, lead) for x in (query, key, value))
    weights = xp.empty((q.shape[0], rows, cols), q.dtype)
    out = xp.empty((q.shape[0], rows, v.shape[2]), q.dtype)
    bias = None
    if is_causal:
        bias = _bias(xp, xp.arange(cols) <= xp.arange(rows)[:, None], q.dtype)
    elif attn_mask is not None:
        bias = _bias(xp, attn_mask, q.dtype) if attn_mask.dtype.kind == "b" else _wide(attn_mask)
        bias = flat_matrices(xp, bias, lead) if bias.ndim > 2 else bias
    if cols == 0:
        out[...] = 0
        return out.reshape((*lead, *out.shape[1:])), weights.reshape((*lead, rows, cols))
    for part in portions(xp, q.shape[0], rows * cols):
        w = weights[part]
        xp.matmul(q[part], k[part].swapaxes(1, 2), out=w)
        w *= scale
        if bias is not None:
            w += bias[part] if bias.ndim == 3 else bias
        _softmax(xp, w)
        xp.matmul(w, v[part], out=out[part])
    return out.reshape((*lead, *out.shape[1:])), weights.reshape((*lead, rows, cols))


@kernel("attention_backward")
def attention_backward(
    xp: Namespace, g: Array, query: Array, key: Array, value: Array, weights: Array, scale: float
) -> tuple[Array, Array, Array]:
    lead = query.shape[:-2]
    g, q, k, v, p = (flat_matrices(xp, x, lead) for x in (g, query, key, value, weights))
    g_q, g_k, g_v = xp.empty(q.shape, q.dtype), xp.empty(k.shape, k.dtype), xp.empty(v.shape, v.dtype)
    for part in portions(xp, q.shape[0], p.shape[1] * p.shape[2]):
        w = p[part]
        xp.matmul(w.swapaxes(1, 2), g[part], out=g_v[part])
        g_w = xp.matmul(g[part], v[part].swapaxes(1, 2))
        # Through the softmax: each weight times what its gradient exceeds the row's weighted mean by.
        flat = (w.shape[0] * w.shape[1], w.shape[2])
        mean = xp.einsum("ij,ij->i", g_w.reshape(flat), w.reshape(flat)).reshape((*w.shape[:2], 1))
        g_w -= mean
        g_w *= w
        g_w *= scale
        xp.matmul(g_w, k[part], out=g_q[part])
        xp.matmul(g_w.swapaxes(1, 2), q[part], out=g_k[part])
    return g_q.reshape(query.shape), g_k.reshape(key.shape), g_v.reshape(value.shape)


@joint_derivative("attention", saves="query key value attn_mask result1", undefined=True)
def attention_gradient(s: Saved, g: Tensor | None, g_weights: Tensor | None) -> tuple[Tensor | None, ...]:
    query, key, value, weights = s.query, s.key, s.value, s.result1
    alike = query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    mask_needs = s.attn_mask is not None and s.needs("attn_mask")
    if g is not None and g_weights is None and alike and not mask_needs and not query.engine.differentiates:
        return (*F.attention_backward(g, query, key, value, weights, s.scale), None)
    g_value = None
    through = g_weights
    query, key, value = (F.to(x, dtype=weights.dtype) for x in (query, key, value))
    if g is not None:
        g = F.to(g, dtype=weights.dtype)
        g_value = transposed(weights) @ g
        part = g @ transposed(value)
        through = part if through is None else through + part
    if through is None:
        return None, None, g_value, None
    scores = weights * (through - F.sum(through * weights, (-1,), True))
    scaled = scores * s.scale
    return scaled @ key, transposed(scaled) @ query, g_value, scores if mask_needs else None


@composite("scaled_dot_product_attention")
def scaled_dot_product_attention(
    engine: EngineContext, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None, enable_gqa: bool,
) -> Tensor:  # fmt: skip
    if enable_gqa:
        heads = heads_per_key(query.meta, key.meta, value.meta)
        if heads != 1:
            key, value = F.repeat_interleave(key, heads, -3), F.repeat_interleave(value, heads, -3)
    scale = 1 / sqrt(query.shape[-1]) if scale is None and query.shape[-1] else scale or 0.0
    if not dropout_p:
        attended: Tensor = F.attention(query, key, value, attn_mask, is_causal, scale)
        return attended
    scores = (query @ transposed(key)) * scale
    if is_causal:
        allowed = engine.call("ones", scores.shape[-2:], dtype=bool_, device=scores.device)
        attn_mask = F.tril(allowed)
    if attn_mask is not None:
        if attn_mask.dtype.category == BOOLEAN:
            scores = F.masked_fill(scores, ~attn_mask, float("-inf"))
        else:
            scores = scores + attn_mask
    kept, _ = F.dropout(F.softmax(scores, -1), dropout_p, True)
    return kept @ value
