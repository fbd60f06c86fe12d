"""Gradients of convolutions for their weights.

Where a window's row has enough channels, they are laid out beside each other: then the taps of a row, with all their
channels, are consecutive, and the gradient is a product of matrices over positions. Where it has not, each number is
the product of two rows of positions, of the output's gradient and of the input's slab.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from ....autograd.registry import compiled, row
from ....numerics.windows import Ints, Windows
from ....ops import convolution as convolution_op
from ....runtime.arrays import Array, Namespace
from .. import depthwise
from ..emitter import VECTOR
from ..moves import move, transpose
from ..native import Count, Element, In1, Int1, Out1, flat, inline, native
from ..packing import (
    BLOCK,
    GRID_D,
    GRID_H,
    GRID_W,
    PHASES_D,
    PHASES_W,
    REACH_D,
    REACH_H,
    REACH_W,
    channel_size,
    lanes_of,
    pack_slab,
    vectors_of,
)
from ..slabs import Key, forward_course, key_of, spatial
from ..threads import split
from ..tiles import contract, multiply, padded_rows, panel_rows, share_of, shares_of

PARTS: Final = 8
"""Partial sums that are made side by side, at most; never a matter of how many threads there are."""

PART_POSITIONS: Final = 512
"""Positions that a part should have."""

PARTS_BYTES: Final = 4 << 20
"""Memory of all partial sums, unless one alone takes more."""

TOGETHER_BYTES: Final = 512 << 10
"""Operands that are laid out at a time."""

LEAST_USED: Final = 0.5
"""The part of the lanes of a window's row that must be used."""


# Channels beside each other


@inline
def _spread_channels(x: Element, at: int, ins: int, facts: Array, top: int, slab: Array, to: int) -> None:
    """Lay out an image, from row ``top`` on, with zeros around it and the channels of a place beside each other."""
    in_d, in_h, in_w, pad_h, pad_w = facts[0], facts[1], facts[2], facts[4], facts[5]
    wide_d, wide_h, wide_w = facts[12], facts[13], facts[14]
    plane = in_d * in_h * in_w
    low = min(pad_w, wide_w)
    high = max(low, min(wide_w, in_w + pad_w))
    for d in range(wide_d):
        z = top + d
        for h in range(wide_h):
            y = h - pad_h
            if z < 0 or z >= in_d or y < 0 or y >= in_h:
                slab[to : to + wide_w * ins] = 0
            else:
                slab[to : to + low * ins] = 0
                transpose(
                    ins, x, at + (z * in_h + y) * in_w + low - pad_w, plane, slab, to + low * ins, ins, high - low
                )
                slab[to + high * ins : to + wide_w * ins] = 0
            to += wide_w * ins


