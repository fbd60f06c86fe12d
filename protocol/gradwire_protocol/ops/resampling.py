"""Resampling: images and volumes in another size, or read at the points of a grid."""

from __future__ import annotations

from math import prod
from typing import Final

from ..accepts import require
from ..autocast import GPU_WIDEST_CPU_FLOAT32
from ..costs import Cost, OpCall
from ..dtypes import FLOATING, uint8
from ..errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, new
from ..shapes import channels_last_stride, common_device
from ..table import Tensor, gradients, op
from .indexing import PLACE

SIZED_MODES: Final = {
    1: ("nearest", "nearest-exact", "linear"),
    2: ("nearest", "nearest-exact", "bilinear", "bicubic"),
    3: ("nearest", "nearest-exact", "trilinear"),
}
"""The modes of :func:`interpolate` by the number of spatial dimensions."""

_NODES: Final = {
    "nearest": "UpsampleNearest{}D", "nearest-exact": "UpsampleNearestExact{}D", "linear": "UpsampleLinear{}D",
    "bilinear": "UpsampleBilinear{}D", "bicubic": "UpsampleBicubic{}D", "trilinear": "UpsampleTrilinear{}D",
}  # fmt: skip


def _check_sizes(name: str, shape: Shape, size: Shape, mode: str, antialias: bool) -> None:
    count = len(size)
    if mode not in SIZED_MODES.get(count, ()):
        raise Unsupported(f"{name}: mode {mode!r} does not resize {count} spatial dimensions")
    if antialias and (count != 2 or mode not in ("bilinear", "bicubic")):
        raise Unsupported(f"{name}: antialias is for the modes 'bilinear' and 'bicubic', not {mode!r}")
    if len(shape) != count + 2:
        raise ShapeError(f"{name}: {count} spatial dimensions are resized to {list(size)}; the shape is {list(shape)}")
    if min(size) <= 0 or min(shape[2:]) <= 0 or shape[1] == 0:
        raise ShapeError(f"{name}: only the batch may be empty, extents {list(shape[1:])} are to become {list(size)}")


def _check_scales(name: str, scales: tuple[float, ...] | None, count: int) -> None:
    if scales is not None and (len(scales) != count or not all(1 / _LARGEST <= scale <= _LARGEST for scale in scales)):
        raise ArgumentError(f"{name}: scales are {count} positive factors, up to 2**62, got {list(scales)}")


_LARGEST: Final = 2.0**62


def _taps(extent: int, outputs: int, mode: str, align_corners: bool, scale: float | None, antialias: bool) -> int:
    """Elements that an output is made of, at most."""
    if mode.startswith("nearest"):
        return 1
    if not antialias:
        return 4 if mode == "bicubic" else 2
    step = extent / outputs if scale is None or align_corners else 1 / scale
    return int(min(extent, 2 * (2 if mode == "bicubic" else 1) * max(step, 1) + 2))


def _returned(taps: int, extent: int, outputs: int, align_corners: bool, scale: float | None) -> int:
    """Outputs that an element is part of, at most."""
    step = extent / outputs if scale is None or align_corners else 1 / scale
    if abs(outputs * step - extent) > 2 * step + 2:  # many of them read the last element
        return outputs
    return int(min(outputs, (taps + 2) / step + taps + 2))


DENSE_TAPS: Final = 8
"""From so many taps on, a dimension may be resized by a product with a dense matrix."""


def _filters(
    extents: Shape, size: Shape, mode: str, align_corners: bool, scales: tuple[float, ...] | None, antialias: bool,
    transposed: bool,
) -> tuple[int, int]:  # fmt: skip
    """(steps for an element, bytes of all filters) of a resizing or of its transpose."""
    steps = nbytes = 0
    for i, (extent, outputs) in enumerate(zip(extents, size, strict=True)):
        scale = None if scales is None else scales[i]
        if extent == outputs and (scale in (None, 1) or align_corners):
            continue
        taps = _taps(extent, outputs, mode, align_corners, scale, antialias)
        nbytes += 48 * outputs * taps
        if transposed:
            taps = _returned(taps, extent, outputs, align_corners, scale)
            nbytes += 16 * extent * taps
        if taps >= DENSE_TAPS:
            nbytes += 16 * extent * outputs
            taps = outputs if transposed else extent
        steps += taps
    return steps, nbytes


