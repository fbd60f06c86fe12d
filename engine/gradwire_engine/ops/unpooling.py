"""Pooling undone, and pooling over windows at random places."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..autograd.functional import F
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.scatter import check_range, write_at
from ..numerics.windows import Ints
from ..runtime.arrays import Array, Namespace


@kernel("max_unpool", half=True)
def max_unpool(xp: Namespace, x: Array, indices: Array, output_size: Ints) -> Array:
    count, plane = len(output_size), prod(output_size)
    check_range(xp, "max_unpool", indices, 0, plane)
    out = xp.zeros((*x.shape[:-count], *output_size), x.dtype)
    places = indices.reshape(prod(x.shape[:-count]), prod(x.shape[-count:]))
    places = places + xp.arange(len(places))[:, None] * plane
    write_at(xp, out, places, x.reshape(places.shape))
    return out


def _taken(s: Saved, g: Tensor) -> Tensor:
    count = len(s.output_size)
    shape = s.indices.shape
    flat = F.reshape(g, (*shape[:-count], prod(s.output_size)))
    places = F.reshape(s.indices, (*shape[:-count], prod(shape[-count:])))
    return F.reshape(F.gather(flat, len(shape) - count, places), shape)


derivative("max_unpool", self=("indices", _taken))


def _starts(xp: Namespace, samples: Array, extent: int, window: int, outputs: int) -> Array:
    """Where windows begin along one dimension, ``(planes, outputs)``: steps of equal length, rounded down."""
    last = extent - window
    starts = xp.full((len(samples), outputs), last, np.int64)
    if outputs > 1:
        step = samples.dtype.type(last) / samples.dtype.type(outputs - 1)
        steps = (xp.arange(outputs - 1, dtype=samples.dtype)[None] + samples[:, None]) * step
        starts[:, :-1] = steps.astype(np.int64) - (samples * step).astype(np.int64)[:, None]
    return starts


@kernel("fractional_max_pool")
def fractional_max_pool(
    xp: Namespace, x: Array, samples: Array, kernel_size: Ints, output_size: Ints
) -> tuple[Array, Array]:
    count = len(output_size)
    extents = x.shape[-count:]
    planes = x.reshape(prod(x.shape[:-count]), prod(extents))
    batch = x.shape[0] if x.ndim == count + 2 else 1
    drawn = samples[:batch, : x.shape[-count - 1]].reshape(-1, count)
    starts = []
    for i in range(count):
        # Of images the last dimension comes first.
        column = drawn[:, count - 1 - i if count == 2 else i]
        along = [1] * count
        along[i] = output_size[i]
        starts.append(_starts(xp, column, extents[i], kernel_size[i], output_size[i]).reshape(len(planes), *along))
    best: Any = None
    where: Any = None
    for tap in product(*map(range, kernel_size)):
        place: Any = 0
        for start, offset, extent in zip(starts, tap, extents, strict=True):
            place = place * extent + (start + offset)
        place = place.reshape(len(planes), prod(output_size))
        part = xp.take_along_axis(planes, place, axis=1)
        if best is None:
            best, where = part, place
            continue
        better = (part > best) | (part != part)
        best, where = xp.where(better, part, best), xp.where(better, place, where)
    shape = (*x.shape[:-count], *output_size)
    return best.reshape(shape), where.reshape(shape)


@joint_derivative("fractional_max_pool", saves="result1")
def _laid(s: Saved, g: Tensor, _: object) -> Tensor:
    count = len(s.output_size)
    shape = s.meta("self").shape
    lead = shape[:-count]
    flat = g.engine.call("zeros", (*lead, prod(shape[-count:])), dtype=g.dtype, device=g.device)
    places = (*lead, prod(g.shape[-count:]))
    laid = F.scatter_add(flat, len(lead), F.reshape(s.result1, places), F.reshape(g, places))
    return F.reshape(laid, shape)
