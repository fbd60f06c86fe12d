"""Adafactor."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..creation import zeros
from ..dispatch import call
from .optimizer import Optimizer, check_ranges, check_rate, number

INFINITY = float("inf")


class Adafactor(Optimizer):
    """Adam's second moments in little memory: a matrix keeps one for each row and each column.

    Args:
        lr: the largest learning rate; step ``n`` takes at most ``1 / sqrt(n)``.
        beta2_decay: the power of the step number that is the weight of the newest square.
        eps: the smallest root of a second moment (by default the dtype's resolution), and the smallest size of a
            parameter by which its step is scaled.
        d: the largest root mean square that a step may have before it is scaled.
        weight_decay: the parameter shrinks by ``lr * weight_decay`` each step.
        maximize: go along the gradient, not against it.
        foreach: accepted; a step is one record either way.
    """

    counts = {"step": int}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        if beta2_decay > 0:
            raise ArgumentValueError(f"beta2_decay must be at most 0, not {beta2_decay}")
        if eps[0] is not None:
            check_ranges(eps=(eps[0], 0.0, INFINITY))
        check_ranges(eps=(eps[1], 0.0, INFINITY), d=(d, 1.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY))
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        for param in params:
            if param.is_complex():
                raise ArgumentError(f"Adafactor works on real parameters, not on {param.dtype.name} ones")
            self._start(param)
        eps1, eps2 = group["eps"]
        for step, some in self._by_step(params):
            states = [
                [self.state[p].get(name) for p in some] for name in ("row_var", "col_var", "variance")
            ]  # fmt: skip
            call(
                "adafactor_step", some, *states, number(group["lr"]), number(group["beta2_decay"]),
                None if eps1 is None else number(eps1), number(eps2), number(group["d"]),
                number(group["weight_decay"]), step, group["maximize"], self._skip,
            )  # fmt: skip
            self._touch(*states)

    def _start(self, param: Any) -> None:
        state, shape = self.state[param], tuple(param.shape)
        if "row_var" in state or "variance" in state:
            return
        state["step"] = 0
        like = {"dtype": param.dtype, "device": param.device}
        if len(shape) > 1:
            state["row_var"] = zeros((*shape[:-1], 1), **like)
            state["col_var"] = zeros((*shape[:-2], 1, shape[-1]), **like)
        else:
            state["variance"] = zeros(shape, **like)
