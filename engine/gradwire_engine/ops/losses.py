"""Losses. Those over classes take their logarithms and their gradient in one kernel each."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType, float32
from gradwire_protocol.errors import IndexOutOfRange, KernelError
from gradwire_protocol.meta import Meta
from gradwire_protocol.ops.losses import class_dim, is_distribution
from gradwire_protocol.shapes import broadcast

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import composite, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import dots_of_rows, extreme, total
from ..runtime.arrays import Array, Namespace, Native, native
from .likelihoods import reduced

LOWEST_LOG = -100.0
"""Where binary cross entropy cuts logarithms, so that a wrong certainty costs a finite amount."""

BLOCK = 1 << 16
"""Elements worked on at a time: several passes over as many stay in a CPU's cache."""

LEAST_VARIANCE = float(np.float32(1e-12))
"""Below this ``x * (1 - x)`` does not divide; a single precision constant in PyTorch, whatever the dtype."""


def _reduce(xp: Namespace, losses: Array, reduction: str) -> Array:
    if reduction == "none":
        return losses
    summed = total(xp, losses, tuple(range(losses.ndim)))
    return summed if reduction == "sum" else xp.divide(summed, losses.dtype.type(losses.size))


def _spread(g: Tensor, count: int, reduction: str) -> Tensor:
    """The gradient for each of ``count`` losses, from that for the reduced one (it stays 0-dim, and broadcasts)."""
    return g / count if reduction == "mean" else g


def _elements(s: Saved) -> int:
    """How many losses there were before the reduction."""
    out: int = s.outs[0].numel
    if s.reduction == "none":
        return out
    return prod(broadcast(s.meta("self").shape, s.meta("target").shape))


# Elementwise losses


@kernel("mse_loss")
def mse_loss(xp: Namespace, x: Array, target: Array, reduction: str) -> Array:
    difference = xp.subtract(x, target)
    if reduction != "none" and xp is np and difference.ndim and difference.flags.c_contiguous:
        flat = difference.reshape(-1)
        # One long dot product adds term to term, and rounds with every one.
        summed = xp.dot(flat, flat) if flat.size <= BLOCK else dots_of_rows(xp, flat[None], flat[None])[0]
        return summed if reduction == "sum" else summed / flat.dtype.type(flat.size)
    return _reduce(xp, xp.multiply(difference, difference), reduction)


@composite("l1_loss")
def l1_loss(engine: EngineContext, x: Tensor, target: Tensor, reduction: str) -> Tensor:
    return reduced(F.abs(x - target), reduction)


@kernel("smooth_l1_loss")
def smooth_l1_loss(xp: Namespace, x: Array, target: Array, reduction: str, beta: float) -> Array:
    distance = xp.abs(xp.subtract(x, target))
    if beta == 0:
        return _reduce(xp, distance, reduction)
    # With c the distance cut at beta, both branches are c * (distance - c / 2) / beta.
    cut = xp.minimum(distance, beta)
    distance -= cut * 0.5
    distance *= cut
    distance /= beta
    return _reduce(xp, distance, reduction)


@kernel("huber_loss")
def huber_loss(xp: Namespace, x: Array, target: Array, reduction: str, delta: float) -> Array:
    distance = xp.abs(xp.subtract(x, target))
    cut = xp.minimum(distance, delta)
    distance -= cut * 0.5
    distance *= cut
    return _reduce(xp, distance, reduction)


