"""Layers, images and losses of mapped tensors: samples join the batch, or become groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.ops.losses import class_dim, is_distribution

from ..functional import F
from ..tensor import Tensor
from .default_rules import elementwise
from .level import VmapLevel, rule, sample_by_sample

# Folding. ``inner`` has the samples in front.


def _into_batch(inner: Tensor) -> Tensor:
    """``(samples, batch, ...)`` as one batch."""
    return F.reshape(inner, (inner.shape[0] * inner.shape[1], *inner.shape[2:]))


def _into_channels(inner: Tensor) -> Tensor:
    """``(samples, batch, channels, ...)`` as ``(batch, samples * channels, ...)``."""
    samples, batch, channels, *rest = inner.shape
    return F.reshape(F.movedim(inner, 0, 1), (batch, samples * channels, *rest))


def _from_channels(found: Tensor, samples: int) -> Tensor:
    batch, channels, *rest = found.shape
    return F.movedim(F.reshape(found, (batch, samples, channels // samples, *rest)), 1, 0)


# Convolution


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv(x: VmapLevel, tensor: Tensor, weight: Tensor, bias: Tensor | None, *geometry: Any) -> Tensor:
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
def convolution(x: VmapLevel, tensor: Tensor, weight: Tensor, *geometry: Any) -> Tensor:
    if not x.has(weight):
        return x.call(_into_batch(x.inside(tensor)), weight, *geometry)
    *rest, groups = geometry
    found = x.call(_into_channels(x.front(tensor)), _into_batch(x.inside(weight)), *rest, groups * x.size)
    return _from_channels(found, x.size)


@rule("convolution_weight")
def convolution_weight(x: VmapLevel, gradient: Tensor, tensor: Tensor, *geometry: Any) -> Tensor:
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
def pool(x: VmapLevel, tensor: Tensor, *geometry: Any) -> Any:
    count = int(next(c for c in x.entry.op.name if c.isdigit()))
    inner = x.inside(tensor)
    return x.call(_into_batch(inner) if tensor.ndim == count + 2 else inner, *geometry)


@rule("avg_pool_backward", "adaptive_avg_pool_backward")
def avg_pool_backward(x: VmapLevel, gradient: Tensor, extents: Sequence[int], *geometry: Any) -> Tensor:
    inner = x.inside(gradient)
    return x.call(F.reshape(inner, (-1, 1, *inner.shape[-len(extents) :])), extents, *geometry)


@rule("pad", "pad_backward")
def pad(x: VmapLevel, tensor: Tensor, sizes: Sequence[int], mode: str, *value: int | None) -> Tensor:
    inner = x.inside(tensor)
    # Modes other than this take a batch of channels, or one without the batch.
    if mode != "constant" and tensor.ndim == len(sizes) // 2 + 2:
        inner = _into_batch(inner)
    return x.call(inner, sizes, mode, *value)


# Normalization


@rule("layer_norm", "rms_norm")
def over_last(x: VmapLevel, tensor: Tensor, shape: Sequence[int], *options: Any) -> Tensor:
    *parameters, eps = options
    if not any(x.has(p) for p in parameters):
        return x.call(x.inside(tensor), shape, *parameters, eps)
    found = x.call(tensor, shape, *[None] * len(parameters), eps)
    return _scaled(found, *parameters)


def _scaled(found: Tensor, weight: Tensor | None, bias: Tensor | None = None) -> Tensor:
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def _per_channel(parameter: Tensor | None, ndim: int) -> Tensor | None:
    return None if parameter is None else F.reshape(parameter, (-1, *(1,) * (ndim - 2)))


@rule("group_norm")
def group_norm(
    x: VmapLevel, tensor: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    if not x.has(weight) and not x.has(bias):
        return x.call(_into_batch(x.inside(tensor)), groups, weight, bias, eps)
    found = x.call(tensor, groups, None, None, eps)
    return _scaled(found, _per_channel(weight, tensor.ndim), _per_channel(bias, tensor.ndim))


def _all_channels(x: VmapLevel, *parameters: Tensor | None) -> list[Tensor | None]:
    """Parameters of one element per channel, for the channels of all samples."""
    return [None if p is None else F.reshape(x.front(p), (x.size * p.numel,)) for p in parameters]


@rule("batch_norm_training")
def batch_norm_training(
    x: VmapLevel, tensor: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    found, mean, var = x.call(_into_channels(x.front(tensor)), *_all_channels(x, weight, bias), eps)
    return _from_channels(found, x.size), mean, var


@rule("batch_norm_inference")
def batch_norm_inference(x: VmapLevel, tensor: Tensor, *options: Any) -> Tensor:
    *parameters, eps = options
    return _from_channels(x.call(_into_channels(x.front(tensor)), *_all_channels(x, *parameters), eps), x.size)


@rule("batch_norm")
def batch_norm(
    x: VmapLevel, tensor: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
    bias: Tensor | None, training: bool, momentum: float, eps: float,
) -> Tensor:  # fmt: skip
    if not training:
        return x.front(F.batch_norm_inference(tensor, running_mean, running_var, weight, bias, eps))
    found, mean, var = _by_own_statistics(x, tensor, weight, bias, eps)
    if running_mean is not None and running_var is not None:
        count = tensor.numel // max(tensor.shape[1], 1)
        _move(running_mean, mean, momentum)
        _move(running_var, var * (count / max(count - 1, 1)), momentum)
    return x.front(found)


def _by_own_statistics(
    x: VmapLevel, tensor: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalized values, mean and variance; the latter two are mapped only where the input is."""
    if x.has(tensor):
        found, mean, var = F.batch_norm_training(tensor, weight, bias, eps)
        return found, mean, var
    found, mean, var = F.batch_norm_training(tensor, None, None, eps)
    return _scaled(found, _per_channel(weight, tensor.ndim), _per_channel(bias, tensor.ndim)), mean, var


