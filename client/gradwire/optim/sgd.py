"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from ..creation import empty_like
from ..dispatch import call
from .optimizer import Optimizer, check_flags, check_fused, check_ranges, check_rate, number

INFINITY = float("inf")


class SGD(Optimizer):
    """Against the gradient by ``lr`` times its length, with momentum if asked for.

    Args:
        lr: the learning rate.
        momentum: how much of the last step's direction is kept.
        dampening: how much of the gradient does not enter that direction.
        weight_decay: times the parameter itself is added to its gradient.
        nesterov: look ahead along the momentum.
        maximize: go along the gradient, not against it.
        foreach, fused: accepted; a step is one record either way.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_ranges(momentum=(momentum, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY))
        check_flags(foreach=foreach, fused=fused, differentiable=differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentValueError(
                f"nesterov needs momentum above 0 and no dampening, not {momentum} and {dampening}"
            )
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        check_fused(group, params)
        buffers: list[Any] = [None] * len(params)
        first: tuple[bool, ...] = ()
        if group["momentum"] != 0:
            empty = [self.state[p].get("momentum_buffer") is None for p in params]
            if any(empty):
                first = tuple(empty)
                for param, is_empty in zip(params, empty, strict=True):
                    if is_empty:
                        self.state[param]["momentum_buffer"] = empty_like(param)
            buffers = [self.state[p]["momentum_buffer"] for p in params]
        call(
            "sgd_step", params, buffers, number(group["lr"]), number(group["momentum"]), number(group["dampening"]),
            number(group["weight_decay"]), group["nesterov"], group["maximize"], first, self._skip,
        )  # fmt: skip
        self._touch(buffers)
