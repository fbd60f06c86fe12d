"""The uniform distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .parameters import broadcast_all, number_of
from .parameters import uniform as drawn

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers from ``low`` up to but without ``high``, all equally likely."""

    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"low": 0, "high": 0}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        low, high = number_of(self.low), number_of(self.high)
        return {
            "low": constraints.less_than(self.high if high is None or low is None else high),
            "high": constraints.greater_than(self.low if high is None or low is None else low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return float("nan") * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        """``low + u * (high - low)``."""
        return self.low + drawn(self._extended_shape(sample_shape), self.low) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """``-log(high - low)``, minus infinity outside."""
        if self._validate_args:
            self._validate_sample(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Any:
        """The share of the interval below."""
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        """The inverse of :meth:`cdf`."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        """``log(high - low)``."""
        return (self.high - self.low).log()
