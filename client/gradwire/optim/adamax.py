"""Adamax."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from .optimizer import Optimizer, betas_of, check_flags, check_ranges, check_rate, number

INFINITY = float("inf")


class Adamax(Optimizer):
    """Adam with the largest gradient so far, decaying, in place of the root of the mean square.

    Args:
        lr: the learning rate.
        betas: the decay rates of the mean and of the largest gradient.
        eps: added to the size of each gradient.
        weight_decay: times the parameter itself is added to its gradient.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    counts = {"step": int}

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_ranges(eps=(eps, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY))
        check_flags(foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr, "betas": betas_of(betas), "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        beta1, beta2 = group["betas"]
        for step, some in self._by_step(params):
            means, norms = self._kept(some, "exp_avg"), self._kept(some, "exp_inf")
            call(
                "adamax_step", some, means, norms, number(group["lr"]), number(beta1), number(beta2),
                number(group["eps"]), number(group["weight_decay"]), step, group["maximize"], self._skip,
            )  # fmt: skip
            self._touch(means, norms)