def _largest(self: Meta, shape: Shape) -> int:
    """Elements of what lies between one dimension and the next, at most."""
    return prod(max(n, m) for n, m in zip(self.shape, shape, strict=True))


def _steps(c: OpCall, given: Meta, extents: Shape, size: Shape, transposed: bool) -> int:
    each, _ = _filters(extents, size, c.mode, c.align_corners, c.scales, c.antialias, transposed)
    return c.elements + each * max(_largest(given, c.outs[0].shape), 0)


@op(
    grad_fn="UpsampleBackward0", exposed=(), linear=True,
    cost=Cost(lambda c: _steps(c, c.self, c.self.shape[2:], c.size, False)),
)  # fmt: skip
@gradients("interpolate_backward(grad)")
def interpolate(
    self: Tensor, size: tuple[int, ...], mode: str = "nearest", align_corners: bool = False,
    scales: tuple[float, ...] | None = None, antialias: bool = False,
) -> Inference:  # fmt: skip
    """``(N, C, ...)`` with its spatial dimensions resized to ``size``.

    ``mode`` is ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (one dimension), ``"bilinear"``, ``"bicubic"`` (two),
    or ``"trilinear"`` (three). Pixels are squares whose outer edges are aligned; with ``align_corners`` the centers of
    the corner pixels are. ``scales`` says by which factor each dimension grows where that is not the ratio of the
    sizes. ``antialias`` widens the filter where an image shrinks (``"bilinear"``, ``"bicubic"``). The cubic is that of
    Keys (1981) with a = -0.75, -0.5 with ``antialias``. Floating point and uint8.
    """
    _check_sizes("interpolate", self.shape, size, mode, antialias)
    _check_scales("interpolate", scales, len(size))
    if not self.dtype.is_floating_point and self.dtype is not uint8:
        raise Unsupported(f"interpolate is not defined on {self.dtype.name}")
    shape = (*self.shape[:2], *size)
    node = _NODES[mode].format(len(size)) + ("AaBackward0" if antialias else "Backward0")
    stride = channels_last_stride(self, shape)
    found = new(shape, self.dtype, self.device, compute=self.dtype, stride=stride, grad_fn=node)
    _, nbytes = _filters(self.shape[2:], size, mode, align_corners, scales, antialias, False)
    return _between(found, self, shape, nbytes)


def _resized(mode: str, dimensions: int) -> str:
    """The derivative of a gradient of :func:`interpolate`: that again, whose node is called after the mode."""
    return f"interpolate.{_NODES[mode].format(dimensions)}Backward0(grad0)"


@op(
    grad_fn="UpsampleBackwardBackward0", exposed=(), linear=True,
    cost=Cost(lambda c: _steps(c, c.grad, c.extents, c.grad.shape[2:], True)),
)  # fmt: skip
@gradients(
    "(interpolate.UpsampleBicubic2DAaBackward0(grad0) if mode == 'bicubic'"
    " else interpolate.UpsampleBilinear2DAaBackward0(grad0)) if antialias"
    f" else {_resized('bilinear', 2)} if mode == 'bilinear' else {_resized('bicubic', 2)} if mode == 'bicubic'"
    f" else {_resized('linear', 1)} if mode == 'linear' else {_resized('trilinear', 3)} if mode == 'trilinear'"
    f" else ({_resized('nearest', 2)} if grad.ndim == 4 else {_resized('nearest', 1)} if grad.ndim == 3"
    f" else {_resized('nearest', 3)}) if mode == 'nearest'"
    f" else {_resized('nearest-exact', 2)} if grad.ndim == 4 else {_resized('nearest-exact', 1)} if grad.ndim == 3"
    f" else {_resized('nearest-exact', 3)}"
)
def interpolate_backward(
    grad: Tensor, extents: tuple[int, ...], mode: str, align_corners: bool, scales: tuple[float, ...] | None,
    antialias: bool,
) -> Inference:  # fmt: skip
    """The transpose of :func:`interpolate`: a gradient for its result, laid onto an input of these spatial extents."""
    shape = (*grad.shape[:2], *extents)
    _check_sizes("interpolate_backward", shape, grad.shape[2:], mode, antialias)
    _check_scales("interpolate_backward", scales, len(extents))
    require("interpolate_backward", grad.dtype, (FLOATING,))
    _, nbytes = _filters(extents, grad.shape[2:], mode, align_corners, scales, antialias, True)
    return _between(new(shape, grad.dtype, grad.device, compute=grad.dtype), grad, shape, nbytes)


