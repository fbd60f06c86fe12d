"""Padding. Every border is a stretch of the dimension it belongs to, read forwards, backwards, or one element of it."""

from __future__ import annotations

from gradwire_protocol.ops.padding import amounts

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, Namespace


def _at(axis: int, where: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (where,)


def _sources(extent: int, before: int, after: int, mode: str) -> tuple[slice, slice]:
    """Which elements of a dimension make the borders, in order."""
    low, high = max(-before, 0), extent + min(after, 0)
    before, after = max(before, 0), max(after, 0)
    if mode == "circular":
        # What is taken away at one end does not come back at the other.
        return slice(high - before, high), slice(low, low + after)
    if mode == "replicate":
        return slice(0, 1), slice(extent - 1, extent)
    first = slice(before, 0, -1)
    stop = extent - 2 - after
    return first, slice(extent - 2, stop if stop >= 0 else None, -1)


@kernel("pad", half=True)
def pad(xp: Namespace, x: Array, pad: tuple[int, ...], mode: str, value: int | None) -> Array:
    if mode == "constant":
        return _constant(xp, x, pad, 0 if value is None else value)
    for axis, (before, after) in enumerate(amounts(pad, x.ndim)):
        if (before, after) != (0, 0):
            x = _extended(xp, x, axis, before, after, mode)
    return x


def _constant(xp: Namespace, x: Array, pad: tuple[int, ...], value: int) -> Array:
    pairs = amounts(pad, x.ndim)
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True))
    # An empty array and an assignment convert the value as the dtype does, modulo 2**bits for integers.
    out = xp.zeros(shape, x.dtype)
    if value != 0:
        out[...] = xp.asarray(value).astype(x.dtype)
    spans = tuple(zip(x.shape, pairs, strict=True))
    into = tuple(slice(max(before, 0), n + before + min(after, 0)) for n, (before, after) in spans)
    out[into] = x[tuple(slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in spans)]
    return out


def _extended(xp: Namespace, x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """One dimension padded."""
    extent = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = extent + before + after
    out = xp.empty(shape, x.dtype)
    first, last = _sources(extent, before, after, mode)
    inner = slice(max(-before, 0), extent + min(after, 0))
    out[_at(axis, slice(max(before, 0), shape[axis] - max(after, 0)))] = x[_at(axis, inner)]
    if before > 0:
        out[_at(axis, slice(0, before))] = x[_at(axis, first)]
    if after > 0:
        out[_at(axis, slice(shape[axis] - after, None))] = x[_at(axis, last)]
    return out


@kernel("pad_backward")
def pad_backward(xp: Namespace, g: Array, pad: tuple[int, ...], mode: str) -> Array:
    for axis, (before, after) in reversed(list(enumerate(amounts(pad, g.ndim)))):
        if (before, after) != (0, 0):
            g = _folded(xp, g, axis, before, after, mode)
    return g


def _folded(xp: Namespace, g: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """The transpose of :func:`_extended`."""
    shape = list(g.shape)
    extent = shape[axis] = shape[axis] - before - after
    out = xp.zeros(shape, g.dtype)
    first, last = _sources(extent, before, after, mode)
    end = g.shape[axis]
    start, stop = max(before, 0), end - max(after, 0)
    out[_at(axis, slice(max(-before, 0), extent + min(after, 0)))] = g[_at(axis, slice(start, stop))]
    for amount, where, source in ((before, slice(0, start), first), (after, slice(stop, end), last)):
        if amount > 0:
            border = g[_at(axis, where)]
            out[_at(axis, source)] += border.sum(axis=axis, keepdims=True) if mode == "replicate" else border
    return out


def _pad(s: Saved, g: Tensor) -> Tensor:
    if s.mode == "constant":
        return F.pad(g, tuple(-n for n in s.pad))
    return F.pad_backward(g, s.pad, s.mode)


derivative("pad", self=_pad)
derivative("pad_backward", grad=lambda s, g: F.pad(g, s.pad, s.mode))