def _move(running: Tensor, value: Tensor, momentum: float) -> None:
    """One step of a running average; where only the value is mapped, the write is refused."""
    F.copy_(running, running * (1 - momentum) + F.detach(value) * momentum)


@rule("instance_norm")
def instance_norm(
    x: VmapLevel, tensor: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
    bias: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
) -> Tensor:  # fmt: skip
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
    x: VmapLevel, gradient: Tensor, tensor: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, bias: bool
) -> Any:
    results: list[Any] = [x.wrap(_input_gradient(x, gradient, tensor, mean, rstd, weight), x.inferred.outs[0])]
    if weight is not None:
        lead = tuple(range(tensor.ndim - weight.ndim))
        along = gradient * ((tensor - mean) * rstd)
        results.append(F.sum(along, lead) if lead else along)
        if bias:
            results.append(F.sum(gradient, lead) if lead else gradient)
    return [x.front(r) for r in results]


def _input_gradient(
    x: VmapLevel, gradient: Tensor, tensor: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None
) -> Tensor:
    if weight is not None:
        gradient = F.to(gradient * weight, dtype=tensor.dtype)
    return x.call(*[x.front(t) for t in (gradient, tensor, mean, rstd)], None, False)[0]


@rule("interpolate", "interpolate_backward", "channel_shuffle")
def in_batch(x: VmapLevel, tensor: Tensor, *options: Any) -> Tensor:
    samples, batch, *rest = x.inside(tensor).shape
    found = x.call(F.reshape(x.inside(tensor), (samples * batch, *rest)), *options)
    return F.reshape(found, (samples, batch, *found.shape[1:]))


