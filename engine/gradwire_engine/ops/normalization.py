"""Normalization. Backward is one fused kernel; where it is recorded itself, it is composed of differentiable ops."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import float32
from gradwire_protocol.promotion import join
from gradwire_protocol.shapes import broadcast

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import composite, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import dots_of_rows, total
from ..runtime.arrays import Array, Namespace, Native

BLOCK = 1 << 16
"""Elements worked on at a time: several passes over as many stay in a CPU's cache."""

CHANNEL_RUN = 16
"""From this many elements of a channel in a row, a dot product of each run beats the product of the whole."""


def _blocks(xp: Namespace, rows: int, cols: int) -> Iterator[slice]:
    """Rows in portions. A GPU takes all at once."""
    step = max(1, BLOCK // max(cols, 1)) if xp is np else max(rows, 1)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _row_dot(xp: Namespace, a: Array, b: Array) -> Array:
    """The dot products of rows, as a column."""
    return dots_of_rows(xp, a, b)[:, None]


def _row_sum(xp: Namespace, a: Array) -> Array:
    return total(xp, a, (1,), True)


def _rstd(xp: Namespace, var: Array, eps: float) -> Array:
    """``1 / sqrt(var + eps)``, into the memory given."""
    var += eps
    xp.sqrt(var, out=var)
    return xp.divide(1, var, out=var)


# Rows: layer_norm and group_norm


def normalize_rows(
    xp: Namespace, x: Array, eps: float, weight: Array | None = None, bias: Array | None = None
) -> tuple[Array, Array, Array]:
    """Rows shifted and scaled to mean 0 and variance 1, then by weight and bias; mean and reciprocal deviation, as
    columns."""
    rows, cols = x.shape
    out = xp.empty((rows, cols), x.dtype)
    mean = xp.empty((rows, 1), x.dtype)
    rstd = xp.empty((rows, 1), x.dtype)
    for block in _blocks(xp, rows, cols):
        part, done, m, r = x[block], out[block], mean[block], rstd[block]
        xp.divide(_row_sum(xp, part), cols, out=m)
        xp.subtract(part, m, out=done)
        xp.divide(_row_dot(xp, done, done), cols, out=r)
        done *= _rstd(xp, r, eps)
        if weight is not None:
            done *= weight
        if bias is not None:
            done += bias
    return out, mean, rstd


def rows_gradient(
    xp: Namespace, g: Array, hat: Array, rstd: Array, factor: Array | None, out: Array, product: Array | None = None
) -> None:
    """The gradient through :func:`normalize_rows` for a block of rows, into ``out``.

    ``hat`` are the normalized rows, which are overwritten; ``product``, if there is one already, ``g * hat``.
    """
    cols = g.shape[1]
    if product is None:
        product = xp.multiply(g, hat, out=out)
    if factor is None:
        along, level = _row_sum(xp, product), _row_sum(xp, g)
        out[...] = g
    else:
        along, level = xp.matmul(product, factor)[:, None], xp.matmul(g, factor)[:, None]
        xp.multiply(g, factor, out=out)
    along /= cols
    level /= cols
    hat *= along
    out -= hat
    out -= level
    out *= rstd


def _scratch(xp: Namespace, rows: int, cols: int, dtype: Native) -> Array:
    """Memory for one block of rows."""
    block = next(_blocks(xp, rows, cols), slice(0, 0))
    return xp.empty((block.stop, cols), dtype)


@kernel("layer_norm", "layer_norm_training")
def layer_norm(
    xp: Namespace, x: Array, normalized_shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    cols = prod(normalized_shape)
    rows = prod(x.shape[: x.ndim - len(normalized_shape)])
    weight, bias = (None if p is None else p.reshape(cols) for p in (weight, bias))
    out, mean, rstd = normalize_rows(xp, x.reshape(rows, cols), eps, weight, bias)
    return out.reshape(x.shape), mean, rstd


@kernel("layer_norm_backward")
def layer_norm_backward(
    xp: Namespace, g: Array, x: Array, mean: Array, rstd: Array, weight: Any, bias: bool
) -> Array | tuple[Array, ...]:
    rows = mean.size
    cols = x.size // max(rows, 1) if weight is None else weight.size
    g, flat = g.reshape(rows, cols), x.reshape(rows, cols)
    mean, rstd = mean.reshape(rows, 1), rstd.reshape(rows, 1)
    factor = None if weight is None else weight.reshape(cols)
    g_x, memory = xp.empty((rows, cols), flat.dtype), _scratch(xp, rows, cols, flat.dtype)
    g_weight, g_bias = xp.zeros(cols, flat.dtype), xp.zeros(cols, flat.dtype)
    for block in _blocks(xp, rows, cols):
        part, out = g[block], g_x[block]
        hat = xp.subtract(flat[block], mean[block], out=memory[: part.shape[0]])
        hat *= rstd[block]
        product = xp.multiply(part, hat, out=out)
        if factor is not None:
            g_weight += total(xp, product, (0,))
            if bias:
                g_bias += total(xp, part, (0,))
        rows_gradient(xp, part, hat, rstd[block], factor, out, product)
    if factor is None:
        return g_x.reshape(x.shape)
    found = (g_x.reshape(x.shape), g_weight.reshape(weight.shape))
    return (*found, g_bias.reshape(weight.shape)) if bias else found


@joint_derivative("layer_norm", saves="self weight result1 result2", undefined=True)
def layer_norm_gradient(s: Saved, g: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    x, weight, shape = s.self, s.weight, s.normalized_shape
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    has_bias = s.meta("bias") is not None
    if x.engine.differentiates:
        g_x, g_hat = _composed(x, g if weight is None else g * weight, dims, s.eps)
        return g_x, None if weight is None else _onto(g * g_hat, shape), _onto(g, shape) if has_bias else None
    if weight is None:
        (g_x,) = F.layer_norm_backward(g, x, s.result1, s.result2, None)
        return g_x, None, _onto(g, shape) if has_bias else None
    found = F.layer_norm_backward(g, x, s.result1, s.result2, weight, has_bias)
    return found if has_bias else (*found, None)


def _onto(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    return F.sum_to_size(g, tuple(shape))


def _composed(x: Tensor, g: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """The gradient through normalization over ``dims``, and the normalized input, in differentiable ops."""
    x, g = _accurate(x), _accurate(g)
    centred = x - F.mean(x, dims, True)
    rstd = F.rsqrt(F.mean(centred * centred, dims, True) + eps)
    hat = centred * rstd
    found = (g - F.mean(g, dims, True) - hat * F.mean(g * hat, dims, True)) * rstd
    return found, hat


def _accurate(x: Tensor) -> Tensor:
    """Statistics of half precision are not kept in half precision."""
    return F.to(x, dtype=float32) if x.dtype.is_low_precision else x


# Groups


def _tiles(xp: Namespace, batch: int, channels: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Portions of ``(batch, channels, size)``: several samples, or some channels of one."""
    if xp is not np or channels * size <= BLOCK:
        for block in _blocks(xp, batch, channels * size):
            yield block, slice(0, channels)
        return
    for i in range(batch):
        for block in _blocks(xp, channels, size):
            yield slice(i, i + 1), block


@kernel("group_norm", "group_norm_training")
def group_norm(
    xp: Namespace, x: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    batch, channels = x.shape[:2]
    size = prod(x.shape[2:])
    rows = batch * num_groups
    out, mean, rstd = normalize_rows(xp, x.reshape(rows, channels // num_groups * size), eps)
    out = out.reshape(batch, channels, size)
    for tile in _tiles(xp, batch, channels, size):
        if weight is not None:
            out[tile] *= weight[tile[1]][:, None]
        if bias is not None:
            out[tile] += bias[tile[1]][:, None]
    return out.reshape(x.shape), mean, rstd


@kernel("group_norm_backward")
def group_norm_backward(
    xp: Namespace, g: Array, x: Array, mean: Array, rstd: Array, num_groups: int, weight: Array | None
) -> tuple[Array, Array, Array]:
    batch, channels = x.shape[:2]
    size = prod(x.shape[2:])
    each = channels // num_groups
    # Rows are groups of a sample; a block of them is a stretch of channels.
    g, flat = (a.reshape(batch * num_groups, each, size) for a in (g, x))
    rows, cols = batch * num_groups, each * size
    mean, rstd = mean.reshape(rows, 1), rstd.reshape(rows, 1)
    g_x, memory = xp.empty((rows, cols), flat.dtype), _scratch(xp, rows, cols, flat.dtype)
    scaled = None if weight is None else _scratch(xp, rows, cols, flat.dtype)
    of_weight, of_bias = xp.empty((rows, each), flat.dtype), xp.empty((rows, each), flat.dtype)
    factors = None if weight is None else xp.broadcast_to(weight.reshape(num_groups, each), (batch, num_groups, each))
    factors = None if factors is None else factors.reshape(rows, each, 1)
    for block in _blocks(xp, rows, cols):
        part = g[block]
        count = part.shape[0]
        hat = xp.subtract(flat[block].reshape(count, cols), mean[block], out=memory[:count])
        hat *= rstd[block]
        runs = (count * each, size)
        of_weight[block] = dots_of_rows(xp, part.reshape(runs), hat.reshape(runs)).reshape(count, each)
        of_bias[block] = total(xp, part, (2,))
        if factors is not None and scaled is not None:
            part = xp.multiply(part, factors[block], out=scaled[:count].reshape(part.shape))
        rows_gradient(xp, part.reshape(count, cols), hat, rstd[block], None, g_x[block])
    shape = (batch, channels)
    return g_x.reshape(x.shape), total(xp, of_weight.reshape(shape), (0,)), total(xp, of_bias.reshape(shape), (0,))


@joint_derivative("group_norm", saves="self weight result1 result2", undefined=True)
def group_norm_gradient(s: Saved, g: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    x, weight = s.self, s.weight
    if not x.engine.differentiates:
        return tuple(F.group_norm_backward(g, x, s.result1, s.result2, s.num_groups, weight))
    batch, channels = x.shape[:2]
    grouped = (batch, s.num_groups, channels // s.num_groups * prod(x.shape[2:]))
    scaled = g if weight is None else g * _along_channels(weight, x.ndim)
    found, hat = _composed(F.reshape(x, grouped), F.reshape(scaled, grouped), (2,), s.eps)
    hat = F.reshape(hat, x.shape)
    return F.reshape(found, x.shape), _over_channels(g * hat), _over_channels(g)


def _along_channels(parameter: Tensor, ndim: int) -> Tensor:
    """One number per channel, broadcastable to the input."""
    shape = (1, parameter.shape[0], *(1,) * (ndim - 2))
    return F.reshape(parameter, shape)


def _over_channels(g: Tensor) -> Tensor:
    """Summed to one number per channel."""
    return F.sum(g, tuple(i for i in range(g.ndim) if i != 1))


# Batches


def channel_dot(xp: Namespace, a: Array, b: Array) -> Array:
    """The sum of products per channel, of arrays ``(batch, channels, size)``."""
    batch, channels, size = a.shape
    if size >= CHANNEL_RUN:
        runs = dots_of_rows(xp, a.reshape(batch * channels, size), b.reshape(batch * channels, size))
        return total(xp, runs.reshape(batch, channels), (0,))
    return total(xp, a * b, (0, 2))


def _flat(x: Array) -> Array:
    """``(batch, channels, size)``."""
    return x.reshape((*x.shape[:2], prod(x.shape[2:])))


@kernel("batch_norm_training")
def batch_norm_training(
    xp: Namespace, x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    flat = _flat(x)
    batch, channels, size = flat.shape
    count = batch * size
    mean = total(xp, flat, (0, 2)) / count
    out = xp.empty(flat.shape, x.dtype)
    var = xp.zeros(channels, x.dtype)
    for tile in _tiles(xp, batch, channels, size):
        part = xp.subtract(flat[tile], mean[tile[1]][:, None], out=out[tile])
        var[tile[1]] += channel_dot(xp, part, part)
    var /= count
    scale = _rstd(xp, var.copy(), eps)
    if weight is not None:
        scale *= weight
    for tile in _tiles(xp, batch, channels, size):
        part = out[tile]
        part *= scale[tile[1]][:, None]
        if bias is not None:
            part += bias[tile[1]][:, None]
    return out.reshape(x.shape), mean, var


@kernel("batch_norm_inference")
def batch_norm_inference(
    xp: Namespace, x: Array, mean: Array, var: Array, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    scale = _rstd(xp, var.copy(), eps)
    if weight is not None:
        scale *= weight
    shift = -mean * scale
    if bias is not None:
        shift += bias
    flat = _flat(x)
    out = xp.empty(flat.shape, x.dtype)
    for tile in _tiles(xp, *flat.shape):
        part = xp.multiply(flat[tile], scale[tile[1]][:, None], out=out[tile])
        part += shift[tile[1]][:, None]
    return out.reshape(x.shape)


@kernel("batch_norm_backward")
def batch_norm_backward(
    xp: Namespace, g: Array, x: Array, mean: Array, var: Array, weight: Array | None, training: bool, eps: float
) -> tuple[Array, Array, Array]:
    g, flat = _flat(g), _flat(x)
    batch, channels, size = flat.shape
    rstd = _rstd(xp, var.copy(), eps)
    scale = rstd if weight is None else rstd * weight
    found = xp.empty(flat.shape, flat.dtype)
    g_weight, g_bias = xp.zeros(channels, flat.dtype), xp.zeros(channels, flat.dtype)
    for tile in _tiles(xp, batch, channels, size):
        part, one = g[tile], tile[1]
        centred = xp.subtract(flat[tile], mean[one][:, None], out=found[tile])
        g_weight[one] += channel_dot(xp, part, centred)
        g_bias[one] += total(xp, part, (0, 2))
        if not training:
            xp.multiply(part, scale[one][:, None], out=centred)
    g_weight *= rstd
    if training:
        count = batch * size
        along, level = (-rstd * g_weight / count)[:, None], (g_bias / count)[:, None]
        for tile in _tiles(xp, batch, channels, size):
            part, one = found[tile], tile[1]
            part *= along[one]
            part += g[tile]
            part -= level[one]
            part *= scale[one][:, None]
    return found.reshape(x.shape), g_weight, g_bias


@joint_derivative("batch_norm_training", saves="self weight result1 result2", undefined=True)
def batch_norm_training_gradient(
    s: Saved, g: Tensor | None, g_mean: Tensor | None, g_var: Tensor | None
) -> tuple[Tensor | None, ...]:
    x, weight = s.self, s.weight
    found = g_weight = g_bias = None
    dims = tuple(i for i in range(x.ndim) if i != 1)
    if g is not None and not x.engine.differentiates:
        found, g_weight, g_bias = F.batch_norm_backward(g, x, s.result1, s.result2, weight, True, s.eps)
    elif g is not None:
        scaled = g if weight is None else g * _along_channels(weight, x.ndim)
        found, hat = _composed(x, scaled, dims, s.eps)
        g_weight, g_bias = _over_channels(g * hat), _over_channels(g)
    count = max(x.numel // max(x.shape[1], 1), 1)
    if g_mean is not None:
        part = _along_channels(g_mean / count, x.ndim)
        found = F.expand(part, x.shape) if found is None else found + part
    if g_var is not None:
        part = (x - F.mean(x, dims, True)) * _along_channels(g_var * (2 / count), x.ndim)
        found = part if found is None else found + part
    return found, g_weight, g_bias


@joint_derivative("batch_norm_inference", saves="self mean var weight")
def batch_norm_inference_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = s.self, s.weight
    if not x.engine.differentiates:
        return tuple(F.batch_norm_backward(g, x, s.mean, s.var, weight, False, s.eps))
    rstd = F.rsqrt(s.var + s.eps)
    hat = (x - _along_channels(s.mean, x.ndim)) * _along_channels(rstd, x.ndim)
    scale = rstd if weight is None else rstd * weight
    return g * _along_channels(scale, x.ndim), _over_channels(g * hat), _over_channels(g)


def _move(running: Tensor, value: Tensor, momentum: float, factor: float = 1.0) -> None:
    """Let a running statistic move towards a value.

    Like PyTorch, the write does not count as a new version: a graph recorded in evaluation, which saved the
    statistic, may still run backward after a training step.
    """
    engine = running.engine
    if engine.undo is not None:
        engine.undo.write(running)
    engine.on_arrays("move", _moved, running.array, value.array, momentum, factor)


def _moved(running: Array, value: Array, momentum: float, factor: float) -> None:
    running[...] = running * (1 - momentum) + value * (momentum * factor)


@composite("batch_norm")
def batch_norm(
    engine: EngineContext, x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
    bias: Tensor | None, training: bool, momentum: float, eps: float,
) -> Tensor:  # fmt: skip
    out: Tensor
    if x.shape == (0,):
        out = F.clone(x)
        return out
    if not training:
        out = F.batch_norm_inference(x, running_mean, running_var, weight, bias, eps)
        return out
    out, mean, var = F.batch_norm_training(x, weight, bias, eps)
    if running_mean is not None and running_var is not None and x.numel:
        count = x.numel // max(x.shape[1], 1)
        _move(running_mean, mean, momentum)
        _move(running_var, var, momentum, count / max(count - 1, 1))
    return out


@composite("instance_norm")
def instance_norm(
    engine: EngineContext, x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
    bias: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
) -> Tensor:  # fmt: skip
    batch, channels = x.shape[:2]

    def repeated(parameter: Tensor | None) -> Tensor | None:
        return None if parameter is None else F.repeat(parameter, (batch,))

    # Samples become channels of a batch of one.
    flat = F.reshape(F.contiguous(x), (1, batch * channels, *x.shape[2:]))
    if use_input_stats:
        out, mean, var = F.batch_norm_training(flat, repeated(weight), repeated(bias), eps)
        if running_mean is not None and running_var is not None:
            count = prod(x.shape[2:])
            mean, var = (F.mean(F.reshape(F.detach(v), (batch, channels)), (0,)) for v in (mean, var))
            _move(running_mean, mean, momentum)
            _move(running_var, var, momentum, count / max(count - 1, 1))
    else:
        given = (repeated(running_mean), repeated(running_var), repeated(weight), repeated(bias))
        out = F.batch_norm_inference(flat, *given, eps)
    return F.view(out, x.shape)


# Root mean square


def _smallest_step(dtype: Native) -> float:
    return float(np.finfo(dtype).eps)


@kernel("rms_norm", "rms_norm_training")
def rms_norm(
    xp: Namespace, x: Array, normalized_shape: tuple[int, ...], weight: Array | None, eps: float | None
) -> tuple[Array, Array]:
    cols = prod(normalized_shape)
    rows = prod(x.shape[: x.ndim - len(normalized_shape)])
    flat = x.reshape(rows, cols)
    out = xp.empty((rows, cols), x.dtype)
    rstd = xp.empty((rows, 1), x.dtype)
    for block in _blocks(xp, rows, cols):
        part, r = flat[block], rstd[block]
        xp.divide(_row_dot(xp, part, part), cols, out=r)
        xp.multiply(part, _rstd(xp, r, _smallest_step(x.dtype) if eps is None else eps), out=out[block])
        if weight is not None:
            out[block] *= weight.reshape(cols)
    return out.reshape(x.shape), rstd


@kernel("rms_norm_backward")
def rms_norm_backward(xp: Namespace, g: Array, x: Array, rstd: Array, weight: Any) -> Array | tuple[Array, Array]:
    rows = rstd.size
    cols = x.size // max(rows, 1) if weight is None else weight.size
    g, flat, rstd = g.reshape(rows, cols), x.reshape(rows, cols), rstd.reshape(rows, 1)
    factor = None if weight is None else weight.reshape(cols)
    g_x, memory = xp.empty((rows, cols), flat.dtype), _scratch(xp, rows, cols, flat.dtype)
    g_weight = xp.zeros(cols, flat.dtype)
    for block in _blocks(xp, rows, cols):
        part, r, out = g[block], rstd[block], g_x[block]
        hat = xp.multiply(flat[block], r, out=memory[: part.shape[0]])
        if factor is not None:
            xp.multiply(part, hat, out=out)
            g_weight += total(xp, out, (0,))
            along = xp.matmul(out, factor)[:, None]
            xp.multiply(part, factor, out=out)
        else:
            along = _row_dot(xp, part, hat)
            out[...] = part
        along /= cols
        hat *= along
        out -= hat
        out *= r
    return g_x.reshape(x.shape) if factor is None else (g_x.reshape(x.shape), g_weight.reshape(weight.shape))


@joint_derivative("rms_norm", saves="self weight result1", undefined=True)
def rms_norm_gradient(s: Saved, g: Tensor, _: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    x, weight = s.self, s.weight
    if not x.engine.differentiates:
        found = F.rms_norm_backward(g, x, s.result1, weight)
        return found[0], found[1] if weight is not None else None
    dims = tuple(range(x.ndim - len(s.normalized_shape), x.ndim))
    wide = _accurate(x)
    eps = _eps(s, wide)
    rstd = F.rsqrt(F.mean(wide * wide, dims, True) + eps)
    hat = wide * rstd
    scaled = g if weight is None else g * weight
    g_x = (scaled - hat * F.mean(scaled * hat, dims, True)) * rstd
    return g_x, None if weight is None else g * hat


def _eps(s: Saved, x: Tensor) -> float:
    return _smallest_step(x.array.dtype) if s.eps is None else s.eps


# Norms


@composite("normalize")
def normalize(engine: EngineContext, x: Tensor, p: float, dim: int | tuple[int, ...], eps: float) -> Tensor:
    norm = F.clamp_min(F.norm(x, p, dim, True), eps)
    return x / F.expand(norm, x.shape)


@composite("cosine_similarity")
def cosine_similarity(engine: EngineContext, x: Tensor, y: Tensor, dim: int, eps: float) -> Tensor:
    x, y = _direction(engine, x, y, dim, eps)
    return F.sum(x * y, (dim,))


def _direction(engine: EngineContext, x: Tensor, y: Tensor, dim: int, eps: float) -> tuple[Tensor, Tensor]:
    """Both operands divided by their norms. The lower bound is not part of the norms' history, as in PyTorch."""
    shape, dtype = broadcast(x.shape, y.shape), join(x.dtype, y.dtype)
    found = []
    for operand in (x, y):
        operand = F.to(F.expand(operand, shape), dtype=dtype)
        norm = F.clone(F.norm(operand, 2, dim, True))
        recording, engine.grad_enabled = engine.grad_enabled, False
        try:
            F.clamp_min_(norm, eps)
        finally:
            engine.grad_enabled = recording
        found.append(operand / norm)
    return found[0], found[1]
