"""How a convolution reads its input: as a slab, in which all positions are one dimension and each tap is an offset.

An image is laid out with the zeros around it, a channel after the other. Output ``p`` of a convolution with stride 1
is then the sum over channels and taps of ``weight * slab[offset + p]``: a product of matrices, of which one is never
made. It computes positions that are none, where a window would begin in one row and end in the next; nobody reads them.
For larger strides the input is split into *phases*, positions of one remainder, between which windows move by one.

The gradient for the input is the same with the roles exchanged: the output's gradient has stride 1, and the positions
of the input that share a remainder, a *class*, are a convolution of it with the taps that meet them.

All is in three spatial dimensions; what is missing has extent 1. The first is the one that is cut into blocks.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np

from ...numerics.windows import Ints, Windows
from ...runtime.arrays import Array

SLAB_BYTES: Final = 768 << 10
"""What a slab takes at most where an image can be cut: with all that is read beside it, it stays in a core's cache."""
Key = tuple[Ints, Ints, Ints, Ints, Ints, Ints]
Tap = tuple[int, int]
"""Along one dimension: by how many positions a tap is shifted, and the phase it reads."""


class Course(NamedTuple):
    """What a kernel needs to know of a convolution.

    Attributes:
        facts: int64, in the order of the names in :mod:`.packing`.
        starts: where each class begins in ``offsets`` and ``taps``.
        offsets: of each tap, in the slab of a channel.
        taps: the place of each in the weight's kernel.
        origins: ``(classes, 3)``, the place in the output of a class's first position.
        blocks: how many an image is cut into.
        channel: elements of a channel's slab.
    """

    facts: Array
    starts: Array
    offsets: Array
    taps: Array
    origins: Array
    blocks: int
    channel: int


def key_of(windows: Windows) -> Key:
    """Windows as what caches look up."""
    return windows.extents, windows.outputs, windows.kernel, windows.stride, windows.padding, windows.dilation


def spatial(values: Ints, missing: int) -> Ints:
    """Up to three values as three; the first dimension stays the first."""
    if len(values) == 3:
        return values
    return (missing, missing, *values) if len(values) == 1 else (values[0], missing, values[1])


def _spatial(key: Key) -> list[Ints]:
    return [spatial(values, missing) for values, missing in zip(key, (1, 1, 1, 1, 0, 1), strict=True)]


@lru_cache(maxsize=512)
def forward_course(key: Key, channels: int, itemsize: int) -> Course:
    """Of a convolution over ``channels`` of each group."""
    extents, outputs, kernel, stride, padding, dilation = _spatial(key)
    met = [[divmod(i * d, s) for i in range(k)] for k, d, s in zip(kernel, dilation, stride, strict=True)]
    reach = tuple(max(shift for shift, _ in taps) for taps in met)
    taps = [(i, tap) for i, tap in enumerate(product(*met))]
    phases = tuple(max(phase for _, phase in taps) + 1 for taps in met)
    return _course(extents, padding, stride, phases, outputs, reach, (1, 1, 1), [((0, 0, 0), taps)], channels, itemsize)


@lru_cache(maxsize=512)
def gradient_course(key: Key, channels: int, itemsize: int) -> Course:
    """Of the gradient for a convolution's input, from an output's gradient with ``channels`` in each group."""
    extents, outputs, kernel, stride, padding, dilation = _spatial(key)
    reach = tuple((k - 1) * d // s for k, d, s in zip(kernel, dilation, stride, strict=True))
    first = [p // s for p, s in zip(padding, stride, strict=True)]
    grid = tuple((p + n - 1) // s - f + 1 for p, n, s, f in zip(padding, extents, stride, first, strict=True))
    along: list[list[tuple[int, list[tuple[int, Tap]]]]] = []
    for axis in range(3):
        k, d, s, p = kernel[axis], dilation[axis], stride[axis], padding[axis]
        along.append([
            (
                first[axis] * s + rest - p,
                [(i, (reach[axis] - (i * d - rest) // s, 0)) for i in range(k) if (i * d - rest) % s == 0],
            )
            for rest in range(s)
        ])  # fmt: skip
    classes: list[tuple[Ints, list[tuple[int, tuple[Tap, ...]]]]] = []
    for a, b, c in product(*along):
        taps: list[tuple[int, tuple[Tap, ...]]] = [
            ((i * kernel[1] + j) * kernel[2] + k, (x, y, z)) for (i, x), (j, y), (k, z) in product(a[1], b[1], c[1])
        ]
        classes.append(((a[0], b[0], c[0]), taps))
    before = tuple(r - f for r, f in zip(reach, first, strict=True))
    return _course(outputs, before, (1, 1, 1), (1, 1, 1), grid, reach, stride, classes, channels, itemsize)


def _course(
    extents: Ints, padding: Ints, stride: Ints, phases: Ints, grid: Ints, reach: Ints, step: Ints,
    classes: list[tuple[Ints, list[tuple[int, tuple[Tap, ...]]]]], channels: int, itemsize: int,
) -> Course:  # fmt: skip
    height, width = grid[1] + reach[1], grid[2] + reach[2]
    row = prod(phases) * height * width * channels * itemsize
    block = max(1, min(grid[0], SLAB_BYTES // max(row, 1) - reach[0]))
    blocks = -(-grid[0] // block)
    block = -(-grid[0] // blocks)
    plane = (block + reach[0]) * height * width
    offsets, taps, starts = [], [], [0]
    for _, members in classes:
        for place, ((a, i), (b, j), (c, k)) in members:
            phase = (i * phases[1] + j) * phases[2] + k
            offsets.append(phase * plane + (a * height + b) * width + c)
            taps.append(place)
        starts.append(len(taps))
    facts = (*extents, *padding, *stride, *phases, *grid, *reach, *step, block)
    return Course(
        np.array(facts, np.int64), np.array(starts, np.int64), np.array(offsets, np.int64), np.array(taps, np.int64),
        np.array([origin for origin, _ in classes], np.int64), blocks, prod(phases) * plane,
    )  # fmt: skip
