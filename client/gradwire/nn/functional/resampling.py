"""Images and volumes in another size, or read at the points of a grid."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, Unsupported

from ..._core.context.argument_types import Extents
from ..._core.dispatch.dispatch import call
from ..._core.tensor.tensor import Tensor

__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_ALIGNABLE = ("linear", "bilinear", "bicubic", "trilinear")
_MODES = {
    3: ("nearest", "nearest-exact", "area", "linear"),
    4: ("nearest", "nearest-exact", "area", "bilinear", "bicubic"),
    5: ("nearest", "nearest-exact", "area", "trilinear"),
}


def _sizes(size: Any, count: int) -> tuple[int, ...]:
    if not isinstance(size, (tuple, list)):
        size = (size,) * count
    if len(size) != count:
        raise ArgumentValueError(f"interpolate: size {list(size)} is not for {count} spatial dimensions")
    for n in size:
        if isinstance(n, bool) or not hasattr(n, "__index__") or (isinstance(n, Tensor) and not _is_int(n)):
            raise ArgumentTypeError(f"interpolate: size is int or a sequence of them, got {n!r:.40} in it")
    return tuple(int(n) for n in size)


def _is_int(tensor: Tensor) -> bool:
    return tensor.ndim == 0 and not tensor.is_floating_point() and not tensor.is_complex()


def _factors(scale_factor: Any, count: int) -> tuple[float, ...]:
    if not isinstance(scale_factor, (tuple, list)):
        scale_factor = (scale_factor,) * count
    if len(scale_factor) != count:
        raise ArgumentValueError(
            f"interpolate: scale_factor {list(scale_factor)} is not for {count} spatial dimensions"
        )
    return tuple(float(f) for f in scale_factor)


def _scaled(extent: int, factor: float) -> int:
    scaled = extent * factor
    if not abs(scaled) < 2.0**63:
        raise ArgumentError(f"interpolate: an extent of {extent} times {factor} is {scaled}, which is no extent")
    return math.floor(scaled)


def interpolate(
    input: Tensor, size: Extents | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resize the spatial dimensions of ``(N, C, ...)``, of which there are one to three.

    Args:
        size: the new extents, one or one per dimension. Either this or ``scale_factor``.
        scale_factor: by which the extents grow, one or one per dimension; the results are rounded down.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"``; ``"linear"``, ``"bilinear"``, ``"bicubic"`` or
            ``"trilinear"``, as the number of dimensions allows.
        align_corners: align the centers of the corner elements rather than their outer edges.
        recompute_scale_factor: use the ratio of the extents instead of ``scale_factor`` to place elements.
        antialias: widen the filter where the image shrinks (``"bilinear"`` and ``"bicubic"``).

    Raises:
        ValueError: for arguments that exclude each other, or another number of them than of dimensions.
        NotImplementedError: for a mode that the number of dimensions does not have.
    """
    if mode not in _ALIGNABLE and align_corners is not None:
        raise ArgumentValueError(f"interpolate: align_corners is for {', '.join(_ALIGNABLE)}, not for {mode!r}")
    count = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ArgumentValueError("interpolate takes size or scale_factor, and not both")
    factors = None
    if size is not None:
        if recompute_scale_factor:
            raise ArgumentValueError("interpolate: recompute_scale_factor goes with scale_factor, not with size")
        outputs = _sizes(size, count)
    else:
        factors = _factors(scale_factor, count)
        outputs = tuple(_scaled(n, f) for n, f in zip(input.shape[2:], factors, strict=True))
        if recompute_scale_factor or mode == "area":
            factors = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ArgumentValueError("interpolate: antialias is for 'bilinear' and 'bicubic' on four dimensions")
    if mode not in _MODES.get(input.ndim, ()):
        raise Unsupported(f"interpolate: mode {mode!r} is not defined for an input of {input.ndim} dimensions")
    if mode == "area":
        return call(f"adaptive_avg_pool{count}d", input, outputs)
    return call("interpolate", input, outputs, mode, bool(align_corners), factors, bool(antialias))


def upsample(
    input: Tensor,
    size: Extents | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The former name of :func:`interpolate`."""
    warnings.warn("upsample is called interpolate now", UserWarning, stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Extents | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """:func:`interpolate` with ``mode="nearest"``."""
    warnings.warn("upsample_nearest is interpolate(mode='nearest') now", UserWarning, stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: Extents | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """:func:`interpolate` with ``mode="bilinear"`` and ``align_corners=True``."""
    warnings.warn("upsample_bilinear is interpolate(mode='bilinear', align_corners=True) now", UserWarning, 2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Read ``(N, C, H, W)`` or ``(N, C, D, H, W)`` at the points of a grid, ``(N, ..., 2 or 3)``: ``(N, C, ...)``.

    Points are (x, y) or (x, y, z) in the range from -1 to 1, which spans the input: its outer edges, or with
    ``align_corners`` the centers of its corner elements.

    Args:
        mode: ``"bilinear"``, ``"nearest"``, or for images ``"bicubic"``.
        padding_mode: what lies beyond the input: ``"zeros"``, its ``"border"``, or its ``"reflection"``.

    Raises:
        ValueError: for another mode or padding mode.
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentValueError(f"grid_sample: mode is 'bilinear', 'nearest' or 'bicubic', not {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentValueError(
            f"grid_sample: padding_mode is 'zeros', 'border' or 'reflection', not {padding_mode!r}"
        )
    if align_corners is None:
        _warn_unaligned("grid_sample")
    return call("grid_sampler", input, grid, mode, padding_mode, bool(align_corners))


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid that an affine map makes of an image's points, for :func:`grid_sample`.

    Matrices ``(N, 2, 3)`` with a size ``(N, C, H, W)`` give ``(N, H, W, 2)``, ``(N, 3, 4)`` with ``(N, C, D, H, W)``
    give ``(N, D, H, W, 3)``.

    Raises:
        ValueError: for a theta that is not floating point, or shapes that do not fit.
        NotImplementedError: for a size of another length.
    """
    if align_corners is None:
        _warn_unaligned("affine_grid")
        align_corners = False
    if not theta.is_floating_point():
        raise ArgumentValueError(f"affine_grid takes floating point matrices, not {theta.dtype.name}")
    size = tuple(size)
    if len(size) not in (4, 5):
        raise Unsupported(f"affine_grid makes grids for images and volumes: size has 4 or 5 extents, got {list(size)}")
    count = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (count, count + 1):
        raise ArgumentValueError(
            f"affine_grid: for size {list(size)} theta has shape [N, {count}, {count + 1}], not {list(theta.shape)}"
        )
    if min(size) <= 0:
        raise ArgumentValueError(f"affine_grid: extents must be positive, got {list(size)}")
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            f"affine_grid: along an extent of 1 in size {list(size)}, align_corners=True puts the only point at the "
            "center, coordinate 0",
            UserWarning,
            stacklevel=2,
        )
    return call("affine_grid_generator", theta, size, bool(align_corners))


def _warn_unaligned(name: str) -> None:
    warnings.warn(f"{name} without align_corners takes it as False: say so", UserWarning, stacklevel=3)
