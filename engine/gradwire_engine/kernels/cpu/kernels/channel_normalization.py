"""Normalization of channels, over a batch or in groups of a sample. Each stays in the cache for all passes over it."""

from __future__ import annotations

import math
from math import prod
from typing import Any, Final

import numpy as np

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace
from ..native import Count, Double, Element, Flag, In1, In3, Out1, Out2, Out3, dense, inline, native, reducing
from ..rows import row_squares, row_sum
from ..threads import split

SHORTEST: Final = 8
"""Elements of a channel that follow each other, below which NumPy's passes over whole batches are quicker."""

STRETCH: Final = 4096
"""Elements that are added up in their own dtype; sums of such sums are of float64."""


@inline
def _sum(run: Array) -> Element:
    s = 0.0
    for at in range(0, run.size, STRETCH):
        s += row_sum(run[at : at + STRETCH])
    return s


@inline
def _squares(run: Array, mean: Element) -> Element:
    s = 0.0
    for at in range(0, run.size, STRETCH):
        s += row_squares(run[at : at + STRETCH], mean)
    return s


@reducing
def _slopes_of_stretch(g: Array, run: Array, mean: Element) -> Any:
    level = along = g.dtype.type(0)
    for j in range(g.size):
        level += g[j]
        along += g[j] * (run[j] - mean)
    return level, along


@inline
def _slopes(g: Array, run: Array, mean: Element) -> Any:
    """The sum of ``g``, and of its products with what is centred."""
    level = along = 0.0
    for at in range(0, g.size, STRETCH):
        a, b = _slopes_of_stretch(g[at : at + STRETCH], run[at : at + STRETCH], mean)
        level += a
        along += b
    return level, along


# Batches


@native("float32", "float64")
def batch_norm_channels(
    x: In3, weight: In1, bias: In1, eps: Double, out: Out3, mean: Out1, var: Out1, start: Count, stop: Count
) -> None:
    batch, _, size = x.shape
    zero, one, least = x.dtype.type(0), x.dtype.type(1), x.dtype.type(eps)
    for c in range(start, stop):
        s = 0.0
        for b in range(batch):
            s += _sum(x[b, c])
        m = x.dtype.type(s / (batch * size))
        s = 0.0
        for b in range(batch):
            s += _squares(x[b, c], m)
        v = x.dtype.type(s / (batch * size))
        mean[c], var[c] = m, v
        k = one / math.sqrt(v + least)
        if weight.size:
            k *= weight[c]
        shift = bias[c] if bias.size else zero
        for b in range(batch):
            run, done = x[b, c], out[b, c]
            for j in range(run.size):
                done[j] = (run[j] - m) * k + shift


@native("float32", "float64")
def scaled_channels(x: In3, scale: In1, shift: In1, out: Out3, start: Count, stop: Count) -> None:
    for c in range(start, stop):
        k, s = scale[c], shift[c]
        for b in range(x.shape[0]):
            run, done = x[b, c], out[b, c]
            for j in range(run.size):
                done[j] = run[j] * k + s


@native("float32", "float64")
def batch_norm_slopes(
    g: In3, x: In3, mean: In1, var: In1, weight: In1, training: Flag, eps: Double, out: Out3, of_weight: Out1,
    of_bias: Out1, start: Count, stop: Count,
) -> None:  # fmt: skip
    batch, _, size = x.shape
    one, least = x.dtype.type(1), x.dtype.type(eps)
    for c in range(start, stop):
        m = mean[c]
        rstd = one / math.sqrt(var[c] + least)
        level = along = 0.0
        for b in range(batch):
            a, d = _slopes(g[b, c], x[b, c], m)
            level += a
            along += d
        of_bias[c], of_weight[c] = level, along * rstd
        scale = rstd * weight[c] if weight.size else rstd
        if not training:
            for b in range(batch):
                a, done = g[b, c], out[b, c]
                for j in range(a.size):
                    done[j] = a[j] * scale
            continue
        shift = x.dtype.type(level / (batch * size))
        slope = x.dtype.type(along * rstd * rstd / (batch * size))
        for b in range(batch):
            a, run, done = g[b, c], x[b, c], out[b, c]
            for j in range(a.size):
                done[j] = (a[j] - (run[j] - m) * slope - shift) * scale


# Groups


@native("float32", "float64")
def group_norm_rows(
    x: In3, weight: In1, bias: In1, groups: Count, eps: Double, out: Out3, mean: Out1, rstd: Out1, start: Count,
    stop: Count,
) -> None:  # fmt: skip
    each, size = x.shape[1], x.shape[2]
    zero, one, least = x.dtype.type(0), x.dtype.type(1), x.dtype.type(eps)
    for i in range(start, stop):
        s = 0.0
        for c in range(each):
            s += _sum(x[i, c])
        m = x.dtype.type(s / (each * size))
        s = 0.0
        for c in range(each):
            s += _squares(x[i, c], m)
        r = one / math.sqrt(x.dtype.type(s / (each * size)) + least)
        mean[i], rstd[i] = m, r
        first = i % groups * each
        for c in range(each):
            k = r * weight[first + c] if weight.size else r
            shift = bias[first + c] if bias.size else zero
            run, done = x[i, c], out[i, c]
            for j in range(run.size):
                done[j] = (run[j] - m) * k + shift


