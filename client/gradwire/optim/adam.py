"""Adam, and AdamW, which decays weights apart from the gradient."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from ..dispatch import call
from ..tensor import Tensor
from .optimizer import Optimizer, betas_of, check_flags, check_fused, check_ranges, check_rate, number

INFINITY = float("inf")


class Adam(Optimizer):
    """Steps of about ``lr`` per element, from running means of the gradient and of its square.

    Args:
        lr: the learning rate.
        betas: the decay rates of the two means.
        eps: added to the root of the second mean.
        weight_decay: times the parameter itself is added to its gradient.
        amsgrad: divide by the largest second mean so far.
        maximize: go along the gradient, not against it.
        decoupled_weight_decay: shrink the parameter itself by ``lr * weight_decay`` instead, as AdamW does.
        foreach, fused, capturable: accepted; a step is one record either way.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_rate(lr)
        check_ranges(eps=(eps, 0.0, INFINITY), weight_decay=(weight_decay, 0.0, INFINITY))
        for given in (lr, *betas):
            check_flags(given, foreach, fused, differentiable, capturable, tensor_rate=False)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ArgumentValueError("betas are two numbers or two tensors, not one of each")
        defaults = {
            "lr": lr, "betas": betas_of(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    counts = {"step": int}

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        check_fused(group, params)
        beta1, beta2 = group["betas"]
        for step, some in self._by_step(params):
            means, squares = self._kept(some, "exp_avg"), self._kept(some, "exp_avg_sq")
            largest: list[Any] = self._kept(some, "max_exp_avg_sq") if group["amsgrad"] else [None] * len(some)
            call(
                "adam_step", some, means, squares, largest, number(group["lr"]), number(beta1), number(beta2),
                number(group["eps"]), number(group["weight_decay"]), step, group["amsgrad"], group["maximize"],
                group["decoupled_weight_decay"], self._skip,
            )  # fmt: skip
            self._touch(means, squares, largest)


class AdamW(Adam):
    """:class:`Adam` whose weight decay is decoupled: parameters shrink by ``lr * weight_decay`` each step."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