def _between(found: Inference, self: Meta, shape: Shape, filters: int) -> Inference:
    """Dimensions are resized one after the other: what lies between needs memory, and so do the filters."""
    found.scratch = 2 * _largest(self, shape) * max(self.dtype.itemsize, 4) + filters
    return found


# Grids. A sample is a product of weights, one per spatial dimension, and so are its derivatives: ``orders`` says how
# often each weight has been differentiated, and the two primitives below are closed under differentiation.

GRID_MODES: Final = ("bilinear", "nearest", "bicubic")
PADDING_MODES: Final = ("zeros", "border", "reflection")


def _check_grid(name: str, shape: Shape, grid: Meta, mode: str, padding_mode: str) -> int:
    count = len(shape) - 2
    if count not in (2, 3) or grid.ndim != count + 2:
        raise ShapeError(f"{name}: an input of shape {list(shape)} does not match a grid of {list(grid.shape)}")
    if grid.shape[0] != shape[0] or grid.shape[-1] != count:
        raise ShapeError(
            f"{name}: for an input of shape {list(shape)} a grid has shape [{shape[0]}, ..., {count}], not "
            f"{list(grid.shape)}"
        )
    if min(shape[2:]) <= 0:
        raise ShapeError(f"{name}: the input has no elements to read; its shape is {list(shape)}")
    if mode not in GRID_MODES:
        raise ArgumentError(f"{name}: mode must be {', '.join(map(repr, GRID_MODES))}, not {mode!r}")
    if padding_mode not in PADDING_MODES:
        raise ArgumentError(f"{name}: padding_mode must be {', '.join(map(repr, PADDING_MODES))}, not {padding_mode!r}")
    if mode == "bicubic" and count == 3:
        raise ArgumentError(f"{name}: mode 'bicubic' is for images, the input has shape {list(shape)}")
    return count


def _need_one_dtype(name: str, self: Meta, grid: Meta) -> None:
    if self.dtype is not grid.dtype:
        raise DTypeError(f"{name} does not promote: the input is {self.dtype.name}, the grid {grid.dtype.name}")
    if not self.dtype.is_floating_point:
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")


