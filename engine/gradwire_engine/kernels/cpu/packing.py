"""Slabs and panels: operands of convolutions in the order in which tiles read them. Imports Numba."""

from __future__ import annotations

from ...runtime.arrays import Array
from .emitter import VECTOR, apart
from .moves import move
from .native import inline
from .tiles import panel_rows

# Where each fact of a course is.
IN_D, IN_H, IN_W = 0, 1, 2
PAD_D, PAD_H, PAD_W = 3, 4, 5
STRIDE_D, STRIDE_H, STRIDE_W = 6, 7, 8
PHASES_D, PHASES_H, PHASES_W = 9, 10, 11
GRID_D, GRID_H, GRID_W = 12, 13, 14
REACH_D, REACH_H, REACH_W = 15, 16, 17
STEP_D, STEP_H, STEP_W = 18, 19, 20
BLOCK = 21


@inline
def lanes_of(x: Array) -> int:
    """Elements of a vector."""
    return VECTOR // x.itemsize


@inline
def channel_size(facts: Array) -> int:
    """Elements of a channel's slab."""
    plane = (facts[BLOCK] + facts[REACH_D]) * (facts[GRID_H] + facts[REACH_H]) * (facts[GRID_W] + facts[REACH_W])
    return plane * facts[PHASES_D] * facts[PHASES_H] * facts[PHASES_W]


@inline
def vectors_of(facts: Array, rows: int, lanes: int) -> int:
    """The vectors that the positions of so many rows take."""
    height, width = facts[GRID_H] + facts[REACH_H], facts[GRID_W] + facts[REACH_W]
    return (((rows - 1) * height + facts[GRID_H] - 1) * width + facts[GRID_W] + lanes - 1) // lanes


@inline
def first_inside(padding: int, phase: int, stride: int) -> int:
    """The first position of a phase that is not padding."""
    left = padding - phase
    return 0 if left <= 0 else (left + stride - 1) // stride


@apart
def pack_slab(x: Array, at: int, channels: int, facts: Array, first: int, slab: Array, to: int) -> None:
    """Lay out channels of an image, which begin at ``x[at]``, for the positions from row ``first`` on.

    A phase's plane follows the other, a channel's planes those of the channel before it.
    """
    depth, height, width = facts[BLOCK] + facts[REACH_D], facts[GRID_H] + facts[REACH_H], facts[GRID_W] + facts[REACH_W]
    by_d, by_h, by_w = facts[STRIDE_D], facts[STRIDE_H], facts[STRIDE_W]
    phases_h, phases_w = facts[PHASES_H], facts[PHASES_W]
    in_d, in_h, in_w = facts[IN_D], facts[IN_H], facts[IN_W]
    before = facts[PAD_W]
    zero = x.dtype.type(0)
    for _ in range(channels):
        for phase in range(facts[PHASES_D] * phases_h * phases_w):
            i, j, k = phase // (phases_h * phases_w), phase // phases_w % phases_h, phase % phases_w
            low = min(first_inside(before, k, by_w), width)
            last = in_w - 1 - k + before
            high = max(low, min(last // by_w + 1 if last >= 0 else 0, width))
            for d in range(depth):
                z = (first + d) * by_d + i - facts[PAD_D]
                for h in range(height):
                    y = h * by_h + j - facts[PAD_H]
                    if z < 0 or z >= in_d or y < 0 or y >= in_h:
                        for w in range(width):
                            slab[to + w] = zero
                    else:
                        source = at + (z * in_h + y) * in_w + k - before
                        for w in range(low):
                            slab[to + w] = zero
                        if by_w == 1:
                            move(x, source + low, slab, to + low, high - low, zero)
                        else:
                            for w in range(low, high):
                                slab[to + w] = x[source + w * by_w]
                        for w in range(high, width):
                            slab[to + w] = zero
                    to += width
        at += in_d * in_h * in_w


@apart
def pack_panel(
    weight: Array, at: int, left: int, out_step: int, ins: int, in_step: int, taps: Array, begin: int, end: int,
    panels: Array, to: int,
) -> None:  # fmt: skip
    """Lay out the weights of one panel of output channels, of which so many are left: for every input channel and each
    of some taps those of all its rows."""
    rows = panel_rows(left)
    if rows == 8 and left >= 8:
        for c in range(ins):
            for t in range(begin, end):
                source = at + c * in_step + taps[t]
                for r in range(8):
                    panels[to + r] = weight[source + r * out_step]
                to += 8
        return
    for c in range(ins):
        for t in range(begin, end):
            source = at + c * in_step + taps[t]
            for r in range(rows):
                panels[to + r] = weight[source + r * out_step] if r < left else weight.dtype.type(0)
            to += rows
