"""Activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradwire_protocol.dtypes import float32

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, kernel, passes_on
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics import special
from ..numerics.select import select
from ..runtime.arrays import Array, Namespace
from ..runtime.random import Generator
from .functions import logistic


def _precisely(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A slope of several steps, for half precision in single precision: it is rounded once, as PyTorch's."""

    def gradient(g: Tensor, x: Tensor, *numbers: float) -> Tensor:
        if not x.dtype.is_low_precision:
            return rule(g, x, *numbers)
        return F.to(rule(F.to(g, dtype=float32), F.to(x, dtype=float32), *numbers), dtype=x.dtype)

    return gradient


# Cuts


@kernel("relu")
def relu(xp: Namespace, x: Array) -> Array:
    return xp.maximum(x, 0)


@kernel("relu6")
def relu6(xp: Namespace, x: Array) -> Array:
    return xp.clip(x, 0, 6)


@kernel("hardtanh")
def hardtanh(xp: Namespace, x: Array, low: float, high: float) -> Array:
    if x.dtype.kind != "f":
        low, high = int(low), int(high)
    return xp.clip(x, low, high)


@kernel("threshold")
def threshold(xp: Namespace, x: Array, limit: float, value: float) -> Array:
    if x.dtype.kind != "f":
        limit, value = int(limit), int(value)
    return select(xp, x <= limit, value, x)


@kernel("threshold_backward")
def threshold_backward(xp: Namespace, g: Array, x: Array, limit: float) -> Array:
    return select(xp, x <= limit, 0, g)


@kernel("hardtanh_backward")
def hardtanh_backward(xp: Namespace, g: Array, x: Array, low: float, high: float) -> Array:
    if x.dtype.itemsize < 4:
        x = x.astype(xp.float32)  # in half precision the bounds would be rounded
    return select(xp, (x <= low) | (x >= high), 0, g)


derivative("relu", self=("result", lambda s, g: F.threshold_backward(g, s.result, 0)))
derivative("relu6", self=("self", lambda s, g: F.hardtanh_backward(g, s.self, 0, 6)))
derivative("hardtanh", self=("self", lambda s, g: F.hardtanh_backward(g, s.self, s.min_val, s.max_val)))
derivative("threshold", self=("self", lambda s, g: F.threshold_backward(g, s.self, s.threshold)))
derivative(
    "threshold_backward",
    grad=("self", lambda s, g: F.threshold_backward(g, s.self, s.threshold)),
    self=lambda s, g: F.zeros_like(g),
)
derivative(
    "hardtanh_backward",
    grad=("self", lambda s, g: F.hardtanh_backward(g, s.self, s.min_val, s.max_val)),
    self=lambda s, g: F.zeros_like(g),
)


# Straight above zero, something else below


@kernel("leaky_relu")
def leaky_relu(xp: Namespace, x: Array, slope: float) -> Array:
    return select(xp, x > 0, x, x * slope)


@kernel("leaky_relu_backward")
def leaky_relu_backward(xp: Namespace, g: Array, x: Array, slope: float) -> Array:
    return select(xp, x > 0, g, g * slope)


@kernel("prelu")
def prelu(xp: Namespace, x: Array, weight: Array) -> Array:
    return select(xp, x > 0, x, x * weight.reshape(_per_channel(x.shape, weight.size)))


