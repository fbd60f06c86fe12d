"""Adadelta."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from .optimizer import Optimizer, check_flags, check_ranges, check_rate, number

INFINITY = float("inf")


class Adadelta(Optimizer):
    """Steps as long as the recent ones were, relative to the recent gradients: there is no length to choose.

    Args:
        lr: a factor of each step.
        rho: the decay rate of the means of squares.
        eps: added to these means before their roots are taken.
        weight_decay: times the parameter itself is added to its gradient.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    counts = {"step": int}

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_ranges(eps=(eps, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY), rho=(rho, 0.0, 1.0 + 1e-15))
        check_flags(foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        self._by_step(params)
        squares, deltas = self._kept(params, "square_avg"), self._kept(params, "acc_delta")
        call(
            "adadelta_step", params, squares, deltas, number(group["lr"]), number(group["rho"]), number(group["eps"]),
            number(group["weight_decay"]), group["maximize"], self._skip,
        )  # fmt: skip
        self._touch(squares, deltas)
