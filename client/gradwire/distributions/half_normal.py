"""The half-normal distribution."""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any, ClassVar

from . import constraints
from .library import gw
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The absolute value of a normal number of mean 0 and standard deviation ``scale``."""

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Any:
        """The standard deviation of the normal distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return self.scale * sqrt(2 / pi)

    @property
    def mode(self) -> Any:
        return gw.zeros_like(self.scale)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / pi)

    def log_prob(self, value: Any) -> Any:
        """Twice the normal density; minus infinity below 0."""
        if self._validate_args:
            self._validate_sample(value)
        return gw.where(value >= 0, self.base_dist.log_prob(value) + log(2), -inf)

    def cdf(self, value: Any) -> Any:
        """``2 F(value) - 1`` for the normal F."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        """The inverse of :meth:`cdf`."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        """log 2 less than the normal one."""
        return self.base_dist.entropy() - log(2)
