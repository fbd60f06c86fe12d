"""The continuous Bernoulli distribution."""

from __future__ import annotations

from math import log
from typing import Any, ClassVar

from . import constraints
from .bernoulli import cross_entropy
from .exp_family import ExponentialFamily
from .library import gw
from .outcomes import Outcomes
from .parameters import clamp_probs, uniform

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Outcomes, ExponentialFamily):
    """Numbers from 0 to 1 with density in proportion to ``p ** x * (1 - p) ** (1 - x)``.

    Loaiza-Ganem and Cunningham, "The continuous Bernoulli", 2019. Between ``lims``, around one half, where the
    formulas are 0 over 0, their Taylor series are used.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name", "_lims")
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._take(probs, logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)  # after they were checked

    def _outside(self) -> Any:
        """Where the formulas hold."""
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _cut_probs(self) -> Any:
        """The probabilities, with the lower limit where the formulas do not hold."""
        return gw.where(self._outside(), self.probs, self._lims[0])

    def _chosen(self, formula: Any, series: Any) -> Any:
        return gw.where(self._outside(), formula, series)

    def _log_norm(self) -> Any:
        """The logarithm of what the density is multiplied by to integrate to 1."""
        p = self._cut_probs()
        formula = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5).pow(2)
        return self._chosen(formula, log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Any:
        p = self._cut_probs()
        x = self.probs - 0.5
        series = 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x
        return self._chosen(p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()), series)

    @property
    def variance(self) -> Any:
        p = self._cut_probs()
        x = (self.probs - 0.5).pow(2)
        formula = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / ((-p).log1p() - p.log()).pow(2)
        return self._chosen(formula, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """The quantile of a uniform number."""
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        return self._log_norm() - cross_entropy(self.logits, value)

    def cdf(self, value: Any) -> Any:
        """The probability up to ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        formula = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        inner = self._chosen(formula, value)
        return gw.where(value <= 0, 0.0, gw.where(value >= 1, gw.ones_like(inner), inner))

    def icdf(self, value: Any) -> Any:
        """The inverse of :meth:`cdf`."""
        p = self._cut_probs()
        formula = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return self._chosen(formula, value)

    def entropy(self) -> Any:
        """From the mean, in which the logarithm of the density is linear."""
        none, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (none - one) - self._log_norm() - none

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        low, high = self._lims
        outside = (x <= low - 0.5) | (x > high - 0.5)
        cut = gw.where(outside, x, low - 0.5)
        square = x.pow(2)
        series = 0.5 * x + square / 24 - square.pow(2) / 2880
        return gw.where(outside, cut.expm1().abs().log() - cut.abs().log(), series)