def _per_channel(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The shape under which weights, one or one per channel, broadcast with a tensor."""
    return (1,) * len(shape) if count == 1 else (1, count, *[1] * (len(shape) - 2))


def _by_slope(s: Saved, g: Tensor) -> Tensor:
    """One weight's gradient is the sum over all elements, or over all of its channel."""
    weight = s.meta("weight")
    under = F.where(s.self > 0, 0, g * s.self)
    summed = F.sum_to_size(under, _per_channel(under.shape, weight.numel))
    return F.reshape(summed, weight.shape)


def _by_prelu(s: Saved, g: Tensor) -> Tensor:
    weight = F.reshape(s.weight, _per_channel(s.self.shape, s.weight.numel))
    return F.where(s.self > 0, g, g * weight)


def _elu(xp: Namespace, x: Array, alpha: float, scale: float, inner: float) -> Array:
    below = xp.expm1(xp.minimum(x, 0) * inner) * (alpha * scale)
    return select(xp, x >= 0, x if scale == 1 else x * scale, below)


@_precisely
def _elu_slope(g: Tensor, x: Tensor, alpha: float, scale: float, inner: float) -> Tensor:
    # Only what is below zero has a curvature, zero itself has none.
    below = g * (F.exp(F.where(x < 0, x, 0) * inner) * (alpha * scale * inner))
    return F.where(x <= 0, below, g if scale == 1 else g * scale)


_SELU = (1.6732632423543772, 1.0507009873554805, 1.0)


@kernel("elu")
def elu(xp: Namespace, x: Array, alpha: float) -> Array:
    return _elu(xp, x, alpha, 1, 1)


@kernel("selu")
def selu(xp: Namespace, x: Array) -> Array:
    return _elu(xp, x, *_SELU)


@kernel("celu")
def celu(xp: Namespace, x: Array, alpha: float) -> Array:
    return _elu(xp, x, alpha, 1, 1 / alpha)


derivative("leaky_relu", self=("self", lambda s, g: F.leaky_relu_backward(g, s.self, s.negative_slope)))
passes_on("leaky_relu", "negative_slope")
derivative(
    "leaky_relu_backward",
    grad=("self", lambda s, g: F.leaky_relu_backward(g, s.self, s.negative_slope)),
    self=lambda s, g: F.zeros_like(g),
)
passes_on("leaky_relu_backward", "negative_slope")
derivative("prelu", self=("self weight", _by_prelu), weight=("self", _by_slope))
derivative("elu", self=("self", lambda s, g: _elu_slope(g, s.self, s.alpha, 1, 1)))
derivative("selu", self=("self", lambda s, g: _elu_slope(g, s.self, *_SELU)))
derivative("celu", self=("self", lambda s, g: _elu_slope(g, s.self, s.alpha, 1, 1 / s.alpha)))


# A number times the probability of something


_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1 / math.sqrt(2 * math.pi)
_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBE = 0.044715


@kernel("gelu")
def gelu(xp: Namespace, x: Array, approximate: str) -> Array:
    return special.blockwise(xp, _gelu_by_tanh if approximate == "tanh" else _gelu_by_erf, x)


def _gelu_by_tanh(xp: Namespace, x: Array) -> Array:
    inner = x * x
    inner *= _TANH_SCALE * _TANH_CUBE
    inner += _TANH_SCALE
    inner *= x
    return _half_more(xp.tanh(inner)) * x


def _gelu_by_erf(xp: Namespace, x: Array) -> Array:
    return _half_more(special.erf(xp, x * _ROOT_HALF)) * x


def _half_more(x: Array) -> Array:
    """From the range -1 to 1 to the range 0 to 1."""
    x += 1
    x *= 0.5
    return x


@kernel("gelu_backward")
def gelu_backward(xp: Namespace, g: Array, x: Array, approximate: str) -> Array:
    return special.blockwise(xp, _slope_by_tanh if approximate == "tanh" else _slope_by_erf, g, x)


def _slope_by_tanh(xp: Namespace, g: Array, x: Array) -> Array:
    square = x * x
    inner = xp.tanh(x * (square * (_TANH_SCALE * _TANH_CUBE) + _TANH_SCALE))
    slope = square * (3 * _TANH_SCALE * _TANH_CUBE) + _TANH_SCALE
    return g * (0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * slope)


def _slope_by_erf(xp: Namespace, g: Array, x: Array) -> Array:
    density = x * x
    density *= -0.5
    density = xp.exp(density)
    density *= x
    density *= _DENSITY
    return (_half_more(special.erf(xp, x * _ROOT_HALF)) + density) * g


def _gelu_curvature(s: Saved, g: Tensor) -> Tensor:
    x = s.self
    square = x * x
    if s.approximate == "tanh":
        inner = F.tanh(x * (square * (_TANH_SCALE * _TANH_CUBE) + _TANH_SCALE))
        slope = square * (3 * _TANH_SCALE * _TANH_CUBE) + _TANH_SCALE
        bend = x * (6 * _TANH_SCALE * _TANH_CUBE)
        second = (1 - inner * inner) * (slope + x * bend * 0.5 - x * inner * slope * slope)
    else:
        second = F.exp(square * -0.5) * (2 - square) * _DENSITY
    return g * s.grad * second


@kernel("silu")
def silu(xp: Namespace, x: Array) -> Array:
    return special.blockwise(xp, _silu, x)


def _silu(xp: Namespace, x: Array) -> Array:
    grown = xp.exp(-x)
    grown += 1
    return x / grown


@kernel("silu_backward")
def silu_backward(xp: Namespace, g: Array, x: Array) -> Array:
    return special.blockwise(xp, _silu_slope, g, x)


def _silu_slope(xp: Namespace, g: Array, x: Array) -> Array:
    share = logistic(xp, x)
    slope = share * (x * (1 - share) + 1)
    return g * _conjugated(xp, slope)


def _silu_curvature(s: Saved, g: Tensor) -> Tensor:
    share = F.sigmoid(s.self)
    rest = 1 - share
    second = share * rest * (s.self * (rest - share) + 2)
    return conj(g) * s.grad * conj(second)


@kernel("mish")
def mish(xp: Namespace, x: Array) -> Array:
    return special.blockwise(xp, _mish, x)


def _mish(xp: Namespace, x: Array) -> Array:
    """tanh(log(1 + e)) is n / (n + 2) with n = e (e + 2); beyond 20 it is 1."""
    grown = xp.exp(xp.minimum(x, 20))
    grown = grown * (grown + 2)
    return x * (grown / (grown + 2))


@_precisely
def _by_mish(g: Tensor, x: Tensor) -> Tensor:
    share = F.sigmoid(x)
    inner = F.tanh(F.softplus(x))
    return g * (inner + x * share * (1 - inner * inner))


@kernel("sigmoid_backward")
def sigmoid_backward(xp: Namespace, g: Array, y: Array) -> Array:
    return special.blockwise(xp, lambda xp, g, y: g * _conjugated(xp, y * (1 - y)), g, y)


@kernel("tanh_backward")
def tanh_backward(xp: Namespace, g: Array, y: Array) -> Array:
    return special.blockwise(xp, lambda xp, g, y: g * _conjugated(xp, 1 - y * y), g, y)


def _conjugated(xp: Namespace, x: Array) -> Array:
    return xp.conj(x) if x.dtype.kind == "c" else x


derivative("gelu", self=("self", lambda s, g: F.gelu_backward(g, s.self, s.approximate)))
derivative(
    "gelu_backward",
    grad=("self", lambda s, g: F.gelu_backward(g, s.self, s.approximate)),
    self=("grad self", _gelu_curvature),
)
derivative("silu", self=("self", lambda s, g: F.silu_backward(g, s.self)))
derivative(
    "silu_backward",
    grad=("self", lambda s, g: g * F.sigmoid(s.self) * (s.self * F.sigmoid(-s.self) + 1)),
    self=("grad self", _silu_curvature),
)
derivative("mish", self=("self", lambda s, g: _by_mish(g, s.self)))
derivative(
    "sigmoid_backward",
    grad=("output", lambda s, g: g * (s.output * (1 - s.output))),
    output=("grad output", lambda s, g: conj(g) * s.grad * conj(1 - s.output * 2)),
)
derivative(
    "tanh_backward",
    grad=("output", lambda s, g: g * (1 - s.output * s.output)),
    output=("grad output", lambda s, g: conj(g) * s.grad * conj(s.output * -2)),
)


# Smooth bends and shrinkage


@kernel("softplus")
def softplus(xp: Namespace, x: Array, beta: float, threshold: float) -> Array:
    steep = x * beta
    return select(xp, steep > threshold, x, xp.log1p(xp.exp(steep)) / beta)


@_precisely
def _by_softplus(g: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    steep = x * beta
    return F.where(steep > threshold, g, g * F.sigmoid(steep))


@kernel("logsigmoid")
def logsigmoid(xp: Namespace, x: Array) -> Array:
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.absolute(x)))


