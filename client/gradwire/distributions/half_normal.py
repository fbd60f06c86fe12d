"""The half-normal distribution."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any, ClassVar

from .half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The absolute value of a normal number of mean 0 and standard deviation ``scale``."""

    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * sqrt(2 / pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / pi)
