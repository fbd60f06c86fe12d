"""SparseAdam, which needs what gradwire lacks."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError, Unsupported

from ..tensor import Tensor
from .optimizer import Optimizer, betas_of, check_ranges, check_rate


class SparseAdam(Optimizer):
    """Adam for sparse gradients, of which gradwire has none: its arguments are checked, its step is refused.

    Raises:
        Unsupported: on :meth:`step`, and for any gradient there is.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        check_rate(lr)
        if not isinstance(lr, Tensor) and not lr > 0:
            raise ArgumentValueError(f"lr must be above 0, not {lr}")
        check_ranges(eps=(eps, 5e-324, float("inf")))
        super().__init__(params, {"lr": lr, "betas": betas_of(betas), "eps": eps, "maximize": maximize})
        for group in self.param_groups:
            for param in group["params"]:
                if param.is_complex():
                    raise ArgumentValueError(f"SparseAdam works on real parameters, not on {param.dtype.name} ones")

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        raise Unsupported(
            "SparseAdam.step is not supported by gradwire: it needs sparse gradients, and gradwire has dense ones alone"
        )
