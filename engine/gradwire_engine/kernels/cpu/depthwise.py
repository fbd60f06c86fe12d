"""Convolutions of which each channel has a kernel of its own, and their gradients.

In a slab (:mod:`.slabs`) such a channel would be multiplied by one number at a time. So a few channels of an image are
laid out beside each other, with zeros around it: then outputs, gradients for the input and gradients for the weight are
sums of products of vectors of channels (:mod:`.correlation`). Imports Numba.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np

from ...numerics.windows import Ints, Windows
from ...runtime.arrays import Array
from .correlation import VECTORS, correlate, lanes_of
from .emitter import VECTOR
from .moves import transpose
from .native import Count, In1, Int1, Out1, flat, inline, native
from .slabs import Key, key_of, spatial
from .threads import split

LARGEST: Final = 1 << 18
"""Bytes of an image's channels that are laid out together; of larger images, slabs are made by rows."""


class Path(NamedTuple):
    """How a depthwise convolution, or its gradient for the input, goes through an image.

    Attributes:
        facts: extents of what is read, what is padded before it, extents with all padding, and those of the result.
        starts, taps, offsets: of each class, the taps and by how much they are shifted, in places.
        ends, shifts, places: of each class, the places read and written.
    """

    facts: Array
    starts: Array
    taps: Array
    offsets: Array
    ends: Array
    shifts: Array
    places: Array


@inline
def _lay_out(x: Array, at: int, there: int, facts: Array, beside: Array, padded: Array) -> None:
    """Channels from ``x[at]`` on, beside each other; ``padded`` is zero around the image."""
    lanes = lanes_of(x)
    depth, height, width = facts[0], facts[1], facts[2]
    plane = depth * height * width
    if there < lanes:
        beside[:] = 0
    transpose(there, x, at, plane, beside, 0, lanes, plane)
    row, source = width * lanes, 0
    for z in range(depth):
        for y in range(height):
            to = (((z + facts[3]) * facts[7] + y + facts[4]) * facts[8] + facts[5]) * lanes
            padded[to : to + row] = beside[source : source + row]
            source += row


@inline
def _rooms(x: Array, facts: Array) -> tuple[Array, Array]:
    lanes = lanes_of(x)
    beside = np.empty(facts[0] * facts[1] * facts[2] * lanes, x.dtype)
    return beside, np.zeros(facts[6] * facts[7] * facts[8] * lanes, x.dtype)


@native("float32", "float64")
def filtered(
    x: In1, weight: In1, bias: In1, channels: Count, kernel_size: Count, facts: Int1, starts: Int1, taps: Int1,
    offsets: Int1, ends: Int1, shifts: Int1, places: Int1, out: Out1, start: Count, stop: Count,
) -> None:  # fmt: skip
    """Blocks of channels from ``start`` on, image after image."""
    lanes = lanes_of(x)
    blocks = (channels + lanes - 1) // lanes
    plane, size = facts[0] * facts[1] * facts[2], facts[9] * facts[10] * facts[11]
    beside, padded = _rooms(x, facts)
    made, factors = np.empty(size * lanes, x.dtype), np.zeros(taps.size * lanes, x.dtype)
    term = np.zeros(lanes, x.dtype)
    for unit in range(start, stop):
        n, first = unit // blocks, unit % blocks * lanes
        there = min(lanes, channels - first)
        channel = n * channels + first
        _lay_out(x, channel * plane, there, facts, beside, padded)
        for c in range(there):
            for k in range(taps.size):
                factors[k * lanes + c] = weight[(first + c) * kernel_size + taps[k]]
            if bias.size:
                term[c] = bias[first + c]
        for t in range(size):
            for c in range(lanes):
                made[t * lanes + c] = term[c]
        for m in range(ends.size - 1):
            own = factors[starts[m] * lanes :]
            correlate(
                own, padded, offsets, starts[m], starts[m + 1] - starts[m], shifts, places, ends[m], ends[m + 1], made
            )  # fmt: skip
        transpose(size, made, 0, lanes, out, channel * size, size, there)


@native("float32", "float64")
def filter_slopes(
    x: In1, g: In1, channels: Count, images: Count, facts: Int1, offsets: Int1, shifts: Int1, places: Int1, out: Out1,
    start: Count, stop: Count,
) -> None:  # fmt: skip
    """Blocks of channels from ``start`` on, each for all images."""
    lanes, kernel = lanes_of(x), offsets.size
    plane, size = facts[0] * facts[1] * facts[2], facts[9] * facts[10] * facts[11]
    beside, padded = _rooms(x, facts)
    slopes = np.zeros(size * lanes, x.dtype)
    sums, total = np.empty(kernel * lanes, x.dtype), np.empty(kernel * lanes, x.dtype)
    for unit in range(start, stop):
        first = unit * lanes
        there = min(lanes, channels - first)
        total[:] = 0
        for n in range(images):
            channel = n * channels + first
            _lay_out(x, channel * plane, there, facts, beside, padded)
            if there < lanes:
                slopes[:] = 0
            transpose(there, g, channel * size, size, slopes, 0, lanes, size)
            sums[:] = 0
            correlate(slopes, padded, shifts, 0, size, offsets, places, 0, kernel, sums)
            for i in range(total.size):
                total[i] += sums[i]
        for c in range(there):
            for k in range(kernel):
                out[(first + c) * kernel + k] = total[k * lanes + c]


# Paths


def _places(grid: Ints, extents: Ints, begin: Ints = (0, 0, 0), step: Ints = (1, 1, 1)) -> list[int]:
    """The places of a grid in an image of these extents."""
    return [
        ((begin[0] + a * step[0]) * extents[1] + begin[1] + b * step[1]) * extents[2] + begin[2] + c * step[2]
        for a, b, c in product(*map(range, grid))
    ]


