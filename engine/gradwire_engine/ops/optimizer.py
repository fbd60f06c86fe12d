"""Optimizer steps: in-place arithmetic on a parameter's memory, in PyTorch's order of operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..backends import native
from ..functional import F
from ..registry import control
from ..tensor import Tensor


def _working(tensor: Tensor) -> Any:
    """The array to compute on: complex as pairs of reals, half precision as float32."""
    array = tensor.array
    if tensor.dtype.is_complex:
        return array.view(native(tensor.dtype.to_real()))
    return array.astype("float32") if tensor.dtype.is_low_precision else array


def _keep(tensor: Tensor | None, array: Any) -> None:
    """Write back what was computed in another form, and count the change."""
    if tensor is None:
        return
    if tensor.dtype.is_low_precision:
        tensor.array[...] = array.astype(tensor.array.dtype)
    tensor.storage.version += 1


def _with_gradient(params: list[Tensor], maximize: bool) -> Iterator[tuple[int, Tensor, Any, Any, Any]]:
    """(position, parameter, its array, its gradient's array, the array module) of those that have a gradient.

    The gradient's array must not be written to.
    """
    for i, param in enumerate(params):
        if param.grad is not None:
            gradient = _working(param.grad)
            yield i, param, _working(param), -gradient if maximize else gradient, param.engine.backends[param.device].xp


@control("sgd_step")
def sgd_step(
    engine: Any,
    params: list[Tensor],
    momentum_buffers: list[Tensor | None],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first: tuple[bool, ...],
) -> None:
    for i, param, p, g, _ in _with_gradient(params, maximize):
        if weight_decay:
            g = g + weight_decay * p
        buffer = momentum_buffers[i]
        if buffer is not None:
            b = _working(buffer)
            if first and first[i]:
                b[...] = g
            else:
                b *= momentum
                b += g if dampening == 0 else (1 - dampening) * g
            _keep(buffer, b)
            g = g + momentum * b if nesterov else b
        p -= lr * g
        _keep(param, p)


@control("adam_step")
def adam_step(
    engine: Any,
    params: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor | None],
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    step: float,
    amsgrad: bool,
    maximize: bool,
    decoupled_weight_decay: bool,
) -> None:
    step_size = lr / (1 - beta1**step)
    correction = (1 - beta2**step) ** 0.5
    for i, param, p, g, xp in _with_gradient(params, maximize):
        if weight_decay and decoupled_weight_decay:
            p *= 1 - lr * weight_decay
        elif weight_decay:
            g = g + weight_decay * p
        m, v = _working(exp_avgs[i]), _working(exp_avg_sqs[i])
        scratch = xp.empty_like(m)  # given as out: of 0-dim operands NumPy would return a scalar
        xp.subtract(g, m, out=scratch)
        scratch *= 1 - beta1
        m += scratch
        v *= beta2
        xp.multiply(g, g, out=scratch)
        scratch *= 1 - beta2
        v += scratch
        largest = max_exp_avg_sqs[i]
        if amsgrad and largest is not None:
            x = _working(largest)
            xp.maximum(x, v, out=x)
            _keep(largest, x)
            xp.sqrt(x, out=scratch)
        else:
            xp.sqrt(v, out=scratch)
        scratch /= correction
        scratch += eps
        xp.divide(m, scratch, out=scratch)
        scratch *= step_size
        p -= scratch
        _keep(exp_avgs[i], m)
        _keep(exp_avg_sqs[i], v)
        _keep(param, p)


@control("rmsprop_step")
def rmsprop_step(
    engine: Any,
    params: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor | None],
    momentum_buffers: list[Tensor | None],
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    for i, param, p, g, xp in _with_gradient(params, maximize):
        if weight_decay:
            g = g + weight_decay * p
        v = _working(square_avgs[i])
        v *= alpha
        v += (1 - alpha) * (g * g)
        _keep(square_avgs[i], v)
        average = grad_avgs[i]
        if centered and average is not None:
            a = _working(average)
            a += (1 - alpha) * (g - a)
            _keep(average, a)
            scale = xp.sqrt(v - a * a)
        else:
            scale = xp.sqrt(v)
        scale += eps
        buffer = momentum_buffers[i]
        if momentum and buffer is not None:
            b = _working(buffer)
            b *= momentum
            b += g / scale
            _keep(buffer, b)
            p -= lr * b
        else:
            p -= lr * (g / scale)
        _keep(param, p)


@control("adagrad_step")
def adagrad_step(
    engine: Any,
    params: list[Tensor],
    state_sums: list[Tensor],
    lr: float,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    step: float,
    maximize: bool,
) -> None:
    rate = lr / (1 + (step - 1) * lr_decay)
    for i, param, p, g, xp in _with_gradient(params, maximize):
        if weight_decay:
            g = g + weight_decay * p
        total = _working(state_sums[i])
        total += g * g
        _keep(state_sums[i], total)
        scale = xp.sqrt(total)
        scale += eps
        p -= rate * (g / scale)
        _keep(param, p)


@control("zero_grad")
def zero_grad(engine: Any, params: list[Tensor], set_to_none: bool) -> None:
    for param in params:
        if set_to_none:
            param.grad = None
        elif param.grad is not None:
            gradient = param.grad
            if gradient.grad_fn is not None or gradient.requires_grad:
                param.grad = engine.call("zeros_like", gradient)
            else:
                engine.call("zero_", gradient)


@control("clip_grad_norm_")
def clip_grad_norm_(engine: Any, params: list[Tensor], max_norm: float, norm_type: float) -> Tensor:
    was_enabled, engine.grad_enabled = engine.grad_enabled, False
    try:
        gradients = [p.grad for p in params if p.grad is not None]
        if not gradients:
            none: Tensor = engine.call("zeros", (), dtype=params[0].dtype.to_real(), device=params[0].device)
            return none
        norms = [F.norm(g, norm_type) for g in gradients]
        total: Tensor = norms[0] if len(norms) == 1 else F.norm(F.stack(norms), norm_type)
        scale = F.clamp(max_norm / (total + 1e-6), max=1.0)
        for gradient in gradients:
            engine.call("mul_", gradient, scale)
        return total
    finally:
        engine.grad_enabled = was_enabled
