"""The generalised Pareto distribution."""

from __future__ import annotations

from math import inf, nan
from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .library import gw
from .parameters import broadcast_all, uniform

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Excesses over a threshold ``loc``: the survival function is ``(1 + c (x - loc) / scale) ** (-1 / c)``.

    ``c`` is ``concentration``; where it is 0 this is an exponential distribution, where it is negative the support
    ends at ``loc - scale / c``.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _parts(self) -> tuple[Any, Any]:
        """Where the concentration counts as 0, and the concentration with something else there."""
        flat = gw.isclose(self.concentration, gw.zeros_like(self.concentration))
        return flat, gw.where(flat, gw.ones_like(self.concentration), self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        ends = self.concentration < 0
        top = gw.where(ends, self.loc - self.scale / gw.where(ends, self.concentration, -1.0), inf)
        return constraints.interval(self.loc, top)

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        """The quantile of a uniform number."""
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        flat, c = self._parts()
        z = self._z(value)
        tail = gw.where(flat, z, (1 + 1 / c) * gw.log1p(c * z))
        return -self.scale.log() - tail

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability beyond ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        flat, c = self._parts()
        z = self._z(value)
        return gw.where(flat, -z, -gw.log1p(c * z) / c)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the probability up to ``value``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        """The probability up to ``value``."""
        return self.log_cdf(value).exp()

    def icdf(self, value: Any) -> Any:
        """The quantile of a probability."""
        flat, c = self._parts()
        beyond = (-value).log1p()
        return self.loc + self.scale * gw.where(flat, -beyond, (-c * beyond).expm1() / c)

    @property
    def mean(self) -> Any:
        return gw.where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), nan)

    @property
    def variance(self) -> Any:
        c = self.concentration
        return gw.where(c < 0.5, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), nan)

    def entropy(self) -> Any:
        """``log(scale) + concentration + 1``."""
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)

    @property
    def mode(self) -> Any:
        return self.loc