def _both(s: Saved, slope: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of a function of the difference, from that for ``self``."""
    return slope, -slope if s.needs("target") else None


@joint_derivative("mse_loss", saves="self target")
def mse_loss_gradient(s: Saved, g: Tensor) -> Any:
    return _both(s, (s.self - s.target) * (_spread(g, _elements(s), s.reduction) * 2))


@joint_derivative("smooth_l1_loss", saves="self target")
def smooth_l1_loss_gradient(s: Saved, g: Tensor) -> Any:
    difference, g = s.self - s.target, _spread(g, _elements(s), s.reduction)
    if s.beta == 0:
        return _both(s, F.sgn(difference) * g)
    return _both(s, F.clamp(difference / s.beta, -1.0, 1.0) * g)


@joint_derivative("huber_loss", saves="self target")
def huber_loss_gradient(s: Saved, g: Tensor) -> Any:
    difference, g = s.self - s.target, _spread(g, _elements(s), s.reduction)
    return _both(s, F.clamp(difference, -s.delta, s.delta) * g)


@kernel("binary_cross_entropy")
def binary_cross_entropy(xp: Namespace, x: Array, target: Array, weight: Array | None, reduction: str) -> Array:
    if xp is np and x.size and not (x.min() >= 0 and x.max() <= 1):
        raise KernelError("binary_cross_entropy: the input has values outside [0, 1], or NaN; apply sigmoid first")
    losses = xp.maximum(xp.log1p(-x), LOWEST_LOG)
    losses *= target - 1
    losses -= xp.maximum(xp.log(x), LOWEST_LOG) * target
    if weight is not None:
        losses *= weight
    return _reduce(xp, losses, reduction)


@joint_derivative("binary_cross_entropy", saves="self target weight")
def binary_cross_entropy_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, target = s.self, s.target
    g = _spread(g, _elements(s), s.reduction)
    if s.weight is not None:
        g = g * s.weight
    g_x = g * (x - target) / F.clamp_min((1 - x) * x, LEAST_VARIANCE) if s.needs("self") else None
    if not s.needs("target"):
        return g_x, None
    odds = F.log1p(-x) - F.log(x)
    return g_x, g * F.clamp(odds, LOWEST_LOG, -LOWEST_LOG)


@kernel("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    xp: Namespace, x: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Array:
    # softplus(-x), the cost of a positive: the exponent is never positive.
    losses = xp.exp(-xp.abs(x))
    losses = xp.log1p(losses)
    losses += xp.maximum(-x, 0)
    if pos_weight is not None:
        losses = losses * ((pos_weight - 1) * target + 1)
    losses = losses + (1 - target) * x
    if weight is not None:
        losses = losses * weight
    return _reduce(xp, losses, reduction)


@joint_derivative("binary_cross_entropy_with_logits", saves="self target weight pos_weight")
def binary_cross_entropy_with_logits_gradient(s: Saved, g: Tensor) -> Any:
    x, target = s.self, s.target
    g = _spread(g, _elements(s), s.reduction)
    if s.weight is not None:
        g = g * s.weight
    g_x = g_target = None
    if s.needs("self"):
        if s.pos_weight is None:
            g_x = g * (F.sigmoid(x) - target)
        else:
            positive = target * s.pos_weight
            g_x = g * ((positive + 1 - target) * F.sigmoid(x) - positive)
    if s.needs("target"):
        if s.pos_weight is None:
            g_target = -(g * x)
        else:
            g_target = g * ((s.pos_weight - 1) * F.softplus(-x) - x)
    return g_x, g_target


@kernel("kl_div")
def kl_div(xp: Namespace, x: Array, target: Array, reduction: str, log_target: bool) -> Array:
    if log_target:
        losses = xp.subtract(target, x)
        losses = losses * xp.exp(target)
    else:
        safe = xp.where(target == 0, target.dtype.type(1), target)
        losses = target * xp.log(safe) - target * x
    if reduction == "batchmean":
        return xp.divide(total(xp, losses, tuple(range(losses.ndim))), x.shape[0] if x.ndim else 1)
    return _reduce(xp, losses, reduction)


@joint_derivative("kl_div", saves="self target")
def kl_div_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, target = s.self, s.target
    if s.reduction == "batchmean":
        g = g / (x.shape[0] if x.ndim else 1)
    else:
        g = _spread(g, _elements(s), s.reduction)
    p = F.exp(target) if s.log_target else target
    g_x = F.expand(-(p * g), broadcast(x.shape, target.shape)) if s.needs("self") else None
    if not s.needs("target"):
        return g_x, None
    if s.log_target:
        return g_x, g * p * (target - x + 1)
    return g_x, g * (F.log(target) + 1 - x)


# Classes. Arrays are brought to (samples, classes, size).


def _wide(xp: Namespace, x: Array) -> Array:
    """Half precision as float32."""
    wide = native(float32)
    return x.astype(wide) if x.dtype.itemsize == 2 else x


def _by_class(x: Array) -> Array:
    if x.ndim < 2:
        return x.reshape(1, x.shape[0], 1)
    return x.reshape((*x.shape[:2], prod(x.shape[2:])))


def _classes(xp: Namespace, target: Array, count: int, ignore_index: int) -> tuple[Array, Array | None]:
    """Indices to gather by, ``(samples, size)``, and which samples count (``None``: all)."""
    if xp is not np:
        counted = target != ignore_index
        return xp.where(counted, target, 0).astype(np.int64), counted
    if not target.size:
        return target.astype(np.int64), None
    low, high = int(target.min()), int(target.max())
    if low >= 0 and high < count and not low <= ignore_index <= high:
        return target, None
    counted = target != ignore_index
    found = np.where(counted, target, 0).astype(np.int64)
    wrong = found[(found < 0) | (found >= count)]
    if wrong.size:
        raise IndexOutOfRange(f"target class {int(wrong[0])} is outside the {count} classes")
    return found, None if counted.all() else counted


def _target(target: Array, samples: int, size: int) -> Array:
    return target.reshape(samples, size)


def _factors(xp: Namespace, classes: Array, counted: Array | None, weight: Array | None, dtype: Native) -> Array | None:
    """The weight of each sample, ``(samples, size)``; ``None`` when all are 1."""
    if weight is not None:
        factors = xp.take(weight, classes)
        return factors if counted is None else factors * counted
    return None if counted is None else counted.astype(dtype)


def _pick(xp: Namespace, x: Array, classes: Array) -> Array:
    """Each sample's entry for its class: ``(samples, size)``."""
    if x.shape[2] == 1:
        return x[xp.arange(x.shape[0]), classes[:, 0], 0][:, None]
    return xp.take_along_axis(x, classes[:, None, :], axis=1)[:, 0]


def _denominator(factors: Array | None, count: int) -> Array | int:
    return count if factors is None else factors.sum()


def _safe_denominator(xp: Namespace, factors: Array | None, count: int) -> Array | int:
    """For gradients: where no sample counts the mean is NaN, but its gradient is 0."""
    if factors is None:
        return count
    summed = factors.sum()
    return xp.where(summed == 0, factors.dtype.type(1), summed)


def _likelihood(
    xp: Namespace, logs: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str, smoothing: float
) -> Array:
    """The loss of logarithms ``(samples, classes, size)`` for class indices."""
    samples, count, size = logs.shape
    classes, counted = _classes(xp, _target(target, samples, size), count, ignore_index)
    factors = _factors(xp, classes, counted, weight, logs.dtype)
    losses = -_pick(xp, logs, classes)
    if factors is not None:
        # Not counted means 0, even where the logarithm is infinite.
        losses = xp.where(factors == 0, losses.dtype.type(0), losses * factors)
    if smoothing:
        spread = logs if weight is None else logs * weight[:, None]
        even = total(xp, spread, (1,))
        if counted is not None:
            even = even * counted
        losses = losses * (1 - smoothing) - even * (smoothing / count)
    if reduction == "none":
        return losses
    summed = losses.sum()
    return summed if reduction == "sum" else xp.divide(summed, _denominator(factors, samples * size))


@kernel("nll_loss", half=True)
def nll_loss(xp: Namespace, x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str) -> Array:
    weight = None if weight is None else _wide(xp, weight)
    losses = _likelihood(xp, _by_class(_wide(xp, x)), target, weight, ignore_index, reduction, 0.0)
    return losses.reshape(()) if reduction == "none" and x.ndim == 1 else losses


def _log_softmax(xp: Namespace, x: Array) -> Array:
    """Over the middle dimension of ``(samples, classes, size)``, in new memory."""
    if x.shape[2] == 1 and x.size:
        flat = x[:, :, 0]
        rows, count = flat.shape
        logs = xp.empty(flat.shape, x.dtype)
        step = max(1, BLOCK // count) if xp is np else rows
        for start in range(0, rows, step):
            part = logs[start : start + step]
            xp.subtract(flat[start : start + step], extreme(xp, flat[start : start + step], (1,), True), out=part)
            part -= xp.log(total(xp, xp.exp(part), (1,), True))
        return logs[:, :, None]
    logs = x - x.max(axis=1, keepdims=True) if x.size else x.copy()
    logs -= xp.log(xp.exp(logs).sum(axis=1, keepdims=True))
    return logs


@kernel("cross_entropy", half=True)
def cross_entropy(
    xp: Namespace, x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> tuple[Array, Array]:  # fmt: skip
    weight = None if weight is None else _wide(xp, weight)
    logs = _log_softmax(xp, _by_class(_wide(xp, x)))
    if target.shape == x.shape and target.dtype.kind not in "iub":
        shares = _by_class(_wide(xp, target))
        losses = _cross_entropy_of_distribution(xp, logs, shares, weight, reduction, label_smoothing)
    else:
        losses = _likelihood(xp, logs, target, weight, ignore_index, reduction, label_smoothing)
    if reduction == "none":
        losses = losses.reshape(tuple(n for i, n in enumerate(x.shape) if i != (1 if x.ndim > 1 else 0)))
    return losses, logs.reshape(x.shape)


def _cross_entropy_of_distribution(
    xp: Namespace, logs: Array, target: Array, weight: Array | None, reduction: str, smoothing: float
) -> Array:
    if smoothing:
        target = target * (1 - smoothing) + smoothing / logs.shape[1]
    if weight is not None:
        target = target * weight[:, None]
    losses = -total(xp, logs * target, (1,))
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.dtype.type(losses.size)


@kernel("class_weights", half=True)
def class_weights(
    xp: Namespace, target: Array, weight: Array | None, shape: tuple[int, ...], ignore_index: int, mean: bool,
    label_smoothing: float, dtype: DType,
) -> Array:  # fmt: skip
    wide = native(float32 if dtype.is_low_precision else dtype)
    weight = None if weight is None else weight.astype(wide)
    samples, count, size = (1, shape[0], 1) if len(shape) < 2 else (shape[0], shape[1], prod(shape[2:]))
    classes, counted = _classes(xp, _target(target, samples, size), count, ignore_index)
    factors = _factors(xp, classes, counted, weight, wide)
    divisor = _safe_denominator(xp, factors, max(samples * size, 1)) if mean else 1
    result = xp.zeros((samples, count, size), wide)
    if label_smoothing:
        even = xp.full(count, 1, wide) if weight is None else weight
        result += (even * (label_smoothing / count) / divisor)[:, None]
        if counted is not None:
            result *= counted[:, None, :]
    hot = (1 - label_smoothing) / divisor if factors is None else factors * (1 - label_smoothing) / divisor
    _add_at_classes(xp, result, classes, hot)
    return result.reshape(shape)


def _add_at_classes(xp: Namespace, x: Array, classes: Array, values: Array | float) -> None:
    """Add to each sample's entry for its class."""
    samples, _, size = x.shape
    rows = xp.arange(samples)[:, None]
    x[rows, classes, xp.arange(size)] += values


@kernel("cross_entropy_backward")
def cross_entropy_backward(
    xp: Namespace, g: Array, logs: Array, target: Array, weight: Array | None, ignore_index: int, mean: bool,
    label_smoothing: float,
) -> Array:  # fmt: skip
    shape = logs.shape
    logs = _by_class(logs)
    samples, count, size = logs.shape
    classes, counted = _classes(xp, _target(target, samples, size), count, ignore_index)
    weight = None if weight is None else weight.astype(logs.dtype)
    factors = _factors(xp, classes, counted, weight, logs.dtype)
    g = g.astype(logs.dtype).reshape(samples, size) if g.ndim else g.astype(logs.dtype)
    if mean:
        g = xp.divide(g, _safe_denominator(xp, factors, max(samples * size, 1)))
    # Each loss is -(hot * log of its class) - even * (weighted sum of all logs); the softmax gets their sum.
    hot = g * (1 - label_smoothing) if label_smoothing else g
    if factors is not None:
        hot = hot * factors
    found = xp.exp(logs)
    if not label_smoothing:
        found *= hot if hot.ndim == 0 else hot[:, None, :]
        _add_at_classes(xp, found, classes, -hot)
        return found.reshape(shape)
    even = g * (label_smoothing / count)
    if counted is not None:
        even = even * counted
    spread = xp.full(count, 1, logs.dtype) if weight is None else weight
    mass = hot + even * spread.sum()
    found *= mass if mass.ndim == 0 else mass[:, None, :]
    found -= (even if even.ndim == 0 else even[:, None, :]) * spread[:, None]
    _add_at_classes(xp, found, classes, -hot)
    return found.reshape(shape)


def _for_classes(g: Tensor, self: Meta) -> Tensor:
    """A gradient for one loss per sample, broadcastable over classes."""
    return g if g.ndim == 0 else F.unsqueeze(g, class_dim(self))


def _weights(s: Saved, smoothing: float, dtype: DType) -> Tensor:
    self = s.meta("self")
    mean = s.reduction == "mean"
    found: Tensor = F.class_weights(s.target, s.weight, self.shape, s.ignore_index, mean, smoothing, dtype)
    return found


@joint_derivative("nll_loss", saves="target weight")
def nll_loss_gradient(s: Saved, g: Tensor) -> Tensor:
    self = s.meta("self")
    return -(_for_classes(g, self) * _weights(s, 0.0, self.dtype))


@joint_derivative("cross_entropy", saves="target weight result1", undefined=True)
def cross_entropy_gradient(s: Saved, g: Tensor | None, g_logs: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    self, target, logs = s.meta("self"), s.target, s.result1
    dim = class_dim(self)
    if not is_distribution(self, target.meta):
        if g_logs is None and g is not None and not logs.engine.differentiates:
            mean = s.reduction == "mean"
            rest = (s.ignore_index, mean, s.label_smoothing)
            return F.cross_entropy_backward(g, logs, target, s.weight, *rest), None
        factors = _weights(s, s.label_smoothing, logs.dtype)
        g_target = None
    else:
        mixed = target * (1 - s.label_smoothing) + s.label_smoothing / self.shape[dim] if s.label_smoothing else target
        share = _class_factor(s, self, logs)
        factors = mixed if share is None else mixed * share
        g_target = None
        if g is not None and s.needs("target"):
            g_target = -(_for_classes(g, self) * logs)
            g_target = g_target if share is None else g_target * share
            g_target = g_target * (1 - s.label_smoothing) if s.label_smoothing else g_target
    if not s.needs("self"):
        return None, g_target
    through = g_logs
    if g is not None:
        part = -(_for_classes(g, self) * factors)
        through = part if through is None else through + part
    if through is None:
        return None, g_target
    return through - F.exp(logs) * F.sum(through, (dim,), True), g_target


def _class_factor(s: Saved, self: Meta, logs: Tensor) -> Tensor | float | None:
    """What multiplies the entries of a target of probabilities: class weights, and the division of a mean."""
    count = self.numel // self.shape[class_dim(self)] if s.reduction == "mean" and self.numel else 1
    if s.weight is None:
        return 1 / count if count != 1 else None
    shape = [1] * self.ndim
    shape[class_dim(self)] = -1
    return F.reshape(s.weight, tuple(shape)) / count
