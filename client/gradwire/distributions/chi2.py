"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .gamma import Gamma
from .parameters import filled, number_of

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of ``df`` independent standard normal numbers."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df": constraints.positive}
    _batched: ClassVar[dict[str, int]] = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        half = number_of(self.concentration)
        if half is not None:
            return filled(2 * half, (), self.concentration.dtype, self.concentration.device)
        return self.concentration * 2
