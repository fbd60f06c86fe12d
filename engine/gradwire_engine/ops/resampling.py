"""Resampling: separable filters for another size, and reading at the points of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Meta

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.filters import filter_taps
from ..numerics.scatter import add_at
from ..numerics.windows import Ints
from ..runtime.arrays import Array, Namespace, Native, native

Scales = tuple[float, ...] | None


@kernel("interpolate")
def interpolate(
    xp: Namespace, x: Array, size: Ints, mode: str, align_corners: bool, scales: Scales, antialias: bool
) -> Array:
    return _resized(xp, x, x.shape[2:], size, (mode, align_corners, scales, antialias), False)


@kernel("interpolate_backward")
def interpolate_backward(
    xp: Namespace, g: Array, extents: Ints, mode: str, align_corners: bool, scales: Scales, antialias: bool
) -> Array:
    return _resized(xp, g, extents, g.shape[2:], (mode, align_corners, scales, antialias), True)


def _resized(xp: Namespace, x: Array, extents: Ints, size: Ints, how: tuple[Any, ...], transposed: bool) -> Array:
    mode, align_corners, scales, antialias = how
    count = len(size)
    if x.dtype.kind == "u" and mode in ("bilinear", "bicubic"):
        return _resized_bytes(xp, x, size, how)
    made = extents if transposed else size
    # Dimensions that shrink go first.
    for i in sorted(range(count), key=lambda i: made[i] / x.shape[2 + i]):
        scale = None if scales is None else scales[i]
        if extents[i] != size[i] or not (scale in (None, 1) or align_corners):
            precise = x.dtype.itemsize > 4
            taps = filter_taps(mode, extents[i], size[i], align_corners, scale, antialias, transposed, precise)
            x = taps.apply(xp, x, 2 + i)
    return x


def _resized_bytes(xp: Namespace, x: Array, size: Ints, how: tuple[Any, ...]) -> Array:
    """Images of bytes, whose rows are rounded before columns are looked at, as image libraries do."""
    mode, align_corners, scales, antialias = how
    for i in (1, 0):
        if x.shape[2 + i] != size[i]:
            scale = None if scales is None else scales[i]
            taps = filter_taps(mode, x.shape[2 + i], size[i], align_corners, scale, antialias, False).in_fixed_point()
            x = xp.clip(xp.floor(taps.apply(xp, x.astype(xp.float64), 2 + i) + 0.5), 0, 255)
    return x.astype(np.uint8)


def _how(s: Saved) -> tuple[bool | str | tuple[float, float] | None, ...]:
    return s.mode, s.align_corners, s.scales, s.antialias


derivative("interpolate", self=lambda s, g: F.interpolate_backward(g, tuple(s.meta("self").shape[2:]), *_how(s)))
derivative("interpolate_backward", grad=lambda s, g: F.interpolate(g, tuple(s.meta("grad").shape[2:]), *_how(s)))


# Grids


def _keys(a: float) -> tuple[tuple[np.poly1d, ...], ...]:
    """The weights of a cubic's four taps as polynomials of the distance from the second, and their derivatives."""
    near = np.poly1d([a + 2, -(a + 3), 0, 1])
    far = np.poly1d([a, -5 * a, 8 * a, -4 * a])
    taps = [far(np.poly1d([1, 1])), near, near(np.poly1d([-1, 1])), far(np.poly1d([-1, 2]))]
    return tuple(tuple(np.polyder(tap, k) for tap in taps) for k in range(4))


CUBIC: Final = _keys(-0.75)


LINES: Final = ((np.poly1d([-1, 1]), np.poly1d([1, 0])), (np.poly1d([-1]), np.poly1d([1])))
"""The same for the two taps of a line."""


def _reflected(xp: Namespace, place: Array, extent: int, align_corners: bool) -> tuple[Array, float]:
    """Coordinates mirrored at the ends of the input as often as it takes, and the sign of their slope."""
    low, high = (0, 2 * (extent - 1)) if align_corners else (-1, 2 * extent - 1)
    if low == high:
        return place * 0, 0.0
    start, span = low / 2, (high - low) / 2
    offset = place - start
    sign = xp.where(offset < 0, -1.0, 1.0).astype(place.dtype)
    offset = xp.abs(offset)
    turns = xp.floor(offset / span)
    rest = offset - turns * span
    odd = turns % 2 == 1
    return xp.where(odd, span - rest, rest) + start, xp.where(odd, -sign, sign)