def _spatial(key: Key) -> list[Ints]:
    return [spatial(values, missing) for values, missing in zip(key, (1, 1, 1, 1, 0, 1), strict=True)]


def _path(
    read: Ints, before: Ints, padded: Ints, made: Ints,
    classes: list[tuple[list[int], list[int], list[int], list[int]]], itemsize: int,
) -> Path | None:  # fmt: skip
    lanes = VECTORS * VECTOR // itemsize
    if prod(padded) * lanes * itemsize > LARGEST or min(before) < 0:
        return None
    columns: list[list[int]] = [[], [], [], []]
    starts, ends = [0], [0]
    for each in classes:
        for column, values in zip(columns, each, strict=True):
            column += values
        starts.append(len(columns[0]))
        ends.append(len(columns[2]))
    taps, offsets, shifts, places = [np.array(column, np.int64) for column in columns]
    facts = np.array([*read, *before, *padded, *made], np.int64)
    begins = np.array(starts, np.int64), np.array(ends, np.int64)
    return Path(facts, begins[0], taps, offsets * lanes, begins[1], shifts * lanes, places * lanes)


@lru_cache(maxsize=512)
def forward_path(key: Key, itemsize: int) -> Path | None:
    """Of a convolution; ``None`` where its images are too large."""
    extents, outputs, kernel, stride, padding, dilation = _spatial(key)
    padded: Ints = tuple(
        max((n - 1) * s + d * (k - 1) + 1, e + p)
        for n, s, d, k, e, p in zip(outputs, stride, dilation, kernel, extents, padding, strict=True)
    )
    offsets = _places(kernel, padded, step=dilation)
    shifts = _places(outputs, padded, step=stride)
    return _path(
        extents, padding, padded, outputs, [(list(range(len(offsets))), offsets, shifts, list(range(len(shifts))))],
        itemsize,
    )  # fmt: skip


@lru_cache(maxsize=512)
def gradient_path(key: Key, itemsize: int) -> Path | None:
    """Of the gradient for a convolution's input, from that of its output. Inputs that share a remainder by the stride
    are a class: the same taps meet them."""
    extents, outputs, kernel, stride, padding, dilation = _spatial(key)
    before: Ints = tuple(
        max(0, -((p - d * (k - 1)) // s)) for p, d, k, s in zip(padding, dilation, kernel, stride, strict=True)
    )
    padded: Ints = tuple(
        b + max(n, (e - 1 + p) // s + 1)
        for b, n, e, p, s in zip(before, outputs, extents, padding, stride, strict=True)
    )
    classes = []
    for first in product(*(range(min(s, e)) for s, e in zip(stride, extents, strict=True))):
        met = [
            [(i, (f + p - i * d) // s + b) for i in range(k) if (f + p - i * d) % s == 0]
            for f, p, d, k, s, b in zip(first, padding, dilation, kernel, stride, before, strict=True)
        ]
        taps = [(i * kernel[1] + j) * kernel[2] + k for (i, _), (j, _), (k, _) in product(*met)]
        offsets = [(x * padded[1] + y) * padded[2] + z for (_, x), (_, y), (_, z) in product(*met)]
        grid: Ints = tuple(-(-(e - f) // s) for e, f, s in zip(extents, first, stride, strict=True))
        classes.append((taps, offsets, _places(grid, padded), _places(grid, extents, first, stride)))
    return _path(outputs, before, padded, extents, classes, itemsize)


# Ops


def filter_by(x: Array, weight: Array, bias: Array | None, path: Path, shape: Ints) -> Array:
    """The result of this shape."""
    out = np.empty(shape, x.dtype)
    lanes = VECTORS * VECTOR // x.itemsize
    kernel = prod(weight.shape[2:])
    split(
        filtered, x.shape[0] * -(-shape[1] // lanes), len(path.places) * kernel * lanes // 2, flat(x), flat(weight),
        np.empty(0, x.dtype) if bias is None else flat(bias), shape[1], kernel, *path, out.reshape(-1),
    )  # fmt: skip
    return out


def forward(x: Array, weight: Array, windows: Windows, bias: Array | None) -> Array:
    """``NotImplemented`` where images are too large to be laid out whole."""
    path = forward_path(key_of(windows), x.itemsize)
    return NotImplemented if path is None else filter_by(x, weight, bias, path, (*x.shape[:2], *windows.outputs))


def input_gradient(g: Array, weight: Array, windows: Windows, bias: Array | None) -> Array:
    """The same for the gradient for the input."""
    path = gradient_path(key_of(windows), g.itemsize)
    return NotImplemented if path is None else filter_by(g, weight, bias, path, (*g.shape[:2], *windows.extents))


def weight_gradient(g: Array, x: Array, windows: Windows) -> Array:
    """The same for the gradient for the weight."""
    path = forward_path(key_of(windows), x.itemsize)
    if path is None:
        return NotImplemented
    channels, kernel = x.shape[1], prod(windows.kernel)
    lanes = VECTORS * VECTOR // x.itemsize
    out = np.empty((channels, 1, *windows.kernel), x.dtype)
    places = np.arange(kernel, dtype=np.int64) * lanes
    split(
        filter_slopes, -(-channels // lanes), x.shape[0] * len(path.shifts) * kernel * lanes // 2, flat(x), flat(g),
        channels, x.shape[0], path.facts, path.offsets, path.shifts, places, out.reshape(-1),
    )  # fmt: skip
    return out