@_precisely
def _by_logsigmoid(g: Tensor, x: Tensor) -> Tensor:
    return g * F.sigmoid(-x)


@kernel("softsign")
def softsign(xp: Namespace, x: Array) -> Array:
    return x / (xp.absolute(x) + 1)


def _by_softsign(s: Saved, g: Tensor) -> Tensor:
    size = F.abs(s.self) + 1
    if not s.self.dtype.is_complex:
        # Not g / size**2: PyTorch has NaN at infinities.
        return g / size + -g * (s.self / size / size) * F.sgn(s.self)
    turned = F.real(g * conj(s.self)) / (size * size)
    return g / size - turned * F.sgn(s.self)


@kernel("tanhshrink")
def tanhshrink(xp: Namespace, x: Array) -> Array:
    return x - xp.tanh(x)


def _by_tanhshrink(s: Saved, g: Tensor) -> Tensor:
    inner = F.tanh(s.self)
    return g * conj(inner * inner)


@kernel("hardshrink", half=True)
def hardshrink(xp: Namespace, x: Array, lambd: float) -> Array:
    if x.dtype.itemsize == 2 and x.dtype.kind in "fV":
        x, lambd = x.astype("f"), float(x.dtype.type(lambd))  # the bound as the half it becomes: its gradient's, too
    return select(xp, (x >= -lambd) & (x <= lambd), 0, x)


@kernel("softshrink")
def softshrink(xp: Namespace, x: Array, lambd: float) -> Array:
    return xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, x * 0))


def _outside(s: Saved, g: Tensor) -> Tensor:
    return F.where((s.self >= -s.lambd) & (s.self <= s.lambd), 0, g)


@kernel("hardsigmoid")
def hardsigmoid(xp: Namespace, x: Array) -> Array:
    return xp.clip(x + 3, 0, 6) / 6


@kernel("hardswish")
def hardswish(xp: Namespace, x: Array) -> Array:
    return special.blockwise(xp, lambda xp, x: x * xp.clip(x + 3, 0, 6) / 6, x)


@_precisely
def _by_hardswish(g: Tensor, x: Tensor) -> Tensor:
    bent = F.where(x < 3, g * (x / 3 + 0.5), g)
    return F.where(x <= -3, 0, bent)


derivative("softplus", self=("self", lambda s, g: _by_softplus(g, s.self, s.beta, s.threshold)))
derivative("logsigmoid", self=("self", lambda s, g: _by_logsigmoid(g, s.self)))
derivative("softsign", self=("self", _by_softsign))
derivative("tanhshrink", self=("self", _by_tanhshrink))
derivative("hardshrink", self=("self", _outside))
derivative("softshrink", self=("self", _outside))
derivative("hardsigmoid", self=("self", lambda s, g: F.where((s.self > -3) & (s.self < 3), g / 6, 0)))
derivative("hardswish", self=("self", lambda s, g: _by_hardswish(g, s.self)))


@kernel("glu")
def glu(xp: Namespace, x: Array, dim: int) -> Array:
    a, b = xp.split(x, 2, axis=dim)
    return a * logistic(xp, b)


def _by_glu(s: Saved, g: Tensor) -> Tensor:
    half = s.self.shape[s.dim] // 2
    a, b = F.narrow(s.self, s.dim, 0, half), F.narrow(s.self, s.dim, half, half)
    gate = F.sigmoid(b)
    return F.cat([g * gate, g * a * gate * (1 - gate)], s.dim)


derivative("glu", self=("self", _by_glu))


# Dropout


@kernel("dropout")
def dropout(xp: Namespace, random: Generator, x: Array, p: float, training: bool) -> tuple[Array, Array]:
    return _drop(xp, random, x, x.shape, p, training)


@kernel("feature_dropout")
def feature_dropout(xp: Namespace, random: Generator, x: Array, p: float, training: bool) -> tuple[Array, Array]:
    return _drop(xp, random, x, (*x.shape[:2], *[1] * (x.ndim - 2)), p, training)


def _drop(
    xp: Namespace, random: Generator, x: Array, shape: tuple[int, ...], p: float, training: bool
) -> tuple[Array, Array]:
    kept = random.coin(xp, shape, 1 - p) if training else xp.ones(shape, bool)
    return x * kept * _scale(p, training), kept


def _scale(p: float, training: bool) -> float:
    return 1 / (1 - p) if training and p < 1 else 1.0


def _by_dropout(s: Saved, g: Tensor, _: object) -> Tensor:
    return g * s.result1 * _scale(s.p, s.training)


derivative("dropout", self=("result1", _by_dropout))
derivative("feature_dropout", self=("result1", _by_dropout))