def _bounded(xp: Namespace, place: Array, extent: int, padding_mode: str, align_corners: bool) -> tuple[Array, Array]:
    """Coordinates moved into the input, and the slope of that: they stay at its border, or mirror at it."""
    slope: Any = 1.0
    if padding_mode == "reflection":
        place, slope = _reflected(xp, place, extent, align_corners)
    last = extent - 1
    inside = (place > 0) & (place < last)
    return xp.where(place > 0, xp.minimum(place, last), 0), slope * inside


def _at(polynomial: np.poly1d, x: Array) -> Array:
    value = x * 0
    for coefficient in polynomial.coeffs.tolist():
        value = value * x + coefficient
    return value


Rounding = Callable[[Any], Any]


def _rounding(dtype: DType) -> Rounding:
    """How coordinates and weights are rounded: a half precision grid's as PyTorch does, to half precision. Their last
    digit decides which elements a point lies between."""
    if not dtype.is_low_precision:
        return lambda x: x
    narrow = native(dtype)
    return lambda x: x.astype(narrow).astype(np.float32)


class _Axis:
    """One coordinate of all points: for each tap, which elements it meets, whether they exist, and with what weight."""

    __slots__ = ("taps",)

    def __init__(
        self, xp: Namespace, coordinate: Array, extent: int, mode: str, padding_mode: str, align_corners: bool,
        order: int, rounded: Rounding,
    ) -> None:  # fmt: skip
        scale = (extent - 1) / 2 if align_corners else extent / 2
        place = rounded(rounded(rounded(coordinate + 1) * scale) - (0 if align_corners else 0.5))
        slope: Any = scale
        if mode != "bicubic" and padding_mode != "zeros":
            place, factor = _bounded(xp, place, extent, padding_mode, align_corners)
            slope = slope * factor
        if mode == "nearest":
            weights = [xp.ones_like(place) if order == 0 else xp.zeros_like(place)]
            first, offsets = xp.rint(place), range(1)
        else:
            first = xp.floor(place)
            offsets = range(2) if mode == "bilinear" else range(-1, 3)
            table = LINES if mode == "bilinear" else CUBIC
            rest = place - first
            weights = [_at(p, rest) if order < len(table) else rest * 0 for p in table[min(order, len(table) - 1)]]
            if order:
                weights = [w * slope**order for w in weights]
        self.taps = []
        for offset, weight in zip(offsets, weights, strict=True):
            at = first + offset
            if mode == "bicubic" and padding_mode != "zeros":
                at, _ = _bounded(xp, at, extent, padding_mode, align_corners)
            exists = (at >= 0) & (at <= extent - 1)
            # An extent may be no float of the grid's precision: a place beside the last element is that.
            place = xp.minimum(xp.where(exists, at, 0).astype(np.int64), extent - 1)
            self.taps.append((place, xp.where(exists, weight, 0)))


def _corners(
    xp: Namespace, grid: Array, extents: Ints, mode: str, padding_mode: str, align_corners: bool, orders: Ints,
    dtype: DType,
) -> Iterator[tuple[Array, Array]]:  # fmt: skip
    """For each corner of the cells that points lie in: the elements it meets, and its weights, one a point."""
    count = len(extents)
    rounded = _rounding(dtype)
    axes = [
        _Axis(xp, grid[..., i], extents[count - 1 - i], mode, padding_mode, align_corners, orders[i], rounded)
        for i in range(count)
    ]
    batch = xp.arange(grid.shape[0]).reshape((-1, *[1] * (grid.ndim - 2))) * prod(extents)
    for corner in product(*(axis.taps for axis in axes)):
        element: Any = batch
        weight: Any = None
        step = 1
        for (at, w), extent in zip(corner, reversed(extents), strict=True):
            element = element + at * step
            step *= extent
            weight = w if weight is None else rounded(weight * w)
        yield element.reshape(-1), weight.reshape(-1)


def _as_planes(xp: Namespace, x: Array) -> Array:
    """``(N, C, ...)`` as one row of all images' elements for each channel: what is read many times stays in a cache."""
    return xp.ascontiguousarray(xp.moveaxis(x, 1, 0)).reshape(x.shape[1], x.shape[0] * prod(x.shape[2:]))


def _from_planes(xp: Namespace, planes: Array, batch: int, extents: Ints) -> Array:
    return xp.moveaxis(planes.reshape(len(planes), batch, *extents), 0, 1)


