"""Convolutions as matrix products over unrolled windows.

The input is kept as ``(batch, channels, extents)``. A few images at a time have their windows unrolled into columns
``(batch, channels * taps, outputs)``, small enough to stay in a CPU's cache, which one matrix product then consumes.
The taps of a kernel are its positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from gradwire_protocol.ops.convolution import COLUMN_BYTES, Geometry, transposed_extents

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.windows import Ints, Windows
from ..runtime.arrays import Array, Namespace

GATHERED_BYTES = 1 << 20
"""Several images are unrolled together up to this size, about what the cache of one core holds."""

DEVICE_COLUMN_BYTES = 1 << 28
"""A GPU has no cache to stay in, and launches cost more than memory."""


class Portion:
    """Some images, or some output rows of one image: as much as is unrolled at a time."""

    __slots__ = ("images", "rows", "start", "whole", "windows")

    def __init__(self, images: slice, rows: slice, windows: Windows, whole: bool) -> None:
        self.images = images
        self.rows = rows
        self.windows = windows if whole else windows.rows(rows.start, rows.stop)
        self.whole = whole
        self.start = rows.start * windows.stride[0]

    def of_input(self, x: Array) -> Array:
        """What its windows see of padded images."""
        return x[self.images] if self.whole else x[self.images, :, self.start :]

    def of_output(self, g: Array) -> Array:
        """Its outputs."""
        return g[self.images] if self.whole else g[self.images, :, self.rows]


def portions(xp: Namespace, x: Array, windows: Windows) -> tuple[list[Portion], Any]:
    """All work in portions whose columns fit the budget, and memory for the columns of any of them."""
    batch, channels = x.shape[:2]
    most, gathered = (COLUMN_BYTES, GATHERED_BYTES) if xp is np else (DEVICE_COLUMN_BYTES, DEVICE_COLUMN_BYTES)
    budget = most // x.itemsize
    rows = windows.outputs[0]
    row = channels * prod(windows.kernel) * prod(windows.outputs[1:])
    images = max(1, gathered // x.itemsize // max(row * rows, 1))
    if row * rows <= budget:
        found = [
            Portion(slice(i, min(i + images, batch)), slice(0, rows), windows, True) for i in range(0, batch, images)
        ]
        return found, xp.empty(min(images, batch) * row * rows, x.dtype)
    step = max(1, budget // row)
    found = [
        Portion(slice(i, i + 1), slice(r, min(r + step, rows)), windows, False)
        for i in range(batch)
        for r in range(0, rows, step)
    ]
    return found, xp.empty(min(step, rows) * row, x.dtype)


def _columns(memory: Array, images: int, channels: int, windows: Windows) -> Array:
    """The beginning of the memory as columns, ``(images, channels, taps, outputs)``."""
    shape = (images, channels, prod(windows.kernel), prod(windows.outputs))
    return memory[: prod(shape)].reshape(shape)


def unroll(xp: Namespace, x: Array, windows: Windows, memory: Array) -> Array:
    """The columns of a portion of padded images, in the memory given."""
    columns = _columns(memory, x.shape[0], x.shape[1], windows)
    steps = x.strides[2:]
    shown = xp.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *windows.kernel, *windows.outputs),
        (
            *x.strides[:2],
            *(step * d for step, d in zip(steps, windows.dilation, strict=True)),
            *(step * s for step, s in zip(steps, windows.stride, strict=True)),
        ),
    )
    columns.reshape(shown.shape)[...] = shown
    return columns


def roll(columns: Array, windows: Windows, target: Any) -> None:
    """Add columns up where they came from, in padded images; the transpose of :func:`unroll`."""
    parts = columns.reshape(*target.shape[:2], prod(windows.kernel), *windows.outputs)
    for i, (_, where) in enumerate(windows.taps()):
        target[(..., *where)] += parts[:, :, i]


def forward(xp: Namespace, x: Array, weight: Array, windows: Windows, groups: int, bias: Array | None = None) -> Array:
    """The convolution: ``(batch, made, outputs)``. The bias is added while results are in the cache."""
    batch, channels = x.shape[:2]
    made = weight.shape[0]
    if not x.size or not weight.size:  # however many taps there would be
        return _with_bias(xp.zeros((batch, made, *windows.outputs), x.dtype), bias)
    rows = weight.reshape(groups, made // groups, prod(weight.shape[1:]))
    out = xp.empty((batch, made, *windows.outputs), x.dtype)
    if windows.pointwise:
        images = x.reshape(batch, groups, channels // groups, prod(x.shape[2:]))
        xp.matmul(rows, images, out=out.reshape(batch, groups, made // groups, images.shape[3]))
        return _with_bias(out, bias)
    x = windows.pad(xp, x)
    if channels == groups and groups > 1:
        _depthwise(xp, x, weight, windows, out)
        return _with_bias(out, bias)
    work, memory = portions(xp, x, windows)
    laid = out.reshape(batch, groups, made // groups, prod(windows.outputs))
    for portion in work:
        columns = unroll(xp, portion.of_input(x), portion.windows, memory)
        columns = columns.reshape(columns.shape[0], groups, rows.shape[2], columns.shape[3])
        into = portion.of_output(out)
        if portion.whole:
            xp.matmul(rows, columns, out=laid[portion.images])
        else:
            into[...] = xp.matmul(rows, columns).reshape(into.shape)
        _with_bias(into, bias)
    return out


def _tiles(xp: Namespace, x: Array) -> Iterator[tuple[slice, slice]]:
    """Images and channels in portions that fit the budget; a GPU takes all at once."""
    batch, channels = x.shape[:2]
    each = max(1, COLUMN_BYTES // 4 // max(prod(x.shape[2:]) * x.itemsize, 1))
    if xp is not np:
        yield slice(0, batch), slice(0, channels)
        return
    for i in range(batch):
        for first in range(0, channels, each):
            yield slice(i, i + 1), slice(first, min(first + each, channels))


def _depthwise(xp: Namespace, x: Array, weight: Array, windows: Windows, out: Array) -> None:
    """One channel a group: products with single numbers, for which a matrix product would be a detour."""
    batch, channels = x.shape[:2]
    target = out.reshape(batch, channels, weight.shape[0] // channels, *windows.outputs)
    factors = weight.reshape(channels, target.shape[2], prod(windows.kernel), *([1] * len(windows.kernel)))
    for tile in _tiles(xp, x):
        images, into, own = x[tile], target[tile], factors[tile[1]]
        into[...] = 0
        scratch = xp.empty_like(into)
        for i, (_, where) in enumerate(windows.taps()):
            xp.multiply(images[(slice(None), slice(None), None, *where)], own[:, :, i], out=scratch)
            into += scratch


def _depthwise_weight(xp: Namespace, g: Array, x: Array, windows: Windows) -> Array:
    """The gradient for the weight, ``(channels, taps)``, where each channel is a group with one output."""
    total = xp.zeros((x.shape[1], prod(windows.kernel)), g.dtype)
    axes = "abcde"[: g.ndim]
    for tile in _tiles(xp, x):
        images: Any = x[tile]
        part = g[tile]
        for i, (_, where) in enumerate(windows.taps()):
            total[tile[1], i] += xp.einsum(f"{axes},{axes}->b", part, images[(..., *where)])
    return total


def input_gradient(xp: Namespace, g: Array, weight: Array, windows: Windows, groups: int) -> Array:
    """The gradient for the input: ``(batch, channels, extents)``."""
    batch, made = g.shape[:2]
    channels = weight.shape[1] * groups
    if not g.size or not weight.size:
        return xp.zeros((batch, channels, *windows.extents), g.dtype)
    grouped = weight.reshape(groups, made // groups, channels // groups, prod(windows.kernel))
    if windows.pointwise:
        flat = (batch, groups, made // groups, prod(windows.outputs))
        return xp.matmul(grouped[..., 0].swapaxes(1, 2), g.reshape(flat)).reshape(batch, channels, *windows.extents)
    mirrored = windows.mirrored()
    if mirrored is not None and made <= 2 * channels:
        # Unrolling costs less than half of adding columns up.
        flipped = grouped[..., ::-1].swapaxes(1, 2).reshape(channels, made // groups, *windows.kernel)
        return forward(xp, g, flipped, mirrored, groups)
    rows = grouped.reshape(groups, made // groups, weight.shape[1] * prod(windows.kernel)).swapaxes(1, 2)
    target = xp.zeros((batch, channels, *windows.padded), g.dtype)
    work, memory = portions(xp, target, windows)
    for portion in work:
        part = portion.of_output(g)
        columns = _columns(memory, part.shape[0], channels, portion.windows)
        grouped = columns.reshape(columns.shape[0], groups, rows.shape[1], columns.shape[3])
        xp.matmul(rows, part.reshape(part.shape[0], groups, made // groups, columns.shape[3]), out=grouped)
        roll(columns, portion.windows, portion.of_input(target))
    return target[(..., *windows.inside)]


def weight_gradient(xp: Namespace, g: Array, x: Array, windows: Windows, groups: int) -> Array:
    """The gradient for the weight: ``(made, channels / groups, kernel)``."""
    batch, channels = x.shape[:2]
    made = g.shape[1]
    if not g.size or not x.size:
        return xp.zeros((made, channels // groups, *windows.kernel), g.dtype)
    if channels == made == groups and groups > 1:
        return _depthwise_weight(xp, g, windows.pad(xp, x), windows).reshape(made, 1, *windows.kernel)
    total = xp.zeros((groups, made // groups, channels // groups * prod(windows.kernel)), g.dtype)
    x = windows.pad(xp, x)
    work, memory = portions(xp, x, windows)
    for portion in work:
        part, seen = portion.of_output(g), portion.of_input(x)
        columns = seen if windows.pointwise and portion.whole else unroll(xp, seen, portion.windows, memory)
        outputs = prod(portion.windows.outputs)
        columns = columns.reshape(part.shape[0], groups, total.shape[2], outputs)
        part = part.reshape(part.shape[0], groups, made // groups, outputs)
        total += xp.matmul(part, columns.swapaxes(-1, -2)).sum(axis=0)
    return total.reshape(made, channels // groups, *windows.kernel)


@kernel("conv1d", "conv2d", "conv3d")
def conv(
    xp: Namespace, x: Array, weight: Array, bias: Array | None, stride: int | tuple[int, ...],
    padding: int | str | tuple[int, ...], dilation: int | tuple[int, ...], groups: int,
) -> Array:  # fmt: skip
    geometry = Geometry("conv", weight.shape[2:], stride, padding, dilation)
    x = _batch(x, weight.ndim)
    outputs = geometry.outputs(x.shape[2:])
    windows = Windows(x.shape[2:], outputs, geometry.kernel, geometry.stride, geometry.before, geometry.dilation)
    return forward(xp, x, weight, windows, groups, bias)


@kernel("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    xp: Namespace, x: Array, weight: Array, bias: Array | None, stride: int | tuple[int, ...],
    padding: int | tuple[int, ...], output_padding: int | tuple[int, ...], groups: int, dilation: int,
) -> Array:  # fmt: skip
    geometry = Geometry("conv_transpose", weight.shape[2:], stride, padding, dilation)
    x = _batch(x, weight.ndim)
    extents = transposed_extents("conv_transpose", x.shape[2:], geometry, output_padding)
    windows = Windows(extents, x.shape[2:], geometry.kernel, geometry.stride, geometry.before, geometry.dilation)
    return _with_bias(input_gradient(xp, x, weight, windows, groups), bias)


def _batch(x: Array, ndim: int) -> Array:
    return x if x.ndim == ndim else x[None]


def _with_bias(out: Array, bias: Array | None) -> Array:
    if bias is not None:
        out += bias.reshape(-1, *([1] * (out.ndim - 2)))
    return out


@kernel("convolution")
def convolution(
    xp: Namespace, x: Array, weight: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    return forward(xp, x, weight, Windows(x.shape[2:], extents, weight.shape[2:], stride, padding, dilation), groups)


@kernel("convolution_input")
def convolution_input(
    xp: Namespace, g: Array, weight: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    windows = Windows(extents, g.shape[2:], weight.shape[2:], stride, padding, dilation)
    return input_gradient(xp, g, weight, windows, groups)


@kernel("convolution_weight")
def convolution_weight(
    xp: Namespace, g: Array, x: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    return weight_gradient(xp, g, x, Windows(x.shape[2:], g.shape[2:], extents, stride, padding, dilation), groups)


def _rest(s: Saved) -> tuple[int | tuple[int, ...], ...]:
    """The arguments that the primitives share."""
    return s.stride, s.padding, s.dilation, s.groups


derivative(
    "convolution",
    self=("weight", lambda s, g: F.convolution_input(g, conj(s.weight), s.meta("self").shape[2:], *_rest(s))),
    weight=("self", lambda s, g: F.convolution_weight(g, conj(s.self), s.meta("weight").shape[2:], *_rest(s))),
)
derivative(
    "convolution_input",
    grad=("weight", lambda s, g: F.convolution(g, conj(s.weight), s.meta("grad").shape[2:], *_rest(s))),
    weight=("grad", lambda s, g: F.convolution_weight(conj(s.grad), g, s.meta("weight").shape[2:], *_rest(s))),
)
derivative(
    "convolution_weight",
    grad=("self", lambda s, g: F.convolution(conj(s.self), g, s.meta("grad").shape[2:], *_rest(s))),
    self=("grad", lambda s, g: F.convolution_input(conj(s.grad), g, s.meta("self").shape[2:], *_rest(s))),
)


def _shared(s: Saved) -> tuple[int | tuple[int, ...], ...]:
    """The arguments that the primitives share, from a convolution as the user called it."""
    geometry = Geometry("conv", s.meta("weight").shape[2:], s.stride, s.padding, s.dilation)
    return geometry.stride, geometry.before, geometry.dilation, s.groups


def _batched(s: Saved, x: Tensor) -> Tensor:
    return x if x.ndim == s.meta("weight").ndim else F.unsqueeze(x, 0)


def _as_given(s: Saved, x: Tensor) -> Tensor:
    """A gradient for the input, without the batch dimension if the input had none."""
    return x if s.meta("self").ndim == x.ndim else F.squeeze(x, 0)


def _extents(s: Saved, name: str) -> Ints:
    """The spatial extents of an operand."""
    shape: Ints = s.meta(name).shape
    return shape[-(s.meta("weight").ndim - 2) :]


def _bias(s: Saved, g: Tensor) -> Tensor:
    channel = g.ndim - (s.meta("weight").ndim - 1)
    summed: Tensor = F.sum(g, tuple(i for i in range(g.ndim) if i != channel))
    return summed


def _conv_input(s: Saved, g: Tensor) -> Tensor:
    g = _batched(s, g)
    return _as_given(s, F.convolution_input(g, conj(s.weight), _extents(s, "self"), *_shared(s)))


def _conv_weight(s: Saved, g: Tensor) -> Tensor:
    x = conj(_batched(s, s.self))
    weight: Tensor = F.convolution_weight(_batched(s, g), x, _extents(s, "weight"), *_shared(s))
    return weight


def _transpose_input(s: Saved, g: Tensor) -> Tensor:
    g = _batched(s, g)
    return _as_given(s, F.convolution(g, conj(s.weight), _extents(s, "self"), *_shared(s)))


def _transpose_weight(s: Saved, g: Tensor) -> Tensor:
    x = conj(_batched(s, s.self))
    weight: Tensor = F.convolution_weight(x, _batched(s, g), _extents(s, "weight"), *_shared(s))
    return weight


for _count in (1, 2, 3):
    derivative(f"conv{_count}d", self=("weight", _conv_input), weight=("self", _conv_weight), bias=_bias)
    derivative(
        f"conv_transpose{_count}d", self=("weight", _transpose_input), weight=("self", _transpose_weight), bias=_bias
    )
