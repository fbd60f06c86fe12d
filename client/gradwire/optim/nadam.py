"""NAdam."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from .optimizer import Optimizer, betas_of, check_flags, check_ranges, check_rate, number, single

INFINITY = float("inf")


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, which grows from step to step.

    Args:
        lr: the learning rate.
        betas: the decay rates of the means of the gradient and of its square.
        eps: added to the root of the second mean.
        weight_decay: times the parameter itself is added to its gradient.
        momentum_decay: how fast the momentum approaches the first beta.
        decoupled_weight_decay: shrink the parameter itself by ``lr * weight_decay`` instead.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    counts = {"step": int, "mu_product": float}

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_ranges(
            eps=(eps, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY),
            momentum_decay=(momentum_decay, 0.0, INFINITY),
        )  # fmt: skip
        check_flags(foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr, "betas": betas_of(betas), "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        beta1, beta2 = map(number, group["betas"])
        decay = number(group["momentum_decay"])
        for param in params:
            self.state[param].setdefault("mu_product", 1.0)
        for (step, product), some in self._by_step(params, "mu_product"):
            mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (n * decay)) for n in (step, step + 1))
            product = single(product * single(mu))
            for param in some:
                self.state[param]["mu_product"] = product
            means, squares = self._kept(some, "exp_avg"), self._kept(some, "exp_avg_sq")
            call(
                "nadam_step", some, means, squares, number(group["lr"]), beta1, beta2, number(group["eps"]),
                number(group["weight_decay"]), step, mu, mu_next, product, group["decoupled_weight_decay"],
                group["maximize"], self._skip,
            )  # fmt: skip
            self._touch(means, squares)