@kernel("grid_gather", announced=True)
def grid_gather(
    xp: Namespace, out: Meta, x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool, orders: Ints
) -> Array:
    planes = _as_planes(xp, x)
    found = xp.zeros((x.shape[1], prod(grid.shape[:-1])), x.dtype)
    for places, weights in _corners(xp, grid, x.shape[2:], mode, padding_mode, align_corners, orders, out.dtype):
        part = xp.take(planes, places, axis=1)
        part *= weights.astype(x.dtype)
        found += part
    return _from_planes(xp, found, x.shape[0], grid.shape[1:-1])


@kernel("grid_sampler", announced=True)
def grid_sampler(
    xp: Namespace, out: Meta, x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool
) -> Array:
    return grid_gather(xp, out, x, grid, mode, padding_mode, align_corners, (0,) * grid.shape[-1])


@kernel("grid_spread", announced=True)
def grid_spread(
    xp: Namespace, out: Meta, g: Array, grid: Array, extents: Ints, mode: str, padding_mode: str, align_corners: bool,
    orders: Ints,
) -> Array:  # fmt: skip
    planes = _as_planes(xp, g)
    found = xp.zeros((g.shape[1], g.shape[0] * prod(extents)), g.dtype)
    starts = xp.arange(g.shape[1])[:, None] * found.shape[1]
    for places, weights in _corners(xp, grid, extents, mode, padding_mode, align_corners, orders, out.dtype):
        add_at(xp, found, starts + places, planes * weights.astype(g.dtype))
    return _from_planes(xp, found, g.shape[0], extents)


def _sampling(s: Saved) -> tuple[bool | str, ...]:
    return s.mode, s.padding_mode, s.align_corners


def _by_points(s: Saved, values: Tensor, x: Tensor, orders: Ints) -> Tensor:
    """The gradient for a grid: how ``values`` change what is read from ``x``, coordinate by coordinate."""
    if s.mode == "nearest":
        return F.zeros_like(s.grid)
    parts = []
    for i in range(len(orders)):
        further = tuple(order + (i == k) for k, order in enumerate(orders))
        slopes = F.grid_gather(x, s.grid, *_sampling(s), further)
        parts.append(F.sum(values * slopes, (1,)))
    return F.stack(parts, -1)


def _first(s: Saved) -> Ints:
    return (0,) * (s.meta("self").ndim - 2)


def _spread(s: Saved, g: Tensor, orders: Ints) -> Tensor:
    return F.grid_spread(g, s.grid, tuple(s.meta("self").shape[2:]), *_sampling(s), orders)


derivative(
    "grid_sampler",
    self=("grid", lambda s, g: _spread(s, g, _first(s))),
    grid=("self grid", lambda s, g: _by_points(s, g, s.self, _first(s))),
)
derivative(
    "grid_gather",
    self=("grid", lambda s, g: _spread(s, g, s.orders)),
    grid=("self grid", lambda s, g: _by_points(s, g, s.self, s.orders)),
)
derivative(
    "grid_spread",
    grad=("grid", lambda s, g: F.grid_gather(g, s.grid, *_sampling(s), s.orders)),
    grid=("grad grid", lambda s, g: _by_points(s, s.grad, g, s.orders)),
)


# Affine maps


def _points(xp: Namespace, size: Ints, align_corners: bool, dtype: Native) -> Array:
    """The homogeneous coordinates of an image's elements, ``(elements, count + 1)``."""
    extents = size[2:]
    count = len(extents)
    columns = np.ones((*extents, count + 1))
    for i, n in enumerate(reversed(extents)):
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        if not align_corners:
            line = line * (n - 1) / n
        columns[..., i] = line.reshape([-1 if axis == count - 1 - i else 1 for axis in range(count)])
    return xp.asarray(columns.reshape(-1, count + 1).astype(dtype))


@kernel("affine_grid_generator")
def affine_grid_generator(xp: Namespace, theta: Array, size: Ints, align_corners: bool) -> Array:
    points = _points(xp, size, align_corners, theta.dtype)
    return xp.matmul(points, theta.swapaxes(1, 2)).reshape((size[0], *size[2:], len(size) - 2))


@kernel("affine_grid_generator_backward")
def affine_grid_generator_backward(xp: Namespace, g: Array, size: Ints, align_corners: bool) -> Array:
    points = _points(xp, size, align_corners, g.dtype)
    return xp.matmul(g.reshape(size[0], len(points), g.shape[-1]).swapaxes(1, 2), points)


derivative("affine_grid_generator", theta=lambda s, g: F.affine_grid_generator_backward(g, s.size, s.align_corners))
derivative("affine_grid_generator_backward", grad=lambda s, g: F.affine_grid_generator(g, s.size, s.align_corners))
