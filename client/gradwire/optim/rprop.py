"""Rprop."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from ..creation import full_like
from ..dispatch import call
from .optimizer import Optimizer, check_flags, check_rate, number


class Rprop(Optimizer):
    """A step size per element, which follows the signs of its gradients alone.

    Args:
        lr: the first step size.
        etas: what a step size is multiplied by where the sign changes, and where it stays.
        step_sizes: the smallest and the largest step size.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    counts = {"step": int}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ArgumentValueError(f"etas are a number between 0 and 1 and one above 1, not {etas}")
        check_flags(foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        self._by_step(params)
        for param in params:
            if "step_size" not in self.state[param]:
                start = number(group["lr"])
                fill = complex(start, start) if param.is_complex() else start
                self.state[param]["step_size"] = full_like(param, fill)
        before, sizes = self._kept(params, "prev"), self._kept(params, "step_size")
        call(
            "rprop_step", params, before, sizes, *map(number, group["etas"]), *map(number, group["step_sizes"]),
            group["maximize"], self._skip,
        )  # fmt: skip
        self._touch(before, sizes)
