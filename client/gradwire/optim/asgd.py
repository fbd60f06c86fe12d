"""ASGD."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from .optimizer import Optimizer, check_flags, check_ranges, check_rate, number, single

INFINITY = float("inf")


class ASGD(Optimizer):
    """Stochastic gradient descent that also keeps the average of the parameters, as ``state[param]["ax"]``.

    Args:
        lr: the first learning rate.
        lambd: by how much a step shrinks the parameter and slows the next.
        alpha: the power by which the learning rate falls.
        t0: the step after which averaging begins.
        weight_decay: times the parameter itself is added to its gradient.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    counts = {"step": int, "eta": float, "mu": float}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_ranges(weight_decay=(weight_decay, 0.0, INFINITY))
        check_flags(foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        lr, lambd = number(group["lr"]), number(group["lambd"])
        for param in params:
            if "eta" not in self.state[param]:
                self.state[param].update(eta=single(lr), mu=1.0)
        for (step, eta, mu), some in self._by_step(params, "eta", "mu"):
            averages = self._kept(some, "ax")
            call(
                "asgd_step", some, averages, eta, mu, lambd, number(group["weight_decay"]), group["maximize"],
                self._skip,
            )  # fmt: skip
            self._touch(averages)
            eta = single(lr / (1 + lambd * lr * step) ** group["alpha"])
            for param in some:
                self.state[param].update(eta=eta, mu=single(1 / max(1, step - group["t0"])))
