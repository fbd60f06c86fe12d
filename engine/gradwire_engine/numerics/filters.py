"""Filters that resize one dimension: which elements of the input each output is made of, and with which weights."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gradwire_protocol.ops.resampling import DENSE_TAPS

from ..runtime.arrays import Array, Namespace


class Taps:
    """A linear map from ``extent`` elements: output ``i`` is the sum of ``weights[i, t] * x[places[i, t]]``."""

    __slots__ = ("extent", "places", "weights")

    def __init__(self, extent: int, places: Array, weights: Array) -> None:
        self.extent = extent
        self.places = places
        self.weights = weights

    def transposed(self) -> Taps:
        """The transposed map; elements that few outputs use are filled up with weights of zero."""
        outputs, taps = self.places.shape
        used = self.weights.reshape(-1) != 0
        sources = np.repeat(np.arange(outputs), taps)[used]
        targets, weights = self.places.reshape(-1)[used], self.weights.reshape(-1)[used]
        order = np.argsort(targets, kind="stable")
        sources, targets, weights = sources[order], targets[order], weights[order]
        counts = np.bincount(targets, minlength=self.extent)
        slot = np.arange(targets.size) - np.repeat(np.cumsum(counts) - counts, counts)
        most = max(int(counts.max(initial=0)), 1)
        places, found = np.zeros((self.extent, most), np.int64), np.zeros((self.extent, most))
        places[targets, slot], found[targets, slot] = sources, weights
        return Taps(outputs, places, found)

    def matrix(self) -> Array:
        """As a dense matrix, ``(outputs, extent)``."""
        dense = np.zeros((len(self.places), self.extent))
        np.add.at(dense, (np.arange(len(self.places))[:, None], self.places), self.weights)
        return dense

    def in_fixed_point(self) -> Taps:
        """With weights of as many binary digits as fit into 16 bits: what images of bytes are resized with."""
        weights = self.weights.copy()
        for t in range(weights.shape[1] - 1, 0, -1):  # beyond an edge several taps meet one element
            twice = self.places[:, t] == self.places[:, t - 1]
            weights[twice, t - 1] += weights[twice, t]
            weights[twice, t] = 0
        largest, digits = float(weights.max()), 0
        while digits < 22 and int(0.5 + largest * 2 ** (digits + 1)) < 1 << 15:
            digits += 1
        scaled = weights * 2**digits
        return Taps(self.extent, self.places, np.trunc(scaled + np.copysign(0.5, scaled)) / 2**digits)

    def apply(self, xp: Namespace, x: Array, axis: int) -> Array:
        """The map applied to one dimension of an array."""
        outputs, taps = self.places.shape
        if taps == 1 and bool((self.weights == 1).all()):
            return xp.take(x, xp.asarray(self.places[:, 0]), axis=axis)
        if taps >= DENSE_TAPS:  # faster than one pass per tap
            lead, trail = x.shape[:axis], x.shape[axis + 1 :]
            flat = x.reshape(prod(lead), x.shape[axis], prod(trail))
            dense = xp.asarray(self.matrix().astype(x.dtype))
            return xp.matmul(dense, flat).reshape((*lead, outputs, *trail))
        shape = [1] * x.ndim
        shape[axis] = outputs
        weights = xp.asarray(self.weights.astype(x.dtype))
        total: Any = None
        for t in range(taps):
            part = xp.take(x, xp.asarray(self.places[:, t]), axis=axis)
            part *= weights[:, t].reshape(shape)
            if total is None:
                total = part
            else:
                total += part
        return total


def cubic(distance: Array, a: float) -> Array:
    """The cubic convolution kernel of Keys (1981) at distances from 0 to 2, and 0 beyond."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


# Places are computed in the precision of the image, as PyTorch does: far from the origin, single precision moves them
# visibly. ``real`` is the type of their numbers.


def _step(extent: int, outputs: int, align_corners: bool, scale: float | None, real: type) -> Array:
    """How far apart in the input neighbouring outputs lie."""
    if align_corners:
        return real(extent - 1) / real(outputs - 1) if outputs > 1 else real(0)
    return real(1 / scale) if scale is not None else real(extent) / real(outputs)