@op(grad_fn="GridSampler2DBackward0", exposed=(), autocast=GPU_WIDEST_CPU_FLOAT32)
@gradients(
    self="grid_spread(grad, grid)",
    grid=(
        "c if mode == 'nearest' else stack((s := sum_dim(grad * grid_gather(self, grid))), s, s)"
        " if grid.ndim > 4 else stack(s, s)"
    ),
)
def grid_sampler(
    self: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Inference:
    """Read ``(N, C, H, W)`` or ``(N, C, D, H, W)`` at the points of a grid ``(N, ..., 2 or 3)``: ``(N, C, ...)``.

    A point is (x, y) or (x, y, z), from -1 to 1 across the input: between the outer edges of its corner elements, or
    with ``align_corners`` between their centers. ``padding_mode`` says what lies beyond: ``"zeros"``, the ``"border"``
    or a ``"reflection"``. ``mode`` is ``"bilinear"`` (in volumes trilinear), ``"nearest"``, or for images
    ``"bicubic"``. Floating point, one dtype.
    """
    count = _check_grid("grid_sampler", self.shape, grid, mode, padding_mode)
    _need_one_dtype("grid_sampler", self, grid)
    shape = (*self.shape[:2], *grid.shape[1:-1])
    device = common_device(self, grid)
    node = f"GridSampler{count}DBackward0"
    return _gathered(new(shape, self.dtype, device, compute=self.dtype, grad_fn=node), grid, mode)


@op(grad_fn="GridGatherBackward0", exposed=())
@gradients(self="grid_spread(grad, grid)", grid="stack((s := sum_dim(grad * grid_gather(self, grid))), s)")
def grid_gather(
    self: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool, orders: tuple[int, ...]
) -> Inference:
    """:func:`grid_sampler`, differentiated ``orders[i]`` times by the i-th coordinate of each point."""
    count = _check_grid("grid_gather", self.shape, grid, mode, padding_mode)
    _check_orders("grid_gather", orders, count)
    _need_one_dtype("grid_gather", self, grid)
    shape = (*self.shape[:2], *grid.shape[1:-1])
    return _gathered(new(shape, self.dtype, common_device(self, grid), compute=self.dtype), grid, mode)


@op(grad_fn="GridSpreadBackward0", exposed=())
@gradients(grad="(s := grid_gather(grad0, grid))", grid="stack((t := sum_dim(grad * s)), t)")
def grid_spread(
    grad: Tensor, grid: Tensor, extents: tuple[int, ...], mode: str, padding_mode: str, align_corners: bool,
    orders: tuple[int, ...],
) -> Inference:  # fmt: skip
    """The transpose of :func:`grid_gather` for its input, whose spatial extents are given."""
    shape = (*grad.shape[:2], *extents)
    count = _check_grid("grid_spread", shape, grid, mode, padding_mode)
    _check_orders("grid_spread", orders, count)
    _need_one_dtype("grid_spread", grad, grid)
    if grad.shape[2:] != grid.shape[1:-1]:
        raise ShapeError(f"grid_spread: shapes {list(grad.shape)} and {list(grid.shape)} do not match")
    found = _gathered(new(shape, grad.dtype, common_device(grad, grid), compute=grad.dtype), grid, mode)
    found.scratch += PLACE * max(grad.numel, 0)
    return found


def _check_orders(name: str, orders: tuple[int, ...], count: int) -> None:
    if len(orders) != count or not all(0 <= order <= _MOST_OFTEN for order in orders):
        raise ArgumentError(f"{name}: orders are {count} numbers from 0 to {_MOST_OFTEN}, got {list(orders)}")


_MOST_OFTEN: Final = 64
"""How often a weight can be differentiated."""


def _gathered(found: Inference, grid: Meta, mode: str) -> Inference:
    """Weights and places are held for one corner of all cells at a time; a cubic has four of them a dimension."""
    points = max(grid.numel, 0)
    found.scratch = points * 8 * (12 if mode == "bicubic" else 8) + 2 * found.outs[0].nbytes
    return found


@op(grad_fn="AffineGridGeneratorBackward0", exposed=("function",), linear=True)
@gradients("affine_grid_generator_backward(grad)")
def affine_grid_generator(theta: Tensor, size: tuple[int, ...], align_corners: bool) -> Inference:
    """The grid of an affine map, for :func:`grid_sampler`: matrices ``(N, 2, 3)`` and a size ``(N, C, H, W)`` give
    ``(N, H, W, 2)``; ``(N, 3, 4)`` and ``(N, C, D, H, W)`` give ``(N, D, H, W, 3)``.

    Each matrix is applied to the points, (x, y, 1) or (x, y, z, 1), at the centers of an image's elements.
    """
    count = len(size) - 2
    if count not in (2, 3):
        raise ShapeError(f"affine_grid_generator: a size has 4 or 5 extents, got {list(size)}")
    if theta.shape != (size[0], count, count + 1):
        raise ShapeError(
            f"affine_grid_generator: for size {list(size)} theta has shape {[size[0], count, count + 1]}, not "
            f"{list(theta.shape)}"
        )
    if min(size) <= 0:
        raise ShapeError(f"affine_grid_generator: extents must be positive, got {list(size)}")
    if not theta.dtype.is_floating_point:
        raise ArgumentTypeError(f"affine_grid_generator takes floating point matrices, not {theta.dtype.name}")
    return new((size[0], *size[2:], count), theta.dtype, theta.device, compute=theta.dtype)


@op(grad_fn="AffineGridGeneratorBackwardBackward0", exposed=(), linear=True)
@gradients("affine_grid_generator(grad0)")
def affine_grid_generator_backward(grad: Tensor, size: tuple[int, ...], align_corners: bool) -> Inference:
    """The transpose of :func:`affine_grid_generator`: matrices from a gradient for a grid."""
    count = len(size) - 2
    require("affine_grid_generator_backward", grad.dtype, (FLOATING,))
    if count not in (2, 3) or min(size) <= 0 or grad.shape != (size[0], *size[2:], count):
        raise ShapeError(
            f"affine_grid_generator_backward: shape {list(grad.shape)} is not that of a grid for {list(size)}"
        )
    return new((size[0], count, count + 1), grad.dtype, grad.device, compute=grad.dtype)