@native("float32", "float64")
def paired_rows(
    x: In1, g: In1, groups: Count, ins: Count, outs: Count, images: Count, facts: Int1, parts: Count, shares: Count,
    made: Out1, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Parts from ``start`` on, and of each the ``shares`` of the output's channels: ``(groups, outs, runs, lanes of a
    run)``. ``facts`` as in :func:`_rows`."""
    in_d, in_h, in_w, pad_d, pad_h, pad_w, by_d, by_h, by_w = facts[:9]
    grid_d, grid_h, grid_w, wide_d, wide_h, wide_w, block, together, taps = facts[9:18]
    runs = facts[18:]
    lanes = lanes_of(x)
    vectors = (taps * ins + lanes - 1) // lanes
    width = runs.size * vectors * lanes
    image = wide_d * wide_h * wide_w * ins
    slab = np.empty(together * image + lanes, x.dtype)
    slab[together * image :] = 0
    most = together * block * grid_h * grid_w
    panels, places = np.empty(padded_rows(outs) * most, x.dtype), np.empty(most, np.int64)
    sums = np.empty(padded_rows(outs) * width, x.dtype)
    plane, volume = in_d * in_h * in_w, grid_d * grid_h * grid_w
    for unit in range(start, stop):
        part = unit // shares
        low, top = share_of(outs, unit % shares, shares)
        begin, end = part * images // parts, (part + 1) * images // parts
        for group in range(groups):
            at = (part * groups + group) * outs
            made[(at + low) * width : (at + top) * width] = 0
        for n in range(begin, end, together):
            here = min(together, end - n)
            for group in range(groups):
                for first in range(0, grid_d, block):
                    rows = min(block, grid_d - first)
                    each = rows * grid_h * grid_w
                    count = here * each
                    k = 0
                    for i in range(here):
                        _spread_channels(
                            x,
                            ((n + i) * groups + group) * ins * plane,
                            ins,
                            facts,
                            first * by_d - pad_d,
                            slab,
                            i * image,
                        )
                        for d in range(rows):
                            for h in range(grid_h):
                                at = i * image + (d * by_d * wide_h + h * by_h) * wide_w * ins
                                for w in range(grid_w):
                                    places[k] = at + w * by_w * ins
                                    k += 1
                        o, to = low, 0
                        while o < top:
                            high = panel_rows(outs - o)
                            there = min(high, outs - o)
                            source = (((n + i) * groups + group) * outs + o) * volume + first * grid_h * grid_w
                            to_image = to + i * each * high
                            transpose(there, g, source, volume, panels, to_image, high, each)
                            if there < high:
                                for p in range(each):
                                    for r in range(there, high):
                                        panels[to_image + p * high + r] = 0
                            to += high * count
                            o += high
                    for r in range(runs.size):
                        o, panel = low, 0
                        while o < top:
                            high = panel_rows(outs - o)
                            multiply(
                                high, vectors, panels, panel, slab, runs[r], places, 0, count, sums,
                                (o - low) * width + r * vectors * lanes, width, False,
                            )  # fmt: skip
                            panel += high * count
                            o += high
                    at = (part * groups + group) * outs
                    own = made[(at + low) * width : (at + top) * width]
                    for i in range(own.size):
                        own[i] += sums[i]


@native("float32", "float64")
def summed_rows(
    made: Out1, parts: Count, outs: Count, runs: Count, taps: Count, out: Out1, start: Count, stop: Count
) -> None:
    """Output channels from ``start`` on: the sums of all parts, with the taps of an input channel beside each other."""
    kernel = runs * taps
    each = out.size // outs
    ins, width = each // kernel, made.size // (parts * outs * runs)
    for o in range(start, stop):
        whole = made[o * runs * width : (o + 1) * runs * width]
        for part in range(1, parts):
            at = (part * outs + o) * runs * width
            for i in range(runs * width):
                whole[i] += made[at + i]
        own = out[o * each : (o + 1) * each]
        for r in range(runs):
            for t in range(taps):
                at, to = r * width + t * ins, r * taps + t
                for c in range(ins):
                    own[c * kernel + to] = whole[at + c]


@lru_cache(maxsize=512)
def _rows(key: Key, ins: int, outs: int, images: int, itemsize: int) -> Any:
    """(facts for :func:`paired_rows`, parts), or ``None`` where too few lanes would be used.

    The facts: extents, padding, stride, outputs, extents of what a block's windows see, rows in a block, images at a
    time, taps in a run; then where in it each run begins.
    """
    extents, outputs, kernel, stride, padding, dilation = (
        spatial(values, missing) for values, missing in zip(key, (1, 1, 1, 1, 0, 1), strict=True)
    )
    taps = kernel[2] if dilation[2] == 1 else 1
    lanes = VECTOR // itemsize
    run = -(-taps * ins // lanes) * lanes
    if taps * ins < LEAST_USED * run:
        return None
    seen = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(outputs, stride, kernel, dilation, strict=True)]
    row_bytes = (seen[1] * seen[2] * ins * stride[0] + outputs[1] * outputs[2] * outs) * itemsize
    block = max(1, min(outputs[0], TOGETHER_BYTES // row_bytes))
    seen[0] = (block - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1
    runs = prod(kernel) // taps
    size = outs * runs * run * itemsize
    parts = min(images, PARTS, images * prod(outputs) // PART_POSITIONS, PARTS_BYTES // size) or 1
    whole = max(1, TOGETHER_BYTES // (block * row_bytes)) if block == outputs[0] else 1
    together = min(-(-images // parts), whole)
    begins = [
        ((a * dilation[0] * seen[1] + b * dilation[1]) * seen[2] + c * dilation[2]) * ins
        for a in range(kernel[0])
        for b in range(kernel[1])
        for c in range(kernel[2] // taps)
    ]
    facts = (*extents, *padding, *stride, *outputs, *seen, block, together, taps, *begins)
    return np.array(facts, np.int64), parts


# Rows of positions


@native("float32", "float64")
def paired_positions(
    x: In1, g: In1, groups: Count, ins: Count, outs: Count, images: Count, facts: Int1, offsets: Int1, together: Count,
    parts: Count, made: Out1, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Parts from ``start`` on: of each ``(groups, outs, ins, taps)``. Between outputs there are zeros in the laid out
    gradient; so where the input is not finite a sum may be NaN that has no such term."""
    lanes, size = lanes_of(x), channel_size(facts)
    height, width = facts[GRID_H] + facts[REACH_H], facts[GRID_W] + facts[REACH_W]
    columns = ins * offsets.size
    places = np.empty(columns, np.int64)
    for c in range(ins):
        for t in range(offsets.size):
            places[c * offsets.size + t] = c * size + offsets[t]
    vectors = vectors_of(facts, facts[BLOCK], lanes)
    step = vectors * lanes
    slab, grads = np.zeros(together * ins * size + 2 * lanes, x.dtype), np.zeros(together * outs * step, x.dtype)
    plane = facts[0] * facts[1] * facts[2]
    zero = x.dtype.type(0)
    for part in range(start, stop):
        begin, end = part * images // parts, (part + 1) * images // parts
        made[part * groups * outs * columns : (part + 1) * groups * outs * columns] = 0
        for n in range(begin, end, together):
            here = min(together, end - n)
            for group in range(groups):
                for first in range(0, facts[GRID_D], facts[BLOCK]):
                    rows = min(facts[BLOCK], facts[GRID_D] - first)
                    for i in range(here):
                        at = (n + i) * groups + group
                        pack_slab(x, at * ins * plane, ins, facts, first, slab, i * ins * size)
                        for o in range(outs):
                            source = ((at * outs + o) * facts[GRID_D] + first) * facts[GRID_H] * facts[GRID_W]
                            to = (i * outs + o) * step
                            for d in range(rows):
                                for h in range(facts[GRID_H]):
                                    move(g, source, grads, to + (d * height + h) * width, facts[GRID_W], zero)
                                    source += facts[GRID_W]
                            grads[to + rows * height * width : to + step] = 0
                    contract(
                        outs, columns, grads, step, outs * step, slab, ins * size, here, places, vectors, made,
                        (part * groups + group) * outs * columns,
                    )  # fmt: skip


