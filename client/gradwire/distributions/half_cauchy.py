"""The half-Cauchy distribution."""

from __future__ import annotations

from math import inf
from typing import Any, ClassVar

from .cauchy import Cauchy
from .half import Half
from .library import gw

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The absolute value of a Cauchy variate around 0 of the given ``scale``; its mean is infinite."""

    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return gw.full_like(self.scale, inf)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance
