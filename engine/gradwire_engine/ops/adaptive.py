"""Steps of the optimizers beyond the common four, in PyTorch's order of operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.dtypes import bfloat16, float32, float64

from ..autograd.engine_context import EngineContext
from ..autograd.registry import control
from ..autograd.tensor import Tensor
from ..runtime import deadline
from ..runtime.arrays import Array, Namespace, native
from .optimizer import Piece, due, keep, pieces, working


def _moments(piece: Piece, beta1: float, beta2: float) -> tuple[Any, Any]:
    """The running means of the gradient and of its square, moved on."""
    mean, square = piece.states
    piece.blend(mean, piece.g, 1 - beta1)
    square *= beta2
    piece.add_square(square, piece.g, 1 - beta2)
    return mean, square


def _decay(piece: Piece, weight_decay: float, lr: float, decoupled: bool) -> None:
    if weight_decay and decoupled:
        piece.p *= 1 - lr * weight_decay
    elif weight_decay:
        piece.decay(weight_decay)


@control("adamax_step", writes="operands")
def adamax_step(
    engine: Any, params: list[Tensor], exp_avgs: list[Tensor], exp_infs: list[Tensor], lr: float, beta1: float,
    beta2: float, eps: float, weight_decay: float, step: float, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    for _, piece in pieces(params, [exp_avgs, exp_infs], maximize, skip):
        _decay(piece, weight_decay, lr, False)
        mean, norm = piece.states
        piece.blend(mean, piece.g, 1 - beta1)
        norm *= beta2
        size = piece.xp.absolute(piece.g, out=piece.c)
        size += eps
        piece.xp.maximum(norm, size, out=norm)
        piece.divide_to_p(mean, norm, -lr / (1 - beta1**step))


@control("nadam_step", writes="operands")
def nadam_step(
    engine: Any, params: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], lr: float, beta1: float,
    beta2: float, eps: float, weight_decay: float, step: float, mu: float, mu_next: float, mu_product: float,
    decoupled_weight_decay: bool, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    correction = 1 - beta2**step
    for _, piece in pieces(params, [exp_avgs, exp_avg_sqs], maximize, skip):
        _decay(piece, weight_decay, lr, decoupled_weight_decay)
        mean, square = _moments(piece, beta1, beta2)
        scale = piece.xp.divide(square, correction, out=piece.free)
        piece.xp.sqrt(scale, out=scale)
        scale += eps
        piece.divide_to_p(piece.g, scale, -lr * (1 - mu) / (1 - mu_product))
        piece.divide_to_p(mean, scale, -lr * mu_next / (1 - mu_product * mu_next))


@control("radam_step", writes="operands")
def radam_step(
    engine: Any, params: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], lr: float, beta1: float,
    beta2: float, eps: float, weight_decay: float, step: float, decoupled_weight_decay: bool, maximize: bool,
    skip: Tensor | None,
) -> None:  # fmt: skip
    first, second = 1 - beta1**step, 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / second
    rectified = length > 5
    factor = 1.0
    if rectified:
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        factor = (ratio * second) ** 0.5
    for _, piece in pieces(params, [exp_avgs, exp_avg_sqs], maximize, skip):
        _decay(piece, weight_decay, lr, decoupled_weight_decay)
        mean, square = _moments(piece, beta1, beta2)
        if rectified:
            scale = piece.xp.sqrt(square, out=piece.free)
            scale += eps
            piece.divide_to_p(mean, scale, -lr * factor / first)
        else:
            piece.add_to_p(mean, -lr / first)


@control("adadelta_step", writes="operands")
def adadelta_step(
    engine: EngineContext, params: list[Tensor], square_avgs: list[Tensor], acc_deltas: list[Tensor], lr: float,
    rho: float, eps: float, weight_decay: float, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    for _, piece in pieces(params, [square_avgs, acc_deltas], maximize, skip):
        _decay(piece, weight_decay, lr, False)
        xp = piece.xp
        square, deltas = piece.states
        square *= rho
        piece.add_square(square, piece.g, 1 - rho)
        scale = xp.sqrt(xp.add(square, eps, out=piece.c), out=piece.c)
        delta = xp.sqrt(xp.add(deltas, eps, out=piece.free), out=piece.free)
        delta /= scale
        delta *= piece.g
        deltas *= rho
        piece.add_square(deltas, delta, 1 - rho)
        piece.add_to_p(delta, -lr)


@control("rprop_step", writes="operands")
def rprop_step(
    engine: EngineContext, params: list[Tensor], prevs: list[Tensor], step_sizes: list[Tensor], eta_minus: float,
    eta_plus: float, smallest: float, largest: float, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    for _, piece in pieces(params, [prevs, step_sizes], maximize, skip):
        xp = piece.xp
        previous, sizes = piece.states
        turn = xp.multiply(piece.g, previous, out=piece.c)
        sizes *= xp.where(turn > 0, eta_plus, xp.where(turn < 0, eta_minus, 1.0)).astype(sizes.dtype)
        xp.clip(sizes, smallest, largest, out=sizes)
        previous[...] = xp.where(turn < 0, 0, piece.g)
        move = xp.sign(previous)
        move *= sizes
        piece.p -= move


@control("asgd_step", writes="operands")
def asgd_step(
    engine: EngineContext, params: list[Tensor], axs: list[Tensor], eta: float, mu: float, lambd: float,
    weight_decay: float, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    for _, piece in pieces(params, [axs], maximize, skip):
        _decay(piece, weight_decay, eta, False)
        (average,) = piece.states
        piece.p *= 1 - lambd * eta
        piece.add_to_p(piece.g, -eta)
        if mu == 1:
            average[...] = piece.p
        else:
            change = piece.xp.subtract(piece.p, average, out=piece.c)
            change *= mu
            average += change


def _mean_square(xp: Namespace, g: Array, axis: int) -> Array:
    return xp.sum(g * g, axis=axis, keepdims=True) / g.shape[axis]


def _rms(xp: Namespace, x: Array) -> Array:
    """The root of the mean square, in the array's own precision."""
    return xp.sqrt(xp.sum(x * x)) / x.size**0.5


@control("adafactor_step", writes="operands")
def adafactor_step(
    engine: Any, params: list[Tensor], row_vars: list[Tensor | None], col_vars: list[Tensor | None],
    variances: list[Tensor | None], lr: float, beta2_decay: float, eps1: float | None, eps2: float, d: float,
    weight_decay: float, step: float, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    weight = step**beta2_decay
    rate = min(lr, 1 / step**0.5)
    for i, param in due(params, skip):
        xp = engine.backends[param.device].xp
        written = [param, row_vars[i], col_vars[i], variances[i]]
        arrays: list[Any] = [None if t is None else working(t) for t in written]
        p, rows, columns, variance = arrays
        g = working(param.grad)
        if maximize:
            g = -g
        smallest = _finest(param) if eps1 is None else eps1
        size = xp.maximum(eps2, _rms(xp, p)) * rate
        if weight_decay:
            p *= 1 - lr * weight_decay
        if g.ndim > 1:
            rows += weight * (_mean_square(xp, g, -1) - rows)
            columns += weight * (_mean_square(xp, g, -2) - columns)
            estimate = rows @ columns
            estimate /= xp.maximum(rows.mean(axis=-2, keepdims=True), smallest)
        else:
            variance += weight * (g * g - variance)
            estimate = variance.copy()
        update = 1 / xp.sqrt(xp.maximum(estimate, smallest * smallest))
        update *= g
        p -= (size / xp.maximum(1.0, _rms(xp, update) / d)).astype(p.dtype) * update
        keep(written, arrays)


def _finest(param: Tensor) -> float:
    """The distance from 1 to the next number of the parameter's dtype."""
    if param.dtype is bfloat16:
        return 2.0**-7
    return float(np.finfo(native(param.dtype)).eps)


@control("muon_step", writes="operands")
def muon_step(
    engine: EngineContext, params: list[Tensor], momentum_buffers: list[Tensor], lr: float, weight_decay: float,
    momentum: float, a: float, b: float, c: float, eps: float, ns_steps: int, nesterov: bool, adjust: str,
    skip: Tensor | None,
) -> None:  # fmt: skip
    for i, param in due(params, skip):
        xp = engine.backends[param.device].xp
        written = [param, momentum_buffers[i]]
        p, buffer = arrays = [working(t) for t in written]
        g = working(param.grad)
        buffer += (1 - momentum) * (g - buffer)
        update = g + momentum * (buffer - g) if nesterov else buffer
        update = _orthogonal(xp, update, (a, b, c), ns_steps, eps)
        tall, wide = p.shape
        ratio = max(1.0, tall / max(wide, 1)) ** 0.5 if adjust == "original" else 0.2 * max(tall, wide) ** 0.5
        p *= 1 - lr * weight_decay
        p -= (lr * ratio) * update.astype(native(float64 if param.dtype is float64 else float32))
        keep(written, arrays)


def _orthogonal(xp: Namespace, g: Array, coefficients: tuple[float, float, float], turns: int, eps: float) -> Array:
    """A matrix of about the same singular vectors whose singular values are about 1, as float32 of bfloat16's values.

    An odd polynomial of the matrix drives its singular values there. Each result is rounded to bfloat16, as it would
    be were it computed in it.
    """
    a, b, c = coefficients
    low = native(bfloat16)

    def rounded(x: Any) -> Any:
        return x.astype(low).astype(np.float32)

    x = rounded(g)
    flip = g.shape[0] > g.shape[1]
    if flip:
        x = x.T
    norm = xp.maximum(rounded(xp.sqrt(xp.sum(x * x))), rounded(xp.asarray(eps, np.float32)))
    x = rounded(x / norm)
    for _ in range(turns):
        deadline.check("muon_step")
        gram = rounded(x @ x.T)
        gram = rounded(b * gram + c * (gram @ gram))
        x = rounded(a * x + gram @ x)
    return x.T if flip else x
