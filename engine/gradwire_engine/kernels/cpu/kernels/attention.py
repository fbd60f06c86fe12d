"""Attention matrix by matrix: its products, and the scores to weights and back between them, all in the cache.

One that recomputes its weights takes blocks of rows: keys and values are laid out as panels once for many of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final, NamedTuple

import numpy as np

from gradwire_protocol.ops.attention import LEVELS, PER_BLOCK

from ....autograd.registry import compiled
from ....ops.attention import BLOCK, dropout_factor, flat_matrices, mask_of, spread, wide
from ....runtime.arrays import Array, Namespace
from ..elementary import exp
from ..emitter import VECTOR, apart
from ..native import Byte1, Count, Double, Element, Flag, In1, In3, Int1, Out3, Strided4, dense, inline, native
from ..panels import (
    address,
    aligned,
    lay_out,
    matrix_of,
    most_terms,
    multiply_matrix,
    multiply_panel,
    multiply_rows,
    panel_begin,
    panels_of,
    room_for,
    size_of,
    terms_together,
)
from ..philox import WORDS, U, philox
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
    # The step within rows of one element means nothing; kernels then read the rows as one consecutive column.
    regular = x.strides[3] == x.itemsize or (x.shape[3] == 1 and x.strides[2] == x.itemsize)
    return x if regular and x.flags.aligned else dense(x)


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


@compiled("attention", "attention_training")
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


# Weights that are recomputed

UNITS: Final = 16
"""Into so many pieces at least a call is divided for threads, if it has as many blocks of rows."""

IN_CACHE: Final = 1 << 15
"""Weights of a block of rows that stay in the nearer caches beside all that they meet."""

HIGHEST: Final = 64
LOWEST: Final = 32
"""Rows of a block: more multiply faster, fewer see less of what a causal mask hides."""

_HALF_BITS: Final = U(32)
_LOWER: Final = U(0xFFFFFFFF)


@inline
def _room_for_all(inner: int, columns: int, one: Element) -> int:
    """Elements of the memory that a whole matrix is laid out in, from :func:`aligned` on."""
    lanes = VECTOR // size_of(one)
    room: int = ((columns + lanes - 1) // lanes * inner + 1) * lanes
    return room


@apart
def _lay_out_all(b: int, b_row: int, b_column: int, inner: int, columns: int, to: int, one: Element) -> None:
    """All panels of a matrix whose columns' elements are consecutive."""
    lanes = VECTOR // size_of(one)
    vectors, most = (columns + lanes - 1) // lanes, terms_together(inner)
    for p in range(panels_of(vectors)):
        v = panel_begin(vectors, p)
        breadth = panel_begin(vectors, p + 1) - v
        for k in range(0, inner, most):
            lay_out(
                breadth, b + v * lanes * b_column + k * b_row, b_column, min(most, inner - k), columns - v * lanes,
                to + (v * inner + k * breadth) * VECTOR, one,
            )  # fmt: skip


@apart
def _multiply_laid_out(
    a: int, a_row: int, a_step: int, rows: int, inner: int, columns: int, seen: int, panels: int, out: int,
    out_row: int, one: Element,
) -> None:  # fmt: skip
    """The product with such a matrix, in the panels that have one of the first ``seen`` columns."""
    size = size_of(one)
    lanes = VECTOR // size
    vectors, most = (columns + lanes - 1) // lanes, terms_together(inner)
    for p in range(panels_of(vectors)):
        v = panel_begin(vectors, p)
        if v * lanes >= seen:
            break
        breadth, first, first_row = panel_begin(vectors, p + 1) - v, 0, 0
        to = out + v * VECTOR
        for k in range(0, inner, most):
            panel = panels + (v * inner + k * breadth) * VECTOR
            multiply_rows(
                rows, breadth, a + k * a_step, a_row, a_step, panel, 0, True, panel, min(most, inner - k), to,
                out_row, columns - v * lanes, first, first_row, one,
            )  # fmt: skip
            first, first_row = to, out_row


