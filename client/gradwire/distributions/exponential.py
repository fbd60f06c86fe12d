"""The exponential distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .exp_family import ExponentialFamily
from .library import gw
from .parameters import broadcast_all, uniform

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Waiting times of events that come at ``rate``."""

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        return gw.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A variate of rate 1, over the rate."""
        return -(-uniform(self._extended_shape(sample_shape), self.rate)).log1p() / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        """``1 - exp(-rate * value)``."""
        if self._validate_args:
            self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Any) -> Any:
        """The inverse of :meth:`cdf`."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Any:
        """``1 - log(rate)``."""
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Any) -> Any:
        return -(-x).log()