def _by_rows(g: Array, x: Array, windows: Windows, groups: int, rows: Array) -> Array:
    facts, parts = rows
    ins, outs = x.shape[1] // groups, g.shape[1] // groups
    taps, runs = int(facts[17]), len(facts) - 18
    lanes = VECTOR // x.itemsize
    made = np.empty((parts, groups * outs * runs, -(-taps * ins // lanes) * lanes), x.dtype)
    shares = shares_of(outs, parts)
    work = groups * outs * ins * taps * runs * prod(windows.outputs) * x.shape[0] // parts // shares // 64
    split(
        paired_rows, parts * shares, work, flat(x), flat(g), groups, ins, outs, x.shape[0], facts, parts, shares,
        made.reshape(-1),
    )  # fmt: skip
    out = np.empty((groups * outs, ins, *windows.kernel), x.dtype)
    split(
        summed_rows, groups * outs, parts * made.shape[2] * runs, made.reshape(-1), parts, groups * outs, runs, taps,
        out.reshape(-1),
    )  # fmt: skip
    return out


def _by_positions(g: Array, x: Array, windows: Windows, groups: int) -> Array:
    ins, outs = x.shape[1] // groups, g.shape[1] // groups
    course = forward_course(key_of(windows), ins, x.itemsize)
    facts, images = course.facts, x.shape[0]
    columns = ins * len(course.taps)
    slab = int(prod(facts[PHASES_D : PHASES_W + 1])) * ins + outs
    slab *= int((facts[BLOCK] + facts[REACH_D]) * (facts[GRID_H] + facts[REACH_H]) * (facts[GRID_W] + facts[REACH_W]))
    parts = min(images, PARTS, PARTS_BYTES // (groups * outs * columns * x.itemsize)) or 1
    together = min(-(-images // parts), max(1, TOGETHER_BYTES // (slab * x.itemsize)))
    made = np.empty((parts, groups * outs, columns), x.dtype)
    work = groups * outs * columns * prod(windows.outputs) * images // parts // 64
    split(
        paired_positions, parts, work, flat(x), flat(g), groups, ins, outs, images, facts, course.offsets, together,
        parts, made.reshape(-1),
    )  # fmt: skip
    total = made[0] if parts == 1 else made.sum(axis=0)
    if not np.isfinite(total).all():
        return convolution_op.weight_gradient(np, g, x, windows, groups)
    return total.reshape(groups * outs, ins, *windows.kernel)


def _pointwise(g: Array, x: Array, groups: int) -> Array:
    """Where the windows are one element each: a product for each image, added up."""
    of_g, of_x = (a.reshape(a.shape[0], groups, a.shape[1] // groups, -1) for a in (g, x))
    product = row("matmul").compiled
    assert product is not None
    found = product(np, of_g, of_x.swapaxes(2, 3))
    if found is NotImplemented:
        return found
    total: Array = found.sum(axis=0)
    return total.reshape(g.shape[1], -1, *(1,) * (x.ndim - 2))


@compiled("convolution_weight")
def convolution_weight(
    xp: Namespace, g: Array, x: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    windows = Windows(x.shape[2:], g.shape[2:], extents, stride, padding, dilation)
    if x.dtype.char not in "fd" or not x.size or not g.size:
        return NotImplemented
    if windows.pointwise:
        return _pointwise(g, x, groups)
    ins, outs = x.shape[1] // groups, g.shape[1] // groups
    if ins == outs == 1 < groups:
        found = depthwise.weight_gradient(g, x, windows)
        if found is not NotImplemented:
            return found
    rows = _rows(key_of(windows), ins, outs, x.shape[0], x.itemsize)
    return _by_positions(g, x, windows, groups) if rows is None else _by_rows(g, x, windows, groups, rows)