@apart
def _add_product(
    a: int, a_row: int, a_step: int, b: int, b_row: int, b_step: int, rows: int, inner: int, columns: int,
    adds: bool, out: int, out_row: int, panel: int, one: Element,
) -> None:  # fmt: skip
    """``out = a @ b``, or what is there plus that."""
    lanes = VECTOR // size_of(one)
    for unit in range(panels_of((columns + lanes - 1) // lanes)):
        multiply_panel(
            unit, rows, a, a_row, a_step, b, b_row, b_step, rows, inner, columns, out if adds else 0,
            out_row if adds else 0, out, out_row, panel, one,
        )  # fmt: skip


@inline
def _mask(row: Array, factor: Element, bias: Array, allowed: Array, at: int, step: int) -> None:
    """Scale scores; add ``bias``, or forbid what is not ``allowed``, of which one at most has elements."""
    if bias.size and step:
        added = bias[at : at + row.size]
        for j in range(row.size):
            row[j] = row[j] * factor + added[j]
    elif bias.size:
        for j in range(row.size):
            row[j] = row[j] * factor + bias[at]
    elif allowed.size and step:
        may = allowed[at : at + row.size]
        for j in range(row.size):
            row[j] = row[j] * factor if may[j] else F(-np.inf)
    else:
        none = allowed.size and not allowed[at]
        for j in range(row.size):
            row[j] = F(-np.inf) if none else row[j] * factor


@inline
def _toss(coins: Array, seed: int, first: int, limit: int, factor: Element, count: int) -> None:
    """By what dropout multiplies ``count`` weights of a row."""
    most = U(limit)
    for k in range((count + PER_BLOCK - 1) // PER_BLOCK):
        words = philox(U(seed), U(first) + U(k))
        for w in range(WORDS):
            coins[k * PER_BLOCK + 2 * w] = factor if (words[w] & _LOWER) < most else F(0)
            coins[k * PER_BLOCK + 2 * w + 1] = factor if (words[w] >> _HALF_BITS) < most else F(0)


@native()
def flash_attend(
    query: Strided4, key: Strided4, value: Strided4, bias: In1, allowed: Byte1, steps: Int1, state: Int1,
    scale: Double, causal: Flag, factor: Double, parts: Count, high: Count, levels: Out3, out: Out3,
    start: Count, stop: Count,
) -> None:  # fmt: skip
    """Units from ``start`` on: of each matrix in turn ``parts``, to which its blocks of ``high`` rows are dealt.

    ``steps`` are those of the mask; ``state`` has seed, first block and limit of dropout, or nothing.
    """
    one, heads = F(1), query.shape[1]
    rows, cols, size, breadth = query.shape[2], key.shape[2], query.shape[3], value.shape[3]
    room = np.empty(room_for(most_terms(max(size, cols)), one), F)
    keys = np.empty(_room_for_all(size, cols, one), F)
    weights = np.empty((high, cols), F)
    coins = np.empty(cols + PER_BLOCK, F)
    panel, laid, w = aligned(address(room)), aligned(address(keys)), address(weights)
    step, blocks = query.itemsize, (rows + high - 1) // high
    line, drawn = cols * step, (cols + PER_BLOCK - 1) // PER_BLOCK
    for unit in range(start, stop):
        i = unit // parts
        m, n = i // heads, i % heads
        q, v = matrix_of(query, m, n), matrix_of(value, m, n)
        _lay_out_all(matrix_of(key, m, n), key.strides[3], key.strides[2], size, cols, laid, one)
        for block in range(unit % parts, blocks, parts):
            first = block * high
            count = min(high, rows - first)
            seen = min(first + count, cols) if causal else cols
            _multiply_laid_out(
                q + first * query.strides[2], query.strides[2], query.strides[3], count, size, cols, seen, laid, w,
                line, one,
            )  # fmt: skip
            for r in range(count):
                mine = min(first + r + 1, seen) if causal else seen
                row = weights[r, :mine]
                _mask(row, F(scale), bias, allowed, m * steps[0] + n * steps[1] + (first + r) * steps[2], steps[3])
                top = row_top(row)
                if top == F(-np.inf):
                    top = F(0)
                for j in range(mine):
                    row[j] = exp(row[j] - top)
                mass = row_sum(row)
                share = F(1) / mass if mass != F(0) else F(1)
                levels[i, first + r, 0] = top
                levels[i, first + r, 1] = share
                if state.size:
                    _toss(coins, state[0], state[1] + (i * rows + first + r) * drawn, state[2], F(factor), mine)
                    for j in range(mine):
                        row[j] *= coins[j]
                weights[r, mine:seen] = F(0)
            to = address(out) + (i * rows + first) * breadth * step
            multiply_matrix(
                w, line, step, v, value.strides[2], value.strides[3], count, seen, breadth, to, breadth * step, panel,
                one,
            )  # fmt: skip
            for r in range(first, first + count):
                share = levels[i, r, 1]
                for j in range(breadth):
                    out[i, r, j] *= share
    room[0] = keys[0] = weights[0, 0] = 0  # an array is freed after its last mention, and its address is none


@native()
def flash_attend_back(
    gradient: Strided4, query: Strided4, key: Strided4, value: Strided4, bias: In1, allowed: Byte1, steps: Int1,
    state: Int1, levels: In3, scale: Double, causal: Flag, factor: Double, parts: Count, high: Count,
    of_query: Out3, of_key: Out3, of_value: Out3, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Units as in :func:`flash_attend`; each has gradients of its own for all keys and values of its matrix."""
    one, heads = F(1), query.shape[1]
    rows, cols, size, breadth = query.shape[2], key.shape[2], query.shape[3], value.shape[3]
    room = np.empty(room_for(most_terms(max(cols, high)), one), F)
    keys = np.empty(_room_for_all(size, cols, one), F)
    values = np.empty(_room_for_all(breadth, cols, one), F)
    weights, slopes = np.empty((high, cols), F), np.empty((high, cols), F)
    coins = np.empty(cols + PER_BLOCK, F)
    panel, laid, laid_values = aligned(address(room)), aligned(address(keys)), aligned(address(values))
    step, blocks = query.itemsize, (rows + high - 1) // high
    w, s, line, drawn = address(weights), address(slopes), cols * step, (cols + PER_BLOCK - 1) // PER_BLOCK
    for unit in range(start, stop):
        i = unit // parts
        m, n = i // heads, i % heads
        q, g = matrix_of(query, m, n), matrix_of(gradient, m, n)
        k, v = matrix_of(key, m, n), matrix_of(value, m, n)
        g_k, g_v = address(of_key) + unit * cols * size * step, address(of_value) + unit * cols * breadth * step
        _lay_out_all(k, key.strides[3], key.strides[2], size, cols, laid, one)
        _lay_out_all(v, value.strides[3], value.strides[2], breadth, cols, laid_values, one)
        begun = 0
        # The last block first: under a causal mask it sees the most, and later ones only add.
        for block in range(unit % parts + (blocks - 1 - unit % parts) // parts * parts, -1, -parts):
            first = block * high
            count = min(high, rows - first)
            seen = min(first + count, cols) if causal else cols
            own, theirs = q + first * query.strides[2], g + first * gradient.strides[2]
            _multiply_laid_out(own, query.strides[2], query.strides[3], count, size, cols, seen, laid, w, line, one)
            _multiply_laid_out(
                theirs, gradient.strides[2], gradient.strides[3], count, breadth, cols, seen, laid_values, s, line,
                one,
            )  # fmt: skip
            for r in range(count):
                mine = min(first + r + 1, seen) if causal else seen
                row, slope = weights[r, :mine], slopes[r, :mine]
                _mask(row, F(scale), bias, allowed, m * steps[0] + n * steps[1] + (first + r) * steps[2], steps[3])
                top, share = levels[i, first + r, 0], levels[i, first + r, 1]
                for j in range(mine):
                    row[j] = exp(row[j] - top) * share
                if state.size:
                    _toss(coins, state[0], state[1] + (i * rows + first + r) * drawn, state[2], F(factor), mine)
                    for j in range(mine):
                        slope[j] *= coins[j]
                _unweigh(slope, row, F(scale))
                if state.size:
                    for j in range(mine):
                        row[j] *= coins[j]
                weights[r, mine:seen] = F(0)
                slopes[r, mine:seen] = F(0)
            multiply_matrix(
                s, line, step, k, key.strides[2], key.strides[3], count, seen, size,
                address(of_query) + (i * rows + first) * size * step, size * step, panel, one,
            )  # fmt: skip
            _add_product(
                w, step, line, theirs, gradient.strides[2], gradient.strides[3], seen, count, breadth, begun > 0, g_v,
                breadth * step, panel, one,
            )  # fmt: skip
            _add_product(
                s, step, line, own, query.strides[2], query.strides[3], seen, count, size, begun > 0, g_k, size * step,
                panel, one,
            )  # fmt: skip
            if not begun:
                of_key[unit, seen:] = F(0)
                of_value[unit, seen:] = F(0)
                begun = 1
    room[0] = keys[0] = values[0] = weights[0, 0] = slopes[0, 0] = 0


def _mask_arrays(mask: Array | None, lead: tuple[int, ...], rows: int, cols: int) -> tuple[Array, Array, Array]:
    """A mask as the kernels take it: what is added or what is allowed, and its steps from element to element."""
    bias, allowed, steps = np.empty(0, F), np.empty(0, np.uint8), np.zeros(4, np.int64)
    if mask is None:
        return bias, allowed, steps
    mask = dense(wide(mask))
    laid = mask_of(np, mask, lead, rows, cols)
    assert laid is not None
    if not np.may_share_memory(laid, mask):  # more leading dimensions than the kernels know steps for
        mask = laid = dense(laid)
    steps[:] = [0 if n == 1 else step // mask.itemsize for n, step in zip(laid.shape, laid.strides, strict=True)]
    flat = mask.reshape(-1)
    return (bias, flat.view(np.uint8), steps) if mask.dtype.kind == "b" else (flat, allowed, steps)


class _Division(NamedTuple):
    """How a call is divided.

    Attributes:
        parts: of each matrix.
        high: rows of a block.
    """

    parts: int
    high: int


def _division(count: int, rows: int, cols: int) -> _Division:
    high = min(rows, max(LOWEST, min(HIGHEST, IN_CACHE // cols)))
    return _Division(min(-(-UNITS // count), -(-rows // high)), high)


def _state(random_state: Array | None, p: float) -> Array:
    """Seed, first block and limit of dropout, as kernels take them."""
    if random_state is None:
        return np.empty(0, np.int64)
    return np.append(random_state, np.int64(round((1 - p) * (1 << 32))))


def _is_taken(arrays: tuple[Array, ...], mask: Array | None) -> bool:
    """Whether the kernels take these; half precision becomes float32."""
    floats = all(x.dtype.char == "f" or x.dtype.itemsize == 2 for x in arrays) and all(x.size for x in arrays)
    return floats and (mask is None or (mask.ndim >= 2 and mask.dtype.itemsize in (1, 2, 4)))


@compiled("flash_attention", "flash_attention_training")
def flash_attention(
    xp: Namespace, query: Array, key: Array, value: Array, attn_mask: Array | None, random_state: Array | None,
    is_causal: bool, scale: float, p: float,
) -> tuple[Array, Array]:  # fmt: skip
    if not _is_taken((query, key, value), attn_mask):
        return NotImplemented
    lead, rows, cols = spread(np, query, key, value)[0].shape[:-2], query.shape[-2], key.shape[-2]
    q, k, v = (_lined_up(wide(x), lead) for x in (query, key, value))
    count, breadth = prod(lead), v.shape[3]
    parts, high = _division(count, rows, cols)
    levels, out = np.empty((count, rows, LEVELS), F), np.empty((count, rows, breadth), F)
    mask, state = _mask_arrays(attn_mask, lead, rows, cols), _state(random_state, p)
    work = rows * cols * max(q.shape[3], breadth) // (32 * parts)
    split(
        flash_attend, count * parts, work, q, k, v, *mask, state, float(scale), is_causal, dropout_factor(p), parts,
        high, levels, out,
    )  # fmt: skip
    return out.reshape((*lead, rows, breadth)), levels.reshape((*lead, rows, LEVELS))


@compiled("flash_attention_backward")
def flash_attention_backward(
    xp: Namespace, g: Array, query: Array, key: Array, value: Array, attn_mask: Array | None,
    random_state: Array | None, levels: Array, is_causal: bool, scale: float, p: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    if not _is_taken((g, query, key, value), attn_mask):
        return NotImplemented
    lead, rows, cols = query.shape[:-2], query.shape[-2], key.shape[-2]
    g, q, k, v = (_lined_up(wide(x), lead) for x in (g, query, key, value))
    count, size, breadth = prod(lead), q.shape[3], v.shape[3]
    parts, high = _division(count, rows, cols)
    g_q = np.empty((count, rows, size), F)
    g_k, g_v = np.empty((count * parts, cols, size), F), np.empty((count * parts, cols, breadth), F)
    mask, state = _mask_arrays(attn_mask, lead, rows, cols), _state(random_state, p)
    work = rows * cols * max(size, breadth) // (12 * parts)
    split(
        flash_attend_back, count * parts, work, g, q, k, v, *mask, state, dense(flat_matrices(np, levels, lead)),
        float(scale), is_causal, dropout_factor(p), parts, high, g_q, g_k, g_v,
    )  # fmt: skip
    if parts > 1:
        g_k, g_v = (x.reshape(count, parts, *x.shape[1:]).sum(1) for x in (g_k, g_v))
    return g_q.reshape(query.shape), g_k.reshape(key.shape), g_v.reshape(value.shape)
