"""Convolutions, and gradients for their inputs, of images that are laid out as slabs."""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from gradwire_protocol.ops.convolution import Geometry, transposed_extents

from ....autograd.registry import compiled, row
from ....numerics.windows import Ints, Windows
from ....runtime.arrays import Array, Namespace
from .. import depthwise
from ..emitter import VECTOR
from ..moves import copy_lines, move
from ..native import Count, In1, Int1, Int2, Out1, dense, flat, inline, native
from ..packing import (
    BLOCK,
    GRID_D,
    GRID_H,
    GRID_W,
    REACH_H,
    REACH_W,
    STEP_D,
    STEP_H,
    STEP_W,
    channel_size,
    lanes_of,
    pack_panel,
    pack_slab,
    vectors_of,
)
from ..recurrence import matrix_product
from ..slabs import SLAB_BYTES, Course, forward_course, gradient_course, key_of, spatial
from ..threads import split, threads
from ..tiles import multiply, padded_rows, panel_rows, share_of, shares_of

AT_ONCE: Final = 6
"""Vectors of positions that all output channels take one after the other, while they are in the nearest cache."""

DENSE_POSITIONS: Final = 48
"""Outputs that are computed together where an image has fewer."""

MOST_POSITIONS: Final = 512
"""Outputs of a class up to which they are gathered."""

DENSE_TERMS: Final = 192
"""Terms of a sum that are gathered at a time: with three vectors of outputs, what the nearest cache holds."""

DENSE_BELOW: Final = 0.85
"""The part of the positions computed that must be outputs, or they are gathered first."""

DENSE_CHANNELS: Final = 16
"""Output channels for which it is worth that."""

LEAST_USED: Final = 0.3
"""The part of the positions computed that must be outputs: of the smallest images, it is not."""


