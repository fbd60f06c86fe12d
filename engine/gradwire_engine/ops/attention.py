"""Attention: small weights are kept for backward, large ones and those with dropout are recomputed there."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import BOOLEAN, bool_, float32
from gradwire_protocol.ops.attention import LEVELS, PER_BLOCK, heads_per_key, portion, random_blocks

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import composite, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import extreme, total
from ..runtime.arrays import Array, Namespace, Native, native
from ..runtime.random import Generator
from .matrix import transposed

BLOCK = 1 << 17
"""Attention weights worked on at a time: several passes over as many stay in a CPU's cache."""

RECOMPUTED: Final = 1 << 22
"""Attention weights of a call from which on backward recomputes them; to keep fewer is faster. It is a rule of shapes,
arguments and the device alone, so that a replay does the same."""

RECOMPUTED_IF_CAUSAL: Final = 1 << 19
"""The same on a CPU under a causal mask: what that hides is not computed then, which makes up for it sooner."""


def portions(xp: Namespace, count: int, size: int) -> Iterator[slice]:
    """Matrices of ``size`` elements in portions. A GPU takes all at once."""
    step = max(1, BLOCK // max(size, 1)) if xp is np else max(count, 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def wide(x: Array) -> Array:
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


@kernel("attention", "attention_training", half=True)
def attention(
    xp: Namespace, query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    query, key, value = wide(query), wide(key), wide(value)
    rows, cols = query.shape[-2], key.shape[-2]
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    q, k, v = (flat_matrices(xp, x, lead) for x in (query, key, value))
    weights = xp.empty((q.shape[0], rows, cols), q.dtype)
    out = xp.empty((q.shape[0], rows, v.shape[2]), q.dtype)
    bias = None
    if is_causal:
        bias = _bias(xp, xp.arange(cols) <= xp.arange(rows)[:, None], q.dtype)
    elif attn_mask is not None:
        bias = _bias(xp, attn_mask, q.dtype) if attn_mask.dtype.kind == "b" else wide(attn_mask)
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


# Weights that are recomputed: one portion of rows is in memory at a time


def shape_of_weights(query: Any, key: Any, value: Any) -> tuple[int, ...]:
    """The shape of the weights that arrays or tensors make."""
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    return (*lead, query.shape[-2], key.shape[-2])


def spread(xp: Namespace, *operands: Array) -> list[Array]:
    """Stacks of matrices, broadcast to each other's leading dimensions."""
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in operands])
    return [x if x.shape[:-2] == lead else xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in operands]


def mask_of(xp: Namespace, mask: Array | None, lead: tuple[int, ...], rows: int, cols: int) -> Array | None:
    """A mask broadcast to a stack of stacks of matrices, without a copy for up to two leading dimensions."""
    if mask is None:
        return None
    shape = (prod(lead[:-1]), lead[-1] if lead else 1, rows, cols)
    return xp.broadcast_to(mask, (*lead, rows, cols)).reshape(shape)


