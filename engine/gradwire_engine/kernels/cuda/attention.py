"""Attention: two products of stacks with one kernel between them, which scales, masks and normalizes the scores in
place. Where the weights are recomputed in backward, this goes portion by portion, so that only one is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol.ops.attention import LEVELS, portion, random_blocks

from ...ops.attention import dropout_factor, mask_of, shape_of_weights, spread
from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import arithmetic, kernel, row_block
from ...runtime.cuda.registry import fused
from ...runtime.random import Generator
from .products import library, multiply
from .rows import MOST_ROWS, through_softmax

WIDE = ("float32", "float64")

ALL: Final = 1 << 32
"""How many values a random half word has."""


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


@fused("attention", "attention_training", half=True, products=True)
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


# Weights that are recomputed


@fused("attention_random_state", half=True)
def attention_random_state(xp: Namespace, random: Generator, query: Array, key: Array, value: Array) -> Array:
    first, base = random.take(random_blocks(shape_of_weights(query, key, value)))
    state = xp.empty(2, np.int64)
    kernel(xp, "random_state", "philox")((1,), (1,), (np.uint64(random.seed), np.uint64(first), base, state))
    return state


class _Rows:
    """An attention whose rows a kernel goes through, portion by portion."""

    def __init__(
        self, xp: Namespace, query: Array, key: Array, mask: Array | None, state: Array | None, is_causal: bool,
        scale: float, p: float,
    ) -> None:  # fmt: skip
        self.xp, self.element, self.is_causal = xp, query.dtype.name, is_causal
        self.kind = arithmetic(self.element)
        self.lead, self.rows, self.cols = query.shape[:-2], query.shape[-2], key.shape[-2]
        heads = self.lead[-1] if self.lead else 1
        self.mask: tuple[Any, ...] = (None, np.int32(0), *[np.int64(0)] * 4, np.int64(heads))
        if mask is not None:
            way = 1 if mask.dtype.kind == "b" else 2
            mask = xp.ascontiguousarray(mask if way == 1 else mask.astype(self.kind, copy=False))
            laid: Any = mask_of(xp, mask, self.lead, self.rows, self.cols)
            given: Any = mask
            if laid.data.ptr != given.data.ptr:  # more leading dimensions than the kernel knows steps for
                mask = laid = xp.ascontiguousarray(laid)
            steps = [0 if n == 1 else step // mask.itemsize for n, step in zip(laid.shape, laid.strides, strict=True)]
            self.mask = (mask, np.int32(way), *[np.int64(n) for n in steps], np.int64(heads))
        self.numbers = (np.int32(is_causal), self.kind(scale), state, np.uint64(min(round((1 - p) * ALL), ALL)))
        self.factor = self.kind(dropout_factor(p))

    def portions(self) -> Iterator[tuple[slice, slice, int]]:
        """Matrices, their rows, and how many columns these may see."""
        count = prod(self.lead)
        matrices, high = portion(self.rows, self.cols, "cuda")
        for i in range(0, count, matrices):
            for at in range(0, self.rows, high):
                stop = min(at + high, self.rows)
                yield (
                    slice(i, min(i + matrices, count)),
                    slice(at, stop),
                    (min(stop, self.cols) if self.is_causal else self.cols),
                )

    def run(self, name: str, part: slice, at: slice, seen: int, *arrays: Array | None) -> None:
        """One of the kernels on a portion."""
        count, high = part.stop - part.start, at.stop - at.start
        places = [np.int64(n) for n in (part.start, at.start, high, self.rows, self.cols, seen)]
        function = kernel(self.xp, name, "attention", self.element)
        arguments = (*arrays, *self.mask, *places, *self.numbers, self.factor)
        function((count * high,), row_block(seen), arguments)

    def rounded(self, like: Array) -> Array | None:
        """Memory for what the kernel makes of these, where elements are narrower than what it computes in."""
        return None if like.dtype == self.element else self.xp.empty(like.shape, self.element)


def _applies(xp: Namespace, *arrays: Array) -> bool:
    alike = len({x.dtype for x in arrays}) == 1 and all(x.size for x in arrays)
    return library(xp) is not None and alike and prod(arrays[0].shape[:-1]) <= MOST_ROWS


def _product(xp: Namespace, a: Array, b: Array, coarse: bool, kind: Any) -> Array:
    """``a @ b``, in the type that is computed in."""
    out = xp.empty((*a.shape[:-1], b.shape[-1]), kind)
    if multiply(xp, a, b, coarse, out=out) is NotImplemented:
        out[...] = xp.matmul(a, b)
    return out


@fused("flash_attention", "flash_attention_training", half=True, products=True)
def flash_attention(
    xp: Namespace, query: Array, key: Array, value: Array, attn_mask: Array | None, random_state: Array | None,
    is_causal: bool, scale: float, p: float, *, coarse: bool,
) -> tuple[Array, Array]:  # fmt: skip
    if not _applies(xp, query, key, value):
        return NotImplemented
    query, key, value = spread(xp, query, key, value)
    it = _Rows(xp, query, key, attn_mask, random_state, is_causal, scale, p)
    q, k, v = (_flat(xp, x, it.lead) for x in (query, key, value))
    levels = xp.empty((*it.lead, it.rows, LEVELS), it.kind)
    out = xp.empty((q.shape[0], it.rows, v.shape[2]), it.kind)
    for part, at, seen in it.portions():
        scores = _product(xp, q[part, at], k[part, :seen].swapaxes(1, 2), coarse, it.kind)
        rounded = it.rounded(scores)
        it.run("attention_rows", part, at, seen, scores, rounded, levels)
        weights = scores if rounded is None else rounded
        out[part, at] = _product(xp, weights, v[part, :seen], coarse, it.kind)
    return out.reshape((*it.lead, it.rows, v.shape[2])), levels


@fused("flash_attention_backward", half=True, products=True)
def flash_attention_backward(
    xp: Namespace, g: Array, query: Array, key: Array, value: Array, attn_mask: Array | None,
    random_state: Array | None, levels: Array, is_causal: bool, scale: float, p: float, *, coarse: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    if not _applies(xp, query, key, value, g):
        return NotImplemented
    it = _Rows(xp, query, key, attn_mask, random_state, is_causal, scale, p)
    g, q, k, v = (_flat(xp, x, it.lead) for x in (g, query, key, value))
    levels = xp.ascontiguousarray(levels)
    g_q = xp.empty(q.shape, it.kind)
    g_k, g_v = xp.zeros(k.shape, it.kind), xp.zeros(v.shape, it.kind)
    for part, at, seen in it.portions():
        keys, own, theirs = k[part, :seen], q[part, at], g[part, at]
        weights = _product(xp, own, keys.swapaxes(1, 2), coarse, it.kind)
        slopes = _product(xp, theirs, v[part, :seen].swapaxes(1, 2), coarse, it.kind)
        rounded, rounded_slopes = it.rounded(weights), it.rounded(slopes)
        it.run("attention_slopes", part, at, seen, weights, slopes, rounded, rounded_slopes, levels)
        if rounded is not None and rounded_slopes is not None:
            weights, slopes = rounded, rounded_slopes
        g_q[part, at] = _product(xp, slopes, keys, coarse, it.kind)
        g_k[part, :seen] += _product(xp, slopes.swapaxes(1, 2), own, coarse, it.kind)
        g_v[part, :seen] += _product(xp, weights.swapaxes(1, 2), theirs, coarse, it.kind)
    return g_q.reshape(query.shape), g_k.reshape(key.shape), g_v.reshape(value.shape)