@native("float32", "float64")
def group_norm_slopes(
    g: In3, x: In3, mean: In1, rstd: In1, weight: In1, groups: Count, out: Out3, of_weight: Out2, of_bias: Out2,
    start: Count, stop: Count,
) -> None:  # fmt: skip
    each, size = x.shape[1], x.shape[2]
    one = x.dtype.type(1)
    for i in range(start, stop):
        m, r, first = mean[i], rstd[i], i % groups * each
        level = along = 0.0
        for c in range(each):
            a, d = _slopes(g[i, c], x[i, c], m)
            of_bias[i, c], of_weight[i, c] = a, d * r
            w = weight[first + c] if weight.size else one
            level += a * w
            along += d * r * w
        shift = x.dtype.type(level / (each * size))
        slope = x.dtype.type(along * r / (each * size))
        for c in range(each):
            w = weight[first + c] if weight.size else one
            a, run, done = g[i, c], x[i, c], out[i, c]
            for j in range(a.size):
                done[j] = (a[j] * w - (run[j] - m) * slope - shift) * r


# Ops


def _fits(x: Array, *others: Array | None) -> bool:
    """Whether these kernels know the dtype, which all have, and a channel's elements follow each other."""
    return (
        x.dtype.char in "fd"
        and x.size > 0
        and prod(x.shape[2:]) >= SHORTEST
        and all(a is None or a.dtype == x.dtype for a in others)
    )


def _channels(x: Array) -> Array:
    return dense(x).reshape(*x.shape[:2], -1)


def _vector(parameter: Array | None, x: Array) -> Array:
    """A parameter as one dimension; an absent one has no elements."""
    return np.empty(0, x.dtype) if parameter is None else dense(parameter)


@compiled("batch_norm_training")
def batch_norm_training(
    xp: Namespace, x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    if not _fits(x, weight, bias):
        return NotImplemented
    flat = _channels(x)
    batch, channels, size = flat.shape
    out, mean, var = np.empty(flat.shape, x.dtype), np.empty(channels, x.dtype), np.empty(channels, x.dtype)
    split(
        batch_norm_channels, channels, batch * size, flat, _vector(weight, x), _vector(bias, x), eps, out, mean, var
    )  # fmt: skip
    return out.reshape(x.shape), mean, var


@compiled("batch_norm_inference")
def batch_norm_inference(
    xp: Namespace, x: Array, mean: Array, var: Array, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    if not _fits(x, mean, var, weight, bias):
        return NotImplemented
    scale = 1 / np.sqrt(var + x.dtype.type(eps))
    if weight is not None:
        scale *= weight
    shift = -mean * scale
    if bias is not None:
        shift += bias
    flat = _channels(x)
    batch, channels, size = flat.shape
    out = np.empty(flat.shape, x.dtype)
    split(scaled_channels, channels, batch * size, flat, scale, shift, out)
    return out.reshape(x.shape)


@compiled("batch_norm_backward")
def batch_norm_backward(
    xp: Namespace, g: Array, x: Array, mean: Array, var: Array, weight: Array | None, training: bool, eps: float
) -> tuple[Array, Array, Array]:
    if not _fits(x, g, mean, var, weight):
        return NotImplemented
    slopes, flat = _channels(g), _channels(x)
    batch, channels, size = flat.shape
    out = np.empty(flat.shape, x.dtype)
    of_weight, of_bias = np.empty(channels, x.dtype), np.empty(channels, x.dtype)
    split(
        batch_norm_slopes, channels, batch * size, slopes, flat, dense(mean), dense(var), _vector(weight, x), training,
        eps, out, of_weight, of_bias,
    )  # fmt: skip
    return out.reshape(x.shape), of_weight, of_bias


@compiled("group_norm", "group_norm_training")
def group_norm(
    xp: Namespace, x: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    if not _fits(x, weight, bias):
        return NotImplemented
    rows = x.shape[0] * num_groups
    flat = dense(x).reshape(rows, x.shape[1] // num_groups, -1)
    out, mean, rstd = np.empty(flat.shape, x.dtype), np.empty(rows, x.dtype), np.empty(rows, x.dtype)
    split(
        group_norm_rows, rows, x.size // rows, flat, _vector(weight, x), _vector(bias, x), num_groups, eps, out, mean,
        rstd,
    )  # fmt: skip
    return out.reshape(x.shape), mean.reshape(rows, 1), rstd.reshape(rows, 1)


@compiled("group_norm_backward")
def group_norm_backward(
    xp: Namespace, g: Array, x: Array, mean: Array, rstd: Array, num_groups: int, weight: Array | None
) -> tuple[Array, Array, Array]:
    if not _fits(x, g, mean, rstd, weight):
        return NotImplemented
    rows, each = x.shape[0] * num_groups, x.shape[1] // num_groups
    flat, slopes = (dense(a).reshape(rows, each, -1) for a in (x, g))
    out = np.empty(flat.shape, x.dtype)
    of_weight, of_bias = np.empty((rows, each), x.dtype), np.empty((rows, each), x.dtype)
    split(
        group_norm_slopes, rows, x.size // rows, slopes, flat, dense(mean).reshape(-1), dense(rstd).reshape(-1),
        _vector(weight, x), num_groups, out, of_weight, of_bias,
    )  # fmt: skip
    shape = x.shape[:2]
    return out.reshape(x.shape), of_weight.reshape(shape).sum(0), of_bias.reshape(shape).sum(0)
