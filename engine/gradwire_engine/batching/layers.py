"""Convolution, pooling and normalization of mapped tensors: samples join the batch, or become groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..functional import F
from ..tensor import Tensor
from .level import Level, rule

# Folding. ``inner`` has the samples in front.


def _into_batch(inner: Any) -> Any:
    """``(samples, batch, ...)`` as one batch."""
    return F.reshape(inner, (inner.shape[0] * inner.shape[1], *inner.shape[2:]))


def _into_channels(inner: Any) -> Any:
    """``(samples, batch, channels, ...)`` as ``(batch, samples * channels, ...)``."""
    samples, batch, channels, *rest = inner.shape
    return F.reshape(F.movedim(inner, 0, 1), (batch, samples * channels, *rest))


def _from_channels(found: Any, samples: int) -> Any:
    batch, channels, *rest = found.shape
    return F.movedim(F.reshape(found, (batch, samples, channels // samples, *rest)), 1, 0)


# Convolution


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv(x: Level, tensor: Tensor, weight: Tensor, bias: Tensor | None, *geometry: Any) -> Any:
    count = weight.ndim - 2
    alone = tensor.ndim == count + 1
    own = bias is not None and (x.has(bias) or x.has(weight))
    given = None if own else bias
    if x.has(weight):
        batch = F.unsqueeze(tensor, 0) if alone else tensor
        options = list(geometry)
        at = x.entry.op.positions["groups"] - 3
        options[at] *= x.size
        found = _from_channels(
            x.call(_into_channels(x.front(batch)), _into_batch(x.inside(weight)), given, *options), x.size
        )
    elif x.has(tensor):
        inner = x.inside(tensor)
        found = x.call(inner if alone else _into_batch(inner), weight, given, *geometry)
    else:
        found = x.front(x.call(tensor, weight, given, *geometry))
    result = x.wrap(found, x.inferred.outs[0])
    return result + F.reshape(bias, (-1, *(1,) * count)) if own else result


@rule("convolution", "convolution_input")
def convolution(x: Level, tensor: Tensor, weight: Tensor, *geometry: Any) -> Any:
    if not x.has(weight):
        return x.call(_into_batch(x.inside(tensor)), weight, *geometry)
    *rest, groups = geometry
    found = x.call(_into_channels(x.front(tensor)), _into_batch(x.inside(weight)), *rest, groups * x.size)
    return _from_channels(found, x.size)


@rule("convolution_weight")
def convolution_weight(x: Level, gradient: Tensor, tensor: Tensor, *geometry: Any) -> Any:
    *rest, groups = geometry
    pair = [_into_channels(x.front(t)) for t in (gradient, tensor)]
    return x.call(*pair, *rest, groups * x.size)


# Pooling


@rule(
    *[
        name.format(n)
        for n in (1, 2, 3)
        for name in (
            "max_pool{}d", "max_pool{}d_with_indices", "avg_pool{}d", "adaptive_avg_pool{}d", "adaptive_max_pool{}d",
        )
    ]
)  # fmt: skip
def pool(x: Level, tensor: Tensor, *geometry: Any) -> Any:
    count = int(next(c for c in x.entry.op.name if c.isdigit()))
    inner = x.inside(tensor)
    return x.call(_into_batch(inner) if tensor.ndim == count + 2 else inner, *geometry)


@rule("max_pool_backward", "max_pool_pick")
def max_pool_backward(x: Level, *values: Any) -> Any:
    return x.call(*[x.front(v) for v in values])


@rule("avg_pool_backward", "adaptive_avg_pool_backward")
def avg_pool_backward(x: Level, gradient: Tensor, extents: Sequence[int], *geometry: Any) -> Any:
    inner = x.inside(gradient)
    return x.call(F.reshape(inner, (-1, 1, *inner.shape[-len(extents) :])), extents, *geometry)


@rule("pad", "pad_backward")
def pad(x: Level, tensor: Tensor, sizes: Sequence[int], mode: str, *value: Any) -> Any:
    inner = x.inside(tensor)
    # Modes other than this take a batch of channels, or one without the batch.
    if mode != "constant" and tensor.ndim == len(sizes) // 2 + 2:
        inner = _into_batch(inner)
    return x.call(inner, sizes, mode, *value)


# Normalization


@rule("layer_norm", "rms_norm")
def over_last(x: Level, tensor: Tensor, shape: Sequence[int], *options: Any) -> Any:
    *parameters, eps = options
    if not any(x.has(p) for p in parameters):
        return x.call(x.inside(tensor), shape, *parameters, eps)
    found = x.call(tensor, shape, *[None] * len(parameters), eps)
    return _scaled(found, *parameters)


def _scaled(found: Any, weight: Tensor | None, bias: Tensor | None = None) -> Any:
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def _per_channel(parameter: Tensor | None, ndim: int) -> Any:
    return None if parameter is None else F.reshape(parameter, (-1, *(1,) * (ndim - 2)))


@rule("group_norm")
def group_norm(x: Level, tensor: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Any:
    if not x.has(weight) and not x.has(bias):
        return x.call(_into_batch(x.inside(tensor)), groups, weight, bias, eps)
    found = x.call(tensor, groups, None, None, eps)
    return _scaled(found, _per_channel(weight, tensor.ndim), _per_channel(bias, tensor.ndim))


def _all_channels(x: Level, *parameters: Tensor | None) -> list[Any]:
    """Parameters of one element per channel, for the channels of all samples."""
    return [None if p is None else F.reshape(x.front(p), (x.size * p.numel,)) for p in parameters]


@rule("batch_norm_training")
def batch_norm_training(x: Level, tensor: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Any:
    found, mean, var = x.call(_into_channels(x.front(tensor)), *_all_channels(x, weight, bias), eps)
    return _from_channels(found, x.size), mean, var


@rule("batch_norm_inference")
def batch_norm_inference(x: Level, tensor: Tensor, *options: Any) -> Any:
    *parameters, eps = options
    return _from_channels(x.call(_into_channels(x.front(tensor)), *_all_channels(x, *parameters), eps), x.size)


@rule("batch_norm")
def batch_norm(
    x: Level, tensor: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
    bias: Tensor | None, training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    if not training:
        return x.front(F.batch_norm_inference(tensor, running_mean, running_var, weight, bias, eps))
    found, mean, var = _by_own_statistics(x, tensor, weight, bias, eps)
    if running_mean is not None and running_var is not None:
        count = tensor.numel // max(tensor.shape[1], 1)
        _move(running_mean, mean, momentum)
        _move(running_var, var * (count / max(count - 1, 1)), momentum)
    return x.front(found)


def _by_own_statistics(
    x: Level, tensor: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Any, Any, Any]:
    """Normalized values, mean and variance; the latter two are mapped only where the input is."""
    if x.has(tensor):
        found, mean, var = F.batch_norm_training(tensor, weight, bias, eps)
        return found, mean, var
    found, mean, var = F.batch_norm_training(tensor, None, None, eps)
    return _scaled(found, _per_channel(weight, tensor.ndim), _per_channel(bias, tensor.ndim)), mean, var


def _move(running: Tensor, value: Any, momentum: float) -> None:
    """One step of a running average; where only the value is mapped, the write is refused."""
    F.copy_(running, running * (1 - momentum) + F.detach(value) * momentum)


@rule("instance_norm")
def instance_norm(
    x: Level, tensor: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
    bias: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    batch, channels, *rest = tensor.shape
    parameters = [None if p is None else F.repeat(p, (batch,)) for p in (weight, bias)]
    flat = F.reshape(tensor, (1, batch * channels, *rest))
    if not use_input_stats:
        running = [F.repeat(p, (batch,)) for p in (running_mean, running_var) if p is not None]
        return x.front(F.reshape(F.batch_norm_inference(flat, *running, *parameters, eps), tensor.shape))
    found, mean, var = _by_own_statistics(x, flat, parameters[0], parameters[1], eps)
    if running_mean is not None and running_var is not None:
        count = 1
        for n in rest:
            count *= n
        mean, var = (F.mean(F.reshape(v, (batch, channels)), 0) for v in (mean, var))
        _move(running_mean, mean, momentum)
        _move(running_var, var * (count / max(count - 1, 1)), momentum)
    return x.front(F.reshape(found, tensor.shape))


@rule("layer_norm_backward")
def layer_norm_backward(
    x: Level, gradient: Tensor, tensor: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, bias: bool
) -> Any:
    results: list[Any] = [x.wrap(_input_gradient(x, gradient, tensor, mean, rstd, weight), x.inferred.outs[0])]
    if weight is not None:
        lead = tuple(range(tensor.ndim - weight.ndim))
        along = gradient * ((tensor - mean) * rstd)
        results.append(F.sum(along, lead) if lead else along)
        if bias:
            results.append(F.sum(gradient, lead) if lead else gradient)
    return [x.front(r) for r in results]


def _input_gradient(x: Level, gradient: Tensor, tensor: Tensor, mean: Tensor, rstd: Tensor, weight: Any) -> Any:
    if weight is not None:
        gradient = F.to(gradient * weight, dtype=tensor.dtype)
    return x.call(*[x.front(t) for t in (gradient, tensor, mean, rstd)], None, False)[0]
