"""Muon."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..dispatch import call
from .optimizer import Optimizer, check_ranges, check_rate, number

INFINITY = float("inf")


class Muon(Optimizer):
    """Momentum brought close to an orthogonal matrix: for the matrices of a network, and for nothing else.

    Args:
        lr: the learning rate.
        weight_decay: the parameter shrinks by ``lr * weight_decay`` each step.
        momentum: the decay rate of the mean gradient.
        nesterov: look ahead along the momentum.
        ns_coefficients: the polynomial that each iteration applies.
        eps: the smallest norm that the momentum is divided by.
        ns_steps: the number of iterations, below 100.
        adjust_lr_fn: how the learning rate follows the matrix's shape, ``"original"`` (by default) or
            ``"match_rms_adamw"``.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        check_ranges(momentum=(momentum, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY))
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ArgumentValueError(f"adjust_lr_fn is 'original' or 'match_rms_adamw', not {adjust_lr_fn!r}")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ArgumentValueError(f"Muon works on matrices, a parameter has shape {list(param.shape)}")

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        for param in params:
            if param.is_complex():
                raise ArgumentError(f"Muon works on real parameters, not on {param.dtype.name} ones")
        if group["ns_steps"] >= 100:
            raise ArgumentValueError(f"ns_steps must be below 100, not {group['ns_steps']}")
        if len(group["ns_coefficients"]) != 3:
            raise ArgumentValueError(f"ns_coefficients are three numbers, not {group['ns_coefficients']}")
        buffers = self._kept(params, "momentum_buffer")
        call(
            "muon_step", params, buffers, number(group["lr"]), number(group["weight_decay"]),
            number(group["momentum"]), *map(number, group["ns_coefficients"]), number(group["eps"]),
            int(group["ns_steps"]), bool(group["nesterov"]), group["adjust_lr_fn"] or "original", self._skip,
        )  # fmt: skip
        self._touch(buffers)
