"""RMSprop."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from .optimizer import Optimizer, check_flags, check_ranges, check_rate, number

INFINITY = float("inf")


class RMSprop(Optimizer):
    """Gradients divided by the root of a running mean of their squares.

    Args:
        lr: the learning rate.
        alpha: the decay rate of that mean.
        eps: added to its root.
        weight_decay: times the parameter itself is added to its gradient.
        momentum: how much of the last step's direction is kept.
        centered: divide by an estimate of the variance instead.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_ranges(
            alpha=(alpha, 0.0, INFINITY), eps=(eps, 0.0, INFINITY),
            weight_decay=(weight_decay, 0.0, INFINITY), momentum=(momentum, 0.0, INFINITY),
        )  # fmt: skip
        check_flags(foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    counts = {"step": int}

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        none: list[Any] = [None] * len(params)
        squares = self._kept(params, "square_avg")
        buffers = self._kept(params, "momentum_buffer") if group["momentum"] > 0 else none
        means = self._kept(params, "grad_avg") if group["centered"] else none
        self._by_step(params)
        call(
            "rmsprop_step", params, squares, means, buffers, number(group["lr"]), number(group["alpha"]),
            number(group["eps"]), number(group["weight_decay"]), number(group["momentum"]), group["centered"],
            group["maximize"], self._skip,
        )  # fmt: skip
        self._touch(squares, means, buffers)
