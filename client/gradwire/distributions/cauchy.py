"""The Cauchy distribution."""

from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .library import gw
from .parameters import broadcast_all, uniform

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Median ``loc`` and half width at half maximum ``scale``; it has neither mean nor variance."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return gw.full_like(self.loc, nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return gw.full_like(self.loc, inf)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """``loc + scale * noise``."""
        angle = (uniform(self._extended_shape(sample_shape), self.loc) - 0.5) * pi
        return self.loc + angle.tan() * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        return -log(pi) - self.scale.log() - ((value - self.loc) / self.scale).pow(2).log1p()

    def cdf(self, value: Any) -> Any:
        """Through the arctangent."""
        if self._validate_args:
            self._validate_sample(value)
        return gw.atan((value - self.loc) / self.scale) / pi + 0.5

    def icdf(self, value: Any) -> Any:
        """Through the tangent."""
        return gw.tan(pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        """``log(4 pi scale)``."""
        return self.scale.log() + log(4 * pi)
