"""Layers that reshape and resize: folding, shuffling, flattening, upsampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from .._core.context.argument_types import Extents
from .._core.modules.module import Module
from .._core.tensor.tensor import Tensor
from . import functional as F


class Fold(Module):
    """Add columns up where their windows lie: ``(N, C * KH * KW, windows)`` gives ``(N, C, *output_size)``."""

    def __init__(
        self,
        output_size: Extents,
        kernel_size: Extents,
        dilation: Extents = 1,
        padding: Extents = 0,
        stride: Extents = 1,
    ) -> None:
        super().__init__()
        self.output_size: Extents = output_size
        self.kernel_size: Extents = kernel_size
        self.dilation: Extents = dilation
        self.padding: Extents = padding
        self.stride: Extents = stride

    def forward(self, input: Tensor) -> Tensor:
        """The images."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {_geometry(self)}"


class Unfold(Module):
    """The windows of images as columns: ``(N, C, H, W)`` gives ``(N, C * KH * KW, windows)``."""

    def __init__(self, kernel_size: Extents, dilation: Extents = 1, padding: Extents = 0, stride: Extents = 1) -> None:
        super().__init__()
        self.kernel_size: Extents = kernel_size
        self.dilation: Extents = dilation
        self.padding: Extents = padding
        self.stride: Extents = stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return _geometry(self)


def _geometry(module: Any) -> str:
    return ", ".join(f"{name}={getattr(module, name)}" for name in ("kernel_size", "dilation", "padding", "stride"))


class PixelShuffle(Module):
    """Channels become the elements of blocks: ``(..., C * r * r, H, W)`` gives ``(..., C, H * r, W * r)``."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor: int = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The larger images."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of :class:`PixelShuffle`: ``(..., C, H * r, W * r)`` gives ``(..., C * r * r, H, W)``."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor: int = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The smaller images."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleave the channels of ``groups`` groups; the shape ``(N, C, ...)`` stays."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups: int = groups

    def forward(self, input: Tensor) -> Tensor:
        """The interleaved channels."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Flatten(Module):
    """Merge the dimensions from ``start_dim`` to ``end_dim`` into one: ``(N, C, H, W)`` gives ``(N, C * H * W)``."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim: int = start_dim
        self.end_dim: int = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The input with those dimensions merged."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split dimension ``dim`` into several; one of ``unflattened_size`` may be -1."""

    def __init__(self, dim: int, unflattened_size: int | Sequence[int | tuple[str, int]]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise ArgumentTypeError(f"dim is an int, not {type(dim).__name__}: named dimensions are not supported")
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(n, int) for n in unflattened_size):
            raise ArgumentTypeError(f"unflattened_size is a sequence of ints, not {unflattened_size!r:.60}")
        self.dim: int = dim
        self.unflattened_size: tuple[Any, ...] | list[Any] = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The input with that dimension split."""
        return input.unflatten(self.dim, tuple(self.unflattened_size))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Upsample(Module):
    """Resize the spatial dimensions of ``(N, C, ...)`` to ``size``, or by ``scale_factor``; see
    :func:`~gradwire.nn.functional.interpolate`."""

    def __init__(
        self, size: Extents | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
        align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name: str = type(self).__name__
        self.size: Extents | None = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None  # type: ignore[arg-type]  # a number
        self.mode: str = mode
        self.align_corners: bool | None = align_corners
        self.recompute_scale_factor: bool | None = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The resized input."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of images with ``mode="nearest"``."""

    def __init__(self, size: Extents | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of images with ``mode="bilinear"`` and ``align_corners=True``."""

    def __init__(self, size: Extents | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
