"""Adagrad."""

from __future__ import annotations

from typing import Any

from ..creation import full_like
from ..dispatch import call
from .optimizer import Optimizer, check_flags, check_fused, check_ranges, check_rate, number

INFINITY = float("inf")


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all their squares so far.

    Args:
        lr: the learning rate.
        lr_decay: by how much each step lowers it: step ``n`` uses ``lr / (1 + (n - 1) * lr_decay)``.
        weight_decay: times the parameter itself is added to its gradient.
        initial_accumulator_value: what the sum starts from.
        eps: added to its root.
        maximize: go along the gradient, not against it.
        foreach, fused: accepted; a step is one record either way.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_ranges(
            lr_decay=(lr_decay, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY),
            initial_accumulator_value=(initial_accumulator_value, 0.0, INFINITY), eps=(eps, 0.0, INFINITY),
        )  # fmt: skip
        check_flags(foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                start = float(group["initial_accumulator_value"])
                # A complex number is two numbers to an optimizer, each with a sum of its own.
                fill = complex(start, start) if param.is_complex() else start
                self.state[param].update(step=0, sum=full_like(param, fill))

    counts = {"step": int}

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        check_fused(group, params)
        for step, some in self._by_step(params):
            sums = self._kept(some, "sum")
            call(
                "adagrad_step", some, sums, number(group["lr"]), number(group["lr_decay"]),
                number(group["weight_decay"]), number(group["eps"]), step, group["maximize"], self._skip,
            )  # fmt: skip
            self._touch(sums)