def _between(outputs: int, step: Array, align_corners: bool, real: type) -> Array:
    """Where outputs lie in the input. Product and difference are rounded once, like a fused instruction does."""
    places: Array = np.arange(outputs)
    places = places * np.float64(step) if align_corners else (places + 0.5) * np.float64(step) - 0.5
    return places.astype(real)


def _whole(places: Array) -> Array:
    """Places rounded down, as integers; what is beyond those is far beyond any image."""
    return np.minimum(np.floor(places), 2.0**62).astype(np.int64)


def _nearest(extent: int, outputs: int, scale: float | None, shift: float) -> Taps:
    # Which element is nearest is decided in single precision, as PyTorch does: a rounding makes another element.
    step = np.float32(1 / scale if scale is not None else np.float32(extent) / np.float32(outputs))
    places = _whole((np.arange(outputs, dtype=np.float32) + np.float32(shift)) * step)
    if not shift and outputs in (extent, 2 * extent):
        places = np.arange(outputs) * extent // outputs
    return Taps(extent, np.minimum(places, extent - 1)[:, None], np.ones((outputs, 1)))


def _linear(extent: int, outputs: int, align_corners: bool, scale: float | None, real: type) -> Taps:
    place = _between(outputs, _step(extent, outputs, align_corners, scale, real), align_corners, real)
    place = place if align_corners else np.maximum(place, 0)
    first = np.minimum(_whole(place), extent - 1)
    share = np.clip(place - first, 0, 1)
    places = np.stack([first, np.minimum(first + 1, extent - 1)], axis=1)
    return Taps(extent, places, np.stack([1 - share, share], axis=1))


def _cubic(extent: int, outputs: int, align_corners: bool, scale: float | None, real: type) -> Taps:
    place = _between(outputs, _step(extent, outputs, align_corners, scale, real), align_corners, real)
    first = np.floor(place)
    offsets = np.arange(-1, 3)
    weights = cubic((place - first)[:, None] - offsets, -0.75)
    places = np.clip(_whole(place)[:, None] + offsets, 0, extent - 1)
    return Taps(extent, places, weights)


def _antialiased(mode: str, extent: int, outputs: int, align_corners: bool, scale: float | None, real: type) -> Taps:
    """The filter is as wide as an output element where the image shrinks; its weights are scaled to sum to 1."""
    step = _step(extent, outputs, align_corners, scale, real)
    radius = 2 if mode == "bicubic" else 1
    wide = max(step, real(1))
    center = (np.arange(outputs, dtype=real) + real(0.5)) * step
    first = np.clip(center - radius * wide + real(0.5), 0, extent).astype(np.int64)
    last = np.clip(center + radius * wide + real(0.5), 0, extent).astype(np.int64)
    offsets = np.arange(max(int((last - first).max(initial=1)), 1))
    places = first[:, None] + offsets
    distance = (places - center[:, None] + 0.5) / wide
    weights = cubic(distance, -0.5) if mode == "bicubic" else np.maximum(1 - np.abs(distance), 0)
    weights = np.where(places < last[:, None], weights, 0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    return Taps(extent, np.minimum(places, extent - 1), weights)


def filter_taps(
    mode: str, extent: int, outputs: int, align_corners: bool, scale: float | None, antialias: bool, transposed: bool,
    precise: bool = True,
) -> Taps:  # fmt: skip
    """The filter of one dimension of ``extent`` elements that becomes one of ``outputs``, or its transpose; for images
    of double precision, or for others. Those of usual images are kept."""
    find = _kept_taps if max(extent, outputs) <= _KEPT_EXTENT else _taps
    return find(mode, extent, outputs, align_corners, scale, antialias, transposed, precise)


def _taps(
    mode: str, extent: int, outputs: int, align_corners: bool, scale: float | None, antialias: bool, transposed: bool,
    precise: bool,
) -> Taps:  # fmt: skip
    if transposed:
        return filter_taps(mode, extent, outputs, align_corners, scale, antialias, False, precise).transposed()
    if mode.startswith("nearest"):
        return _nearest(extent, outputs, scale, 0.5 if mode == "nearest-exact" else 0.0)
    real = np.float64 if precise else np.float32
    if antialias:
        return _antialiased(mode, extent, outputs, align_corners, scale, real)
    return (_cubic if mode == "bicubic" else _linear)(extent, outputs, align_corners, scale, real)


_KEPT_EXTENT = 8192
_kept_taps = lru_cache(maxsize=256)(_taps)