def kept_weights(xp: Namespace, state: Array, first: int, rows: int, cols: int, p: float) -> Array:
    """Which weights dropout keeps of ``rows`` rows from the row ``first`` on, all matrices one below the other."""
    each = -(-cols // PER_BLOCK)
    seed, start = (int(n) for n in state.astype(np.uint64).tolist())
    random = Generator(seed)
    random.set_state((seed, (start + first * each) % (1 << 64)))
    return random.coin(xp, (rows, each * PER_BLOCK), 1 - p)[:, :cols]


def dropout_factor(p: float) -> float:
    """By what the weights that dropout keeps are multiplied."""
    return 1 / (1 - p) if p < 1 else 1.0


class _Portions:
    """The scores of an attention, portion by portion: some matrices, or some rows of one."""

    def __init__(
        self, xp: Namespace, query: Array, key: Array, mask: Array | None, state: Array | None, is_causal: bool,
        scale: float, p: float,
    ) -> None:  # fmt: skip
        self.xp, self.scale, self.is_causal, self.state, self.p = xp, scale, is_causal, state, p
        self.lead = query.shape[:-2]
        self.q, self.k = (flat_matrices(xp, x, self.lead) for x in (query, key))
        self.rows, self.cols = query.shape[-2], key.shape[-2]
        self.mask = mask_of(xp, mask, self.lead, self.rows, self.cols)

    def __iter__(self) -> Iterator[tuple[slice, slice, slice]]:
        """Matrices, their rows, and the columns that those rows may see."""
        count = self.q.shape[0] if self.rows and self.cols else 0
        matrices, high = portion(self.rows, self.cols, "cpu" if self.xp is np else "cuda")
        for i in range(0, count, matrices):
            for at in range(0, self.rows, high):
                stop = min(at + high, self.rows)
                seen = min(stop, self.cols) if self.is_causal else self.cols
                yield slice(i, min(i + matrices, count)), slice(at, stop), slice(0, seen)

    def scores(self, part: slice, at: slice, seen: slice) -> Array:
        """Scaled and masked."""
        xp = self.xp
        found = xp.matmul(self.q[part, at], self.k[part, seen].swapaxes(1, 2))
        found *= self.scale
        if self.is_causal:
            allowed = xp.arange(seen.stop) <= xp.arange(at.start, at.stop)[:, None]
            found += _bias(xp, allowed, found.dtype)
        elif self.mask is not None:
            heads = self.mask.shape[1]
            for i in range(part.start, part.stop):
                here = self.mask[i // heads, i % heads, at]
                found[i - part.start] += _bias(xp, here, found.dtype) if here.dtype.kind == "b" else here
        return found

    def drop(self, part: slice, at: slice, seen: slice, *stacks: Array) -> None:
        """Dropout of the weights of this portion, or of their gradients, in place."""
        if self.state is None:
            return
        rows = at.stop - at.start
        first, count = part.start * self.rows + at.start, (part.stop - part.start) * rows
        kept = kept_weights(self.xp, self.state, first, count, self.cols, self.p)
        for stack in stacks:
            stack *= kept.reshape(part.stop - part.start, rows, self.cols)[:, :, seen]
            stack *= dropout_factor(self.p)


@kernel("attention_random_state")
def attention_random_state(xp: Namespace, random: Generator, query: Array, key: Array, value: Array) -> Array:
    first, _ = random.take(random_blocks(shape_of_weights(query, key, value)))
    return xp.asarray(np.array([random.seed, first], np.uint64).view(np.int64))


@kernel("attention_kept")
def attention_kept(xp: Namespace, state: Array, shape: tuple[int, ...], p: float) -> Array:
    return kept_weights(xp, state, 0, prod(shape[:-1]), shape[-1], p).reshape(shape)


@kernel("flash_attention", "flash_attention_training", half=True)
def flash_attention(
    xp: Namespace, query: Array, key: Array, value: Array, attn_mask: Array | None, state: Array | None,
    is_causal: bool, scale: float, p: float,
) -> tuple[Array, Array]:  # fmt: skip
    query, key, value = spread(xp, wide(query), wide(key), wide(value))
    lead, rows = query.shape[:-2], query.shape[-2]
    levels = xp.zeros((prod(lead), rows, LEVELS), query.dtype)
    out = xp.zeros((prod(lead), rows, value.shape[-1]), query.dtype)
    portions = _Portions(xp, query, key, attn_mask, state, is_causal, scale, p)
    v = flat_matrices(xp, value, lead)
    for part, at, seen in portions:
        w = portions.scores(part, at, seen)
        _level(xp, w, levels[part, at])
        w *= levels[part, at, 1:]
        portions.drop(part, at, seen, w)
        xp.matmul(w, v[part, seen], out=out[part, at])
    return out.reshape((*lead, *out.shape[1:])), levels.reshape((*lead, rows, LEVELS))


def _level(xp: Namespace, scores: Array, levels: Array) -> None:
    """The levels of scores, which become their exponentials below the largest one."""
    top = extreme(xp, scores, (scores.ndim - 1,), True)
    top = xp.where(top == -np.inf, scores.dtype.type(0), top)
    scores -= top
    xp.exp(scores, out=scores)
    mass = total(xp, scores, (scores.ndim - 1,), True)
    levels[..., :1] = top
    levels[..., 1:] = 1 / xp.where(mass == 0, scores.dtype.type(1), mass)


@kernel("flash_attention_backward", half=True)
def flash_attention_backward(
    xp: Namespace, g: Array, query: Array, key: Array, value: Array, attn_mask: Array | None, state: Array | None,
    levels: Array, is_causal: bool, scale: float, p: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    g, query, key, value = wide(g), wide(query), wide(key), wide(value)
    lead = query.shape[:-2]
    portions = _Portions(xp, query, key, attn_mask, state, is_causal, scale, p)
    q, k, v = portions.q, portions.k, flat_matrices(xp, value, lead)
    g, of_rows = flat_matrices(xp, g, lead), flat_matrices(xp, levels, lead)
    g_q, g_k, g_v = (xp.zeros(x.shape, x.dtype) for x in (q, k, v))
    for part, at, seen in portions:
        w = portions.scores(part, at, seen)
        w -= of_rows[part, at, :1]
        xp.exp(w, out=w)
        w *= of_rows[part, at, 1:]
        slopes = xp.matmul(g[part, at], v[part, seen].swapaxes(1, 2))
        portions.drop(part, at, seen, slopes)
        slopes -= total(xp, slopes * w, (2,), True)
        slopes *= w
        slopes *= scale
        portions.drop(part, at, seen, w)
        g_v[part, seen] += xp.matmul(w.swapaxes(1, 2), g[part, at])
        xp.matmul(slopes, k[part, seen], out=g_q[part, at])
        g_k[part, seen] += xp.matmul(slopes.swapaxes(1, 2), q[part, at])
    return g_q.reshape(query.shape), g_k.reshape(key.shape), g_v.reshape(value.shape)


def _weights(s: Saved, query: Tensor, key: Tensor) -> Tensor:
    """The weights, in differentiable ops; a row that may look at nothing has zeros."""
    scores = (query @ transposed(key)) * s.scale
    if s.is_causal:
        allowed = F.tril(query.engine.call("ones", scores.shape[-2:], dtype=bool_, device=scores.device))
        scores = F.masked_fill(scores, ~allowed, float("-inf"))
    if s.attn_mask is None or not scores.numel:
        return F.softmax(scores, -1)
    if s.attn_mask.dtype.category == BOOLEAN:
        scores = F.masked_fill(scores, ~s.attn_mask, float("-inf"))
    else:
        scores = scores + F.to(s.attn_mask, dtype=scores.dtype)
    blind = F.eq(F.amax(F.detach(scores), (-1,), True), float("-inf"))
    return F.masked_fill(F.softmax(F.masked_fill(scores, blind, 0.0), -1), blind, 0.0)


@joint_derivative("flash_attention", saves="query key value attn_mask random_state result1", undefined=True)
def flash_attention_gradient(s: Saved, g: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if g is None:
        return None, None, None
    query, key, value, levels = s.query, s.key, s.value, s.result1
    if type(g) is Tensor and not query.engine.differentiates:
        lead = g.shape[:-2]
        query, key, value = (
            x if x.shape[:-2] == lead else F.expand(x, (*lead, *x.shape[-2:])) for x in (query, key, value)
        )
        made: tuple[Tensor, ...] = F.flash_attention_backward(
            g, query, key, value, s.attn_mask, s.random_state, levels, s.is_causal, s.scale, s.dropout_p
        )
        return made
    g, query, key, value = (F.to(x, dtype=levels.dtype) for x in (g, query, key, value))
    weights = _weights(s, query, key)
    through, dropped = g @ transposed(value), weights
    if s.random_state is not None:
        kept = F.attention_kept(s.random_state, weights.shape, s.dropout_p)
        factor = dropout_factor(s.dropout_p)
        through, dropped = through * kept * factor, weights * kept * factor
    slopes = weights * (through - F.sum(through * weights, (-1,), True)) * s.scale
    return slopes @ key, transposed(slopes) @ query, transposed(dropped) @ g


def _keeps_weights(
    weights: tuple[int, ...], operands: tuple[Tensor, ...], mask: Tensor | None, dropout_p: float, is_causal: bool
) -> bool:
    """Whether the weights are kept for backward. Where they are recomputed, their mask has no derivative, and neither
    forward mode nor vmap has a rule."""
    engine, device = operands[0].engine, operands[0].device
    given = operands if mask is None else (*operands, mask)
    if engine.dual_levels or any(type(x) is not Tensor for x in given):
        return True
    if mask is not None and mask.requires_grad and engine.grad_enabled:
        return True
    if dropout_p:
        return False
    return prod(weights) < (RECOMPUTED_IF_CAUSAL if is_causal and device == "cpu" else RECOMPUTED)


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
    weights = shape_of_weights(query, key, value)
    if not _keeps_weights(weights, (query, key, value), attn_mask, dropout_p, is_causal):
        state = F.attention_random_state(query, key, value) if dropout_p else None
        attended: Tensor = F.flash_attention(query, key, value, attn_mask, state, is_causal, scale, dropout_p)
        return attended
    if not dropout_p:
        attended = F.attention(query, key, value, attn_mask, is_causal, scale)
        return attended
    return _with_dropout(engine, query, key, value, attn_mask, dropout_p, is_causal, scale)


def _with_dropout(
    engine: EngineContext, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float,
    is_causal: bool, scale: float,
) -> Tensor:  # fmt: skip
    """Op by op, for everything that the fused op has no rule for."""
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
    mixed: Tensor = kept @ value
    return mixed
