"""The gamma distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .exp_family import ExponentialFamily
from .library import call, gw
from .parameters import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Density in proportion to ``x ** (concentration - 1) * exp(-rate * x)``."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration": constraints.positive, "rate": constraints.positive,
    }  # fmt: skip
    support = constraints.nonnegative
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"concentration": 0, "rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A variate of rate 1, which follows its concentration at a fixed quantile, over the rate."""
        shape = tuple(self._extended_shape(sample_shape))
        return call("standard_gamma", self.concentration.expand(shape)) / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return gw.xlogy(a, rate) + gw.xlogy(a - 1, value) - rate * value - gw.lgamma(a)

    def cdf(self, value: Any) -> Any:
        """The regularised lower incomplete gamma function."""
        if self._validate_args:
            self._validate_sample(value)
        return gw.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        """``a - log(rate) + lgamma(a) + (1 - a) digamma(a)`` for a concentration a."""
        a = self.concentration
        return a - self.rate.log() + gw.lgamma(a) + (1 - a) * gw.digamma(a)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return gw.lgamma(x + 1) - (x + 1) * (-y).log()