@native("float32", "float64")
def panels_of(
    weight: In1, outs: Count, ins: Count, group_step: Count, out_step: Count, in_step: Count, taps: Int1, starts: Int1,
    panels: Out1, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Panels from ``start`` on, one group's after another's: of eight output channels, for all classes of taps."""
    each, classes = (outs + 7) // 8, starts.size - 1
    for unit in range(start, stop):
        group, o = unit // each, unit % each * 8
        for m in range(classes):
            count = (starts[m + 1] - starts[m]) * ins
            to = (group * starts[classes] + starts[m]) * ins * padded_rows(outs) + o * count
            pack_panel(
                weight, group * group_step + o * out_step, outs - o, out_step, ins, in_step, taps, starts[m],
                starts[m + 1], panels, to,
            )  # fmt: skip


@native("float32", "float64")
def convolved(
    x: In1, panels: In1, bias: In1, groups: Count, ins: Count, outs: Count, facts: Int1, extents: Int1, starts: Int1,
    offsets: Int1, origins: Int2, blocks: Count, shares: Count, out: Out1, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Blocks from ``start`` on, image after image, and of each the ``shares`` of the output's channels. ``extents`` are
    the input's and the output's."""
    lanes, classes = lanes_of(x), starts.size - 1
    size, all_rows = channel_size(facts), padded_rows(outs)
    height, width = facts[GRID_H] + facts[REACH_H], facts[GRID_W] + facts[REACH_W]
    taps = starts[classes]
    places = np.empty(ins * taps, np.int64)
    k = 0
    for m in range(classes):
        for c in range(ins):
            for t in range(starts[m], starts[m + 1]):
                places[k] = c * size + offsets[t]
                k += 1
    slab = np.empty(ins * size + 2 * lanes, x.dtype)
    slab[ins * size :] = 0
    step = vectors_of(facts, facts[BLOCK], lanes) * lanes
    made = np.empty(all_rows * step, x.dtype)
    out_d, out_h, out_w = extents[3], extents[4], extents[5]
    for unit in range(start, stop):
        n, first = unit // shares // blocks, unit // shares % blocks * facts[BLOCK]
        low_o, high_o = share_of(outs, unit % shares, shares)
        rows = min(facts[BLOCK], facts[GRID_D] - first)
        vectors = vectors_of(facts, rows, lanes)
        for g in range(groups):
            pack_slab(x, (n * groups + g) * ins * extents[0] * extents[1] * extents[2], ins, facts, first, slab, 0)
            for m in range(classes):
                count, begin = (starts[m + 1] - starts[m]) * ins, starts[m] * ins
                for v in range(0, vectors, AT_ONCE):
                    o, panel = low_o, (g * taps * ins + begin) * all_rows + low_o * count
                    while o < high_o:
                        high = panel_rows(outs - o)
                        multiply(
                            high, min(AT_ONCE, vectors - v), panels, panel, slab, v * lanes, places, begin, count,
                            made, o * step + v * lanes, step, False,
                        )  # fmt: skip
                        panel += count * high
                        o += high
                z0, y0, x0 = origins[m, 0] + first * facts[STEP_D], origins[m, 1], origins[m, 2]
                by = facts[STEP_W]
                low = 0 if x0 >= 0 else (by - 1 - x0) // by
                high = min(facts[GRID_W], (out_w - 1 - x0) // by + 1)
                for o in range(low_o, high_o):
                    term, channel = bias[g * outs + o], (n * groups + g) * outs + o
                    for d in range(rows):
                        z = d * facts[STEP_D] + z0
                        for h in range(facts[GRID_H]):
                            y = h * facts[STEP_H] + y0
                            if z < 0 or z >= out_d or y < 0 or y >= out_h:
                                continue
                            source = o * step + (d * height + h) * width
                            to = ((channel * out_d + z) * out_h + y) * out_w + x0
                            if by == 1:
                                move(made, source + low, out, to + low, high - low, term)
                            else:
                                for q in range(low, high):
                                    out[to + q * by] = made[source + q] + term


@inline
def _inside(begin: int, step: int, grid: int, extent: int) -> tuple[int, int]:
    """The positions of a class along one dimension that are outputs."""
    low = 0 if begin >= 0 else (step - 1 - begin) // step
    return low, min(grid, (extent - 1 - begin) // step + 1)


@native("float32", "float64")
def convolved_densely(
    x: In1, panels: In1, bias: In1, groups: Count, ins: Count, outs: Count, facts: Int1, extents: Int1, starts: Int1,
    offsets: Int1, origins: Int2, images: Count, together: Count, positions: Count, shares: Count, out: Out1,
    start: Count, stop: Count,
) -> None:  # fmt: skip
    """:func:`convolved` for small images, of which some are taken ``together``: what the taps see is gathered, so that
    nothing is computed that is no output. ``positions`` are an image's, at most, of a class."""
    lanes, classes = lanes_of(x), starts.size - 1
    size, all_rows, taps = channel_size(facts), padded_rows(outs), starts[starts.size - 1]
    height, width = facts[GRID_H] + facts[REACH_H], facts[GRID_W] + facts[REACH_W]
    image = ins * size
    slab = np.empty(together * image + 2 * lanes, x.dtype)
    slab[together * image :] = 0
    most = 1
    for m in range(classes):
        most = max(most, starts[m + 1] - starts[m])
    room = (together * positions + lanes - 1) // lanes * lanes
    chunk = max(1, min(ins, DENSE_TERMS // most))
    columns, places = np.zeros(chunk * most * room + 2 * lanes, x.dtype), np.empty(chunk * most, np.int64)
    for k in range(places.size):
        places[k] = k * room
    made, lines = np.empty(all_rows * room, x.dtype), np.empty(together * positions, np.int64)
    out_d, out_h, out_w = extents[3], extents[4], extents[5]
    by_d, by_h, by_w = facts[STEP_D], facts[STEP_H], facts[STEP_W]
    for unit in range(start, stop):
        n = unit // shares * together
        here = min(together, images - n)
        low_o, high_o = share_of(outs, unit % shares, shares)
        for g in range(groups):
            for i in range(here):
                at = ((n + i) * groups + g) * ins * extents[0] * extents[1] * extents[2]
                pack_slab(x, at, ins, facts, 0, slab, i * image)
            for m in range(classes):
                z0, y0, x0 = origins[m, 0], origins[m, 1], origins[m, 2]
                d_low, d_high = _inside(z0, by_d, facts[GRID_D], out_d)
                h_low, h_high = _inside(y0, by_h, facts[GRID_H], out_h)
                w_low, w_high = _inside(x0, by_w, facts[GRID_W], out_w)
                wide = w_high - w_low
                each = (d_high - d_low) * (h_high - h_low) * wide
                if each <= 0:
                    continue
                met = starts[m + 1] - starts[m]
                count, begin = met * ins, starts[m] * ins
                vectors, line = (here * each + lanes - 1) // lanes, (wide + lanes - 1) // lanes
                met_lines = 0
                for i in range(here):
                    for d in range(d_low, d_high):
                        for h in range(h_low, h_high):
                            lines[met_lines] = i * image + (d * height + h) * width + w_low
                            met_lines += 1
                if not count:
                    made[:] = 0
                for c in range(0, ins if met else 0, chunk):
                    channels = min(chunk, ins - c)
                    k = 0
                    for j in range(c, c + channels):
                        for t in range(starts[m], starts[m + 1]):
                            copy_lines(slab, j * size + offsets[t], lines, met_lines, columns, k * room, wide, line)
                            k += 1
                    for v in range(0, vectors, 3):
                        o, panel = low_o, (g * taps * ins + begin) * all_rows + low_o * count
                        while o < high_o:
                            high = panel_rows(outs - o)
                            multiply(
                                high, min(3, vectors - v), panels, panel + c * met * high, columns, v * lanes, places,
                                0, k, made, o * room + v * lanes, room, c > 0,
                            )  # fmt: skip
                            panel += count * high
                            o += high
                for i in range(here):
                    for o in range(low_o, high_o):
                        term, channel = bias[g * outs + o], ((n + i) * groups + g) * outs + o
                        source = o * room + i * each
                        for d in range(d_low, d_high):
                            for h in range(h_low, h_high):
                                z, y = d * by_d + z0, h * by_h + y0
                                to = ((channel * out_d + z) * out_h + y) * out_w + x0 + w_low * by_w
                                for q in range(wide):
                                    out[to + q * by_w] = made[source + q] + term
                                source += wide


def applies(*arrays: Array) -> bool:
    """Whether the kernels are for the dtype, and there is something to compute."""
    return arrays[0].dtype.char in "fd" and all(a.size for a in arrays)


def used(course: Course, positions: int, lanes: int) -> float:
    """The part of the positions computed in a slab that are outputs, of which there are so many."""
    facts = course.facts
    height, width = facts[GRID_H] + facts[REACH_H], facts[GRID_W] + facts[REACH_W]
    taken = ((facts[BLOCK] - 1) * height + facts[GRID_H] - 1) * width + facts[GRID_W]
    return float(positions / (len(course.origins) * course.blocks * -(-taken // lanes) * lanes))


def taken_together(images: int, each: int, lanes: int, most: int) -> int:
    """How many images are gathered together, with so many outputs each: what keeps all threads busy for the shortest
    time. No sum depends on it."""

    def steps(count: int) -> float:
        # Three vectors are taken at a time, and each time costs as much as a quarter of one.
        vectors = -(-count * each // lanes)
        return vectors + -(-vectors // 3) / 4 if count else 0.0

    def time_of(count: int) -> float:
        whole, rest = divmod(images, count)
        rounds, left = divmod(whole, threads())
        return rounds * steps(count) + (steps(count) if left else steps(rest))

    usual = max(1, DENSE_POSITIONS // each)
    offered = range(1, max(1, min(2 * usual, images, most)) + 1)
    return min(offered, key=lambda count: (time_of(count), abs(count - usual)))


def run(x: Array, weight: Array, bias: Array | None, course: Course, shape: Ints, groups: int, backward: bool) -> Array:
    """The course of a convolution with ``weight``, or of its gradient for the input, with a result of this shape."""
    images, ins, outs = shape[0], x.shape[1] // groups, shape[1] // groups
    kernel, lanes = prod(weight.shape[2:]), VECTOR // x.itemsize
    each = prod(-(-n // s) for n, s in zip(spatial(shape[2:], 1), course.facts[STEP_D : STEP_W + 1], strict=True))
    gathers = (
        course.blocks == 1
        and outs >= DENSE_CHANNELS
        and each <= MOST_POSITIONS
        and used(course, prod(shape[2:]), lanes) < DENSE_BELOW
    )
    if not gathers and used(course, prod(shape[2:]), 64 // x.itemsize) < LEAST_USED:
        return NotImplemented
    panels = np.empty(groups * ins * len(course.taps) * (-(-outs // 8) * 8), x.dtype)
    steps = (kernel, outs * kernel) if backward else (ins * kernel, kernel)
    split(
        panels_of, groups * -(-outs // 8), 8 * ins * len(course.taps), flat(weight), outs, ins, ins * outs * kernel,
        *steps, course.taps, course.starts, panels,
    )  # fmt: skip
    out = np.empty(shape, x.dtype)
    extents = np.array([*spatial(x.shape[2:], 1), *spatial(shape[2:], 1)], np.int64)
    slabs = max(1, SLAB_BYTES // (ins * course.channel * x.itemsize))
    together = taken_together(images, each, lanes, slabs) if gathers else 1
    units = -(-images // together) * course.blocks
    shares = shares_of(outs, units)
    operands = (
        flat(x), panels, np.zeros(shape[1], x.dtype) if bias is None else flat(bias), groups, ins, outs, course.facts,
        extents, course.starts, course.offsets, course.origins,
    )  # fmt: skip
    work = images * groups * ins * outs * len(course.taps) * prod(shape[2:]) // (units * shares) // 64
    if gathers:
        split(convolved_densely, units * shares, work, *operands, images, together, each, shares, out.reshape(-1))
    else:
        split(convolved, units * shares, work, *operands, course.blocks, shares, out.reshape(-1))
    return out


def pointwise(x: Array, weight: Array, groups: int, backward: bool, bias: Array | None) -> Array:
    """A convolution whose windows are one element each, or its gradient for the input: a product for each image."""
    factors = weight.reshape(groups, -1, weight.shape[1])
    images = x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)
    product = row("matmul").compiled
    assert product is not None
    found = product(np, factors.swapaxes(1, 2) if backward else factors, images)
    if found is NotImplemented:
        return found
    out: Array = found.reshape(x.shape[0], -1, *x.shape[2:])
    if bias is not None:
        out += bias.reshape(-1, *(1,) * (x.ndim - 2))
    return out


def forward(x: Array, weight: Array, windows: Windows, groups: int, bias: Array | None = None) -> Array:
    if not applies(x, weight) or not prod(windows.outputs):
        return NotImplemented
    if windows.pointwise:
        return pointwise(x, weight, groups, False, bias)
    if 1 < groups == x.shape[1] == weight.shape[0]:
        found = depthwise.forward(x, weight, windows, bias)
        if found is not NotImplemented:
            return found
    course = forward_course(key_of(windows), x.shape[1] // groups, x.itemsize)
    return run(x, weight, bias, course, (x.shape[0], weight.shape[0], *windows.outputs), groups, False)


def input_gradient(g: Array, weight: Array, windows: Windows, groups: int, bias: Array | None = None) -> Array:
    if not applies(g, weight) or not prod(windows.extents):
        return NotImplemented
    if windows.pointwise:
        return pointwise(g, weight, groups, True, bias)
    if 1 < groups == g.shape[1] and weight.shape[1] == 1:
        found = depthwise.input_gradient(g, weight, windows, bias)
        if found is not NotImplemented:
            return found
    if prod(windows.outputs) == groups == 1 and windows.extents == windows.kernel and not any(windows.padding):
        channels = g.shape[1], weight.shape[1]
        made = matrix_product(dense(g).reshape(-1, channels[0]), dense(weight).reshape(channels[0], -1))
        out: Array = made.reshape(g.shape[0], channels[1], *windows.extents)
        return out if bias is None else out + bias.reshape(-1, *(1,) * len(windows.extents))
    course = gradient_course(key_of(windows), g.shape[1] // groups, g.itemsize)
    return run(g, weight, bias, course, (g.shape[0], weight.shape[1] * groups, *windows.extents), groups, True)


@compiled("conv1d", "conv2d", "conv3d")
def conv(
    xp: Namespace, x: Array, weight: Array, bias: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    geometry = Geometry("conv", weight.shape[2:], stride, padding, dilation)
    x = x if x.ndim == weight.ndim else x[None]
    outputs = geometry.outputs(x.shape[2:])
    windows = Windows(x.shape[2:], outputs, geometry.kernel, geometry.stride, geometry.before, geometry.dilation)
    return forward(x, weight, windows, groups, bias)


@compiled("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    xp: Namespace, x: Array, weight: Array, bias: Array, stride: Ints, padding: Ints, output_padding: Ints, groups: int,
    dilation: Ints,
) -> Array:  # fmt: skip
    geometry = Geometry("conv_transpose", weight.shape[2:], stride, padding, dilation)
    x = x if x.ndim == weight.ndim else x[None]
    extents = transposed_extents("conv_transpose", x.shape[2:], geometry, output_padding)
    windows = Windows(extents, x.shape[2:], geometry.kernel, geometry.stride, geometry.before, geometry.dilation)
    return input_gradient(x, weight, windows, groups, bias)


@compiled("convolution")
def convolution(
    xp: Namespace, x: Array, weight: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    return forward(x, weight, Windows(x.shape[2:], extents, weight.shape[2:], stride, padding, dilation), groups)


@compiled("convolution_input")
def convolution_input(
    xp: Namespace, g: Array, weight: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    windows = Windows(extents, g.shape[2:], weight.shape[2:], stride, padding, dilation)
    return input_gradient(g, weight, windows, groups)
