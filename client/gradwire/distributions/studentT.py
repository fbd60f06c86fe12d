"""Student's t distribution."""

from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .library import call, gw
from .parameters import broadcast_all, noise

__all__ = ["StudentT"]


class StudentT(Distribution):
    """``loc + scale * z / sqrt(c / df)`` for a standard normal z and a chi-squared c of ``df`` degrees of freedom."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return gw.where(self.df > 1, self.loc, nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        wide = self.scale.pow(2) * self.df / (self.df - 2)
        return gw.where(self.df > 2, wide, gw.where(self.df > 1, gw.full_like(wide, inf), nan))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A normal variate over the root of a gamma variate."""
        shape = tuple(self._extended_shape(sample_shape))
        z = noise(shape, self.df)
        half_df = self.df / 2
        mixed = call("standard_gamma", half_df.expand(shape)) / half_df
        return self.loc + self.scale * z * mixed.rsqrt()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log() + 0.5 * self.df.log() + log(pi) / 2 + gw.lgamma(0.5 * self.df)
            - gw.lgamma(0.5 * (self.df + 1))
        )  # fmt: skip
        return -0.5 * (self.df + 1) * (y.pow(2) / self.df).log1p() - normalizer

    def entropy(self) -> Any:
        """From digammas, and the Beta function of 1/2 and half the degrees of freedom."""
        half = 0.5 * self.df
        log_beta = log(pi) / 2 + gw.lgamma(half) - gw.lgamma(half + 0.5)
        spread = (half + 0.5) * (gw.digamma(half + 0.5) - gw.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta
