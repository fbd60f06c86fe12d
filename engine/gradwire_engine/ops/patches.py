"""Blocks of images, as the windows of a convolution or as permutations."""

from __future__ import annotations

from math import prod

import numpy as np

from gradwire_protocol.ops.convolution import spatial
from gradwire_protocol.ops.patches import patch_geometry

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.windows import Ints, Windows
from ..runtime.arrays import Array, Namespace
from .convolution import roll, unroll


def _windows(
    extents: Ints, kernel_size: int | tuple[int, ...], dilation: int | tuple[int, ...], padding: int | tuple[int, ...],
    stride: int | tuple[int, ...],
) -> Windows:  # fmt: skip
    found = patch_geometry("im2col", kernel_size, dilation, padding, stride)
    return Windows(extents, found.outputs(extents), found.kernel, found.stride, found.before, found.dilation)


@kernel("im2col")
def im2col(
    xp: Namespace, x: Array, kernel_size: int | tuple[int, ...], dilation: int | tuple[int, ...],
    padding: int | tuple[int, ...], stride: int | tuple[int, ...],
) -> Array:  # fmt: skip
    images = x.reshape(-1, *x.shape[-3:])
    windows = _windows(x.shape[-2:], kernel_size, dilation, padding, stride)
    rows, outputs = x.shape[-3] * prod(windows.kernel), prod(windows.outputs)
    memory = xp.empty(len(images) * rows * outputs, x.dtype)
    columns = unroll(xp, xp.ascontiguousarray(windows.pad(xp, images)), windows, memory)
    return columns.reshape((*x.shape[:-3], rows, outputs))


@kernel("col2im")
def col2im(
    xp: Namespace, x: Array, output_size: tuple[int, ...], kernel_size: int | tuple[int, ...],
    dilation: int | tuple[int, ...], padding: int | tuple[int, ...], stride: int | tuple[int, ...],
) -> Array:  # fmt: skip
    extents = spatial("col2im", output_size, 2, "output_size")
    windows = _windows(extents, kernel_size, dilation, padding, stride)
    channels = x.shape[-2] // prod(windows.kernel)
    columns = x.reshape((-1, channels, prod(windows.kernel), x.shape[-1]))
    target = xp.zeros((len(columns), channels, *windows.padded), np.int64 if x.dtype.kind == "b" else x.dtype)
    roll(columns, windows, target)
    image = target[(..., *windows.inside)].reshape((*x.shape[:-2], channels, *extents))
    return image != 0 if x.dtype.kind == "b" else image


def _how(s: Saved) -> tuple[int | tuple[int, int], ...]:
    return s.kernel_size, s.dilation, s.padding, s.stride


derivative("im2col", self=lambda s, g: F.col2im(g, tuple(s.meta("self").shape[-2:]), *_how(s)))
derivative("col2im", self=lambda s, g: F.im2col(g, *_how(s)))


@kernel("pixel_shuffle", half=True)
def pixel_shuffle(xp: Namespace, x: Array, upscale_factor: int) -> Array:
    r = upscale_factor
    *lead, c, h, w = x.shape
    blocks = x.reshape(prod(lead), c // (r * r), r, r, h, w)
    return blocks.transpose(0, 1, 4, 2, 5, 3).reshape((*lead, c // (r * r), h * r, w * r))


@kernel("pixel_unshuffle", half=True)
def pixel_unshuffle(xp: Namespace, x: Array, downscale_factor: int) -> Array:
    r = downscale_factor
    *lead, c, h, w = x.shape
    blocks = x.reshape(prod(lead), c, h // r, r, w // r, r)
    return blocks.transpose(0, 1, 3, 5, 2, 4).reshape((*lead, c * r * r, h // r, w // r))


@kernel("channel_shuffle", half=True)
def channel_shuffle(xp: Namespace, x: Array, groups: int) -> Array:
    n, c = x.shape[:2]
    rest = prod(x.shape[2:])
    return x.reshape(n, groups, c // groups, rest).swapaxes(1, 2).reshape(x.shape)


def _by_channel_shuffle(s: Saved, g: Tensor) -> Tensor:
    return F.channel_shuffle(g, max(g.shape[1] // s.groups, 1))


derivative("pixel_shuffle", self=lambda s, g: F.pixel_unshuffle(g, s.upscale_factor))
derivative("pixel_unshuffle", self=lambda s, g: F.pixel_shuffle(g, s.downscale_factor))
derivative("channel_shuffle", self=_by_channel_shuffle)