@rule("grid_sampler", "grid_gather")
def points(x: VmapLevel, tensor: Tensor, grid: Tensor, *options: Any) -> Tensor:
    inner, points = x.front(tensor), x.front(grid)
    samples, batch, *rest = inner.shape
    found = x.call(
        F.reshape(inner, (samples * batch, *rest)), F.reshape(points, (samples * batch, *points.shape[2:])), *options
    )
    return F.reshape(found, (samples, batch, *found.shape[1:]))


@rule("embedding_renorm_")
def embedding_renorm_(x: VmapLevel, *values: Any) -> Tensor:
    return sample_by_sample(x, list(values))


@rule(
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "kl_div",
)  # fmt: skip
def by_element(x: VmapLevel, *values: Any) -> Tensor:
    at = x.entry.op.positions["reduction"]
    reduction = values[at]
    if reduction == "none":
        same = values[0].shape == values[1].shape  # some losses do not broadcast these two
        lifted = [x.wrap(x.front(v), v.meta) for v in values[:2]] if same else values[:2]
        return elementwise(x, *lifted, *values[2:])
    losses = x.call(*values[:at], "none", *values[at + 1 :])
    if reduction == "mean":
        return F.mean(losses)
    total = F.sum(losses)
    if reduction == "batchmean":
        first: Tensor = values[0]
        return total / (first.shape[0] if first.ndim else 1)
    return total


def _fold(x: VmapLevel, tensor: Tensor, alone: bool) -> Tensor:
    """Samples as part of the batch; ``alone`` where one sample has none."""
    inner = x.front(tensor)
    return inner if alone else F.reshape(inner, (x.size * tensor.shape[0], *tensor.shape[1:]))


def _sequential(x: VmapLevel, values: tuple[Any, ...]) -> Any:
    return sample_by_sample(x, list(values))


@rule("nll_loss", "cross_entropy")
def by_class(x: VmapLevel, *values: Any) -> Any:
    scores, target, weight, ignored, reduction, *smoothing = values
    if x.has(weight):
        return _sequential(x, values)
    alone = scores.ndim == 1
    folded = [_fold(x, t, alone) for t in (scores, target)]
    logs: tuple[Any, ...] = ()
    losses = x.call(*folded, weight, ignored, "none", *smoothing)
    if type(losses) is tuple:
        losses, logs = losses[0], losses[1:]
    shape = tuple(n for i, n in enumerate(scores.shape) if i != class_dim(scores.meta))
    losses = x.wrap(F.reshape(losses, (x.size, *shape)))
    if reduction == "none":
        return (losses, *logs) if logs else losses
    reduced = F.sum(losses)
    if reduction == "mean":
        reduced = _mean(reduced, _counted(losses, scores, target, weight, ignored))
    return (reduced, *logs) if logs else reduced


def _mean(total: Tensor, count: Any) -> Tensor:
    """NaN where nothing counts, with a gradient of 0."""
    if not isinstance(count, Tensor):
        return total / count
    nothing = F.eq(count, 0)
    return F.where(nothing, float("nan"), total / F.where(nothing, 1.0, count))


def _counted(losses: Tensor, scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> Any:
    """What a mean divides by: the weights of the classes that count."""
    if is_distribution(scores.meta, target.meta):
        return losses.numel
    counts = F.ne(target, ignored)
    if weight is None:
        return F.to(F.sum(counts), dtype=losses.dtype)
    classes = F.where(counts, target, 0)
    return F.sum(F.index(weight, [classes]) * counts)


@rule("cross_entropy_backward")
def cross_entropy_backward(x: VmapLevel, gradient: Tensor, *rest: Any) -> Any:
    if any(x.has(v) for v in rest):
        return _sequential(x, (gradient, *rest))
    logs: Tensor = rest[0]
    # It is linear in the gradient, which is all that is mapped.
    one = x.engine.call("ones", gradient.shape, dtype=gradient.dtype, device=gradient.device)
    factor = x.call(one, *rest)
    return factor * (gradient if gradient.ndim == 0 else F.unsqueeze(gradient, class_dim(logs.meta)))
