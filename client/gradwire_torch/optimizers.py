"""Steps of optimizers that PyTorch has as one operation, and the scaling of gradients."""

from __future__ import annotations

from typing import Any, Final

import torch

import gradwire as gw

from .dispatch import kernel
from .memory import ours


def _numbers(tensors: Any) -> list[Any]:
    return [ours(t) for t in tensors]


def _number(value: Any) -> Any:
    return ours(value) if isinstance(value, torch.Tensor) else value


class _Step:
    """What a step does to each parameter unless gradients were found infinite, in which case nothing changes."""

    def __init__(self, maximize: bool, grad_scale: Any, found_inf: Any) -> None:
        self.maximize = maximize
        self.scale = None if grad_scale is None else ours(grad_scale)
        self.skipped = None if found_inf is None else ours(found_inf) != 0

    def gradient(self, grad: torch.Tensor) -> Any:
        """The gradient as the step sees it; what was scaled is also written back, as PyTorch does."""
        found = ours(grad)
        if self.scale is not None:
            found.div_(self.scale.to(found.dtype))
        return -found if self.maximize else found

    def write(self, target: Any, value: Any) -> None:
        """Give a parameter or a part of the state its new value."""
        target.copy_(value if self.skipped is None else gw.where(self.skipped, target, value))


def _adam(decoupled: bool) -> Any:
    def step(
        self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, *, lr: Any,
        beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
        grad_scale: Any = None, found_inf: Any = None,
    ) -> None:  # fmt: skip
        how, rate = _Step(maximize, grad_scale, found_inf), _number(lr)
        largest = _numbers(max_exp_avg_sqs) if amsgrad else [None] * len(self)
        rows = zip(_numbers(self), grads, _numbers(exp_avgs), _numbers(exp_avg_sqs), largest, state_steps, strict=True)
        for param, grad, mean, square, most, count in rows:
            g, steps = how.gradient(grad), _number(count)
            value = param
            if weight_decay and decoupled:
                value = value * (1 - rate * weight_decay)
            elif weight_decay:
                g = g + param * weight_decay
            mean_now = mean.lerp(g, 1 - beta1)
            square_now = square * beta2 + g * g * (1 - beta2)
            over = square_now if most is None else gw.maximum(most, square_now)
            size = rate / (1 - beta1**steps)
            spread = over.sqrt() / (1 - beta2**steps).sqrt() + eps
            how.write(param, value - size * mean_now / spread)
            how.write(mean, mean_now)
            how.write(square, square_now)
            if most is not None:
                how.write(most, over)

    return step


for _name, _decoupled in (("_fused_adam_", False), ("_fused_adamw_", True)):
    kernel(_name)(_adam(_decoupled))


@kernel("_fused_sgd_")
def sgd(
    self: Any, grads: Any, momentum_buffer_list: Any, *, weight_decay: float, momentum: float, lr: Any,
    dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any = None,
    found_inf: Any = None,
) -> None:  # fmt: skip
    """Descent, with momentum."""
    how, rate = _Step(maximize, grad_scale, found_inf), _number(lr)
    buffers = _numbers(momentum_buffer_list) or [None] * len(self)
    for param, grad, buffer in zip(_numbers(self), grads, buffers, strict=True):
        g = how.gradient(grad)
        if weight_decay:
            g = g + param * weight_decay
        if buffer is not None and momentum:
            moved = g if is_first_step else buffer * momentum + g * (1 - dampening)
            how.write(buffer, moved)
            g = g + moved * momentum if nesterov else moved
        how.write(param, param - rate * g)


@kernel("_fused_adagrad_")
def adagrad(
    self: Any, grads: Any, state_sums: Any, state_steps: Any, *, lr: Any, lr_decay: float, weight_decay: float,
    eps: float, maximize: bool, grad_scale: Any = None, found_inf: Any = None,
) -> None:  # fmt: skip
    """Descent by the root of the sum of squares."""
    how, rate = _Step(maximize, grad_scale, found_inf), _number(lr)
    rows = zip(_numbers(self), grads, _numbers(state_sums), state_steps, strict=True)
    for param, grad, total, count in rows:
        g, steps = how.gradient(grad), _number(count)
        if weight_decay:
            g = g + param * weight_decay
        summed = total + g * g
        how.write(param, param - rate / (1 + (steps - 1) * lr_decay) * g / (summed.sqrt() + eps))
        how.write(total, summed)


@kernel("_amp_foreach_non_finite_check_and_unscale_")
def unscale(self: Any, found_inf: torch.Tensor, inv_scale: torch.Tensor) -> None:
    """Multiply gradients, and note whether any of them is not finite."""
    told, factor = ours(found_inf), ours(inv_scale)
    for grad in _numbers(self):
        told.copy_(gw.maximum(told, (~gw.isfinite(grad).all()).to(told.dtype)))
        grad.mul_(factor.to(grad.dtype))


_LARGEST: Final = torch.finfo(torch.float32).max


@kernel("_amp_update_scale_")
def update_scale(
    self: torch.Tensor, growth_tracker: torch.Tensor, found_inf: torch.Tensor, scale_growth_factor: float,
    scale_backoff_factor: float, growth_interval: int,
) -> torch.Tensor:  # fmt: skip
    """Lower the scale after an overflow, raise it after so many steps without one."""
    scale, tracker, overflow = ours(self), ours(growth_tracker), ours(found_inf) != 0
    grows = ~overflow & (tracker + 1 == growth_interval)
    grown = scale * scale_growth_factor
    raised = gw.where(grows & (grown <= _LARGEST), grown, scale)
    counted = gw.where(overflow | grows, gw.zeros_like(tracker), tracker + 1)
    scale.copy_(gw.where(overflow, scale * scale_backoff_factor, raised))
    tracker.copy_(counted)
    return self
