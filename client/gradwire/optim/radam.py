"""RAdam."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from .optimizer import Optimizer, betas_of, check_flags, check_ranges, check_rate, number

INFINITY = float("inf")


class RAdam(Optimizer):
    """Adam that takes plain momentum steps until it knows the size of the gradients well enough.

    Args:
        lr: the learning rate.
        betas: the decay rates of the means of the gradient and of its square.
        eps: added to the root of the second mean.
        weight_decay: times the parameter itself is added to its gradient.
        decoupled_weight_decay: shrink the parameter itself by ``lr * weight_decay`` instead.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    counts = {"step": int}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_ranges(eps=(eps, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY))
        check_flags(foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr, "betas": betas_of(betas), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        beta1, beta2 = group["betas"]
        for step, some in self._by_step(params):
            means, squares = self._kept(some, "exp_avg"), self._kept(some, "exp_avg_sq")
            call(
                "radam_step", some, means, squares, number(group["lr"]), number(beta1), number(beta2),
                number(group["eps"]), number(group["weight_decay"]), step, group["decoupled_weight_decay"],
                group["maximize"], self._skip,
            )  # fmt: skip
            self._touch(means, squares)
