"""Blocks of images: windows as columns, and channels exchanged for resolution."""

from __future__ import annotations

from math import prod

from ..dtypes import BOOLEAN
from ..errors import ArgumentError, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, new
from ..shapes import channels_last_stride
from ..table import Tensor, gradients, op
from .convolution import Geometry, Size, spatial

SHUFFLES = ("function", "nn.functional")


def patch_geometry(name: str, kernel: Size, dilation: Size, padding: Size, stride: Size) -> Geometry:
    """The windows of :func:`im2col` and :func:`col2im`, over two dimensions.

    Raises:
        ArgumentError: for a kernel, dilation or stride that is not positive, or a negative padding.
    """
    sizes = spatial(name, kernel, 2, "kernel_size")
    if min(sizes) <= 0:
        raise ArgumentError(f"{name}: kernel_size must be positive, got {list(sizes)}")
    return Geometry(name, sizes, stride, padding, dilation)


def _need_numbers(name: str, self: Meta) -> None:
    if self.dtype.category != BOOLEAN and not (self.dtype.is_floating_point or self.dtype.is_complex):
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")


@op(grad_fn="Im2ColBackward0", exposed=(), linear=True)
@gradients("col2im(grad)")
def im2col(
    self: Tensor, kernel_size: int | tuple[int, ...], dilation: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0, stride: int | tuple[int, ...] = 1,
) -> Inference:  # fmt: skip
    """The windows of ``(N, C, H, W)`` or ``(C, H, W)`` as columns: ``(N, C * KH * KW, windows)``.

    Windows are those of a convolution with this geometry, in row-major order. Bools, floating point and complex.
    """
    geometry = patch_geometry("im2col", kernel_size, dilation, padding, stride)
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise ShapeError(
            f"im2col takes (N, C, H, W) or (C, H, W), of which only N may be 0; the shape is {list(self.shape)}"
        )
    _need_numbers("im2col", self)
    outputs = geometry.outputs(self.shape[-2:])
    if min(outputs) < 1:
        raise ShapeError(
            f"im2col: no window of {list(geometry.kernel)} fits into the padded extents of {list(self.shape)}"
        )
    columns = (self.shape[-3] * prod(geometry.kernel), prod(outputs))
    return new((*self.shape[:-3], *columns), self.dtype, self.device)


@op(grad_fn="Col2ImBackward0", exposed=(), linear=True)
@gradients("im2col(grad)")
def col2im(
    self: Tensor, output_size: tuple[int, ...], kernel_size: int | tuple[int, ...],
    dilation: int | tuple[int, ...] = 1, padding: int | tuple[int, ...] = 0, stride: int | tuple[int, ...] = 1,
) -> Inference:  # fmt: skip
    """The transpose of :func:`im2col`: columns ``(N, C * KH * KW, windows)`` or ``(C * KH * KW, windows)`` added up
    where their windows lie in ``(N, C, *output_size)``."""
    geometry = patch_geometry("col2im", kernel_size, dilation, padding, stride)
    extents = spatial("col2im", output_size, 2, "output_size")
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise ShapeError(f"col2im takes (N, rows, windows) or (rows, windows); the shape is {list(self.shape)}")
    _need_numbers("col2im", self)
    taps = prod(geometry.kernel)
    if self.shape[-2] % taps:
        raise ShapeError(f"col2im: {self.shape[-2]} rows are not a multiple of a window's {taps} elements")
    outputs = geometry.outputs(extents)
    if min(outputs) < 1 or prod(outputs) != self.shape[-1]:
        raise ShapeError(
            f"col2im: an image of {list(extents)} has {list(outputs)} windows of {list(geometry.kernel)}, not "
            f"{self.shape[-1]}"
        )
    return new((*self.shape[:-2], self.shape[-2] // taps, *extents), self.dtype, self.device)


def _need_image(name: str, self: Meta, factor: int, what: str) -> None:
    if self.ndim < 3:
        raise ShapeError(f"{name} takes at least 3 dimensions, (..., C, H, W); the shape is {list(self.shape)}")
    if factor <= 0:
        raise ArgumentError(f"{name}: {what} must be positive, got {factor}")


def _shuffled(self: Meta, shape: Shape) -> Inference:
    return new(shape, self.dtype, self.device, stride=channels_last_stride(self, shape))


@op(grad_fn="PixelShuffleBackward0", exposed=SHUFFLES, linear=True, batched=True)
@gradients("pixel_unshuffle(grad)")
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Inference:
    """``(..., C * r * r, H, W)`` as ``(..., C, H * r, W * r)``: channels become the elements of r x r blocks."""
    r = upscale_factor
    _need_image("pixel_shuffle", self, r, "upscale_factor")
    *lead, c, h, w = self.shape
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle: {c} channels are not a multiple of upscale_factor squared, {r * r}")
    return _shuffled(self, (*lead, c // (r * r), h * r, w * r))


@op(grad_fn="PixelUnshuffleBackward0", exposed=SHUFFLES, linear=True, batched=True)
@gradients("pixel_shuffle(grad)")
def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Inference:
    """The inverse of :func:`pixel_shuffle`: ``(..., C, H * r, W * r)`` as ``(..., C * r * r, H, W)``."""
    r = downscale_factor
    _need_image("pixel_unshuffle", self, r, "downscale_factor")
    *lead, c, h, w = self.shape
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle: extents {h} and {w} are not multiples of downscale_factor, {r}")
    return _shuffled(self, (*lead, c * r * r, h // r, w // r))


@op(grad_fn="ChannelShuffleBackward0", exposed=SHUFFLES, linear=True)
@gradients("channel_shuffle(grad)")
def channel_shuffle(self: Tensor, groups: int) -> Inference:
    """``(N, C, ...)`` with its channels interleaved: the first of each of ``groups`` groups, then the second, ..."""
    if self.ndim < 3:
        raise ShapeError(f"channel_shuffle takes at least 3 dimensions; the shape is {list(self.shape)}")
    if groups <= 0:
        raise ArgumentError(f"channel_shuffle: groups must be positive, got {groups}")
    if self.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: {self.shape[1]} channels cannot be divided into {groups} groups")
    return _shuffled(self, self.shape)
