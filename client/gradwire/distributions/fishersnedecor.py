"""The F distribution of Fisher and Snedecor."""

from __future__ import annotations

from math import nan
from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .library import call, gw
from .parameters import broadcast_all, precision

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variates, each over its degrees of freedom."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"df1": 0, "df2": 0}

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return gw.where(self.df2 > 2, self.df2 / (self.df2 - 2), nan)

    @property
    def mode(self) -> Any:
        inner = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return gw.where(self.df1 > 2, inner, nan)

    @property
    def variance(self) -> Any:
        a, b = self.df1, self.df2
        inner = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return gw.where(b > 4, inner, nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A ratio of gamma variates."""
        shape = tuple(self._extended_shape(sample_shape))
        tiny = precision(self.df2.dtype)[1]
        half1, half2 = self.df1 / 2, self.df2 / 2
        above = call("standard_gamma", half1.expand(shape)) / half1
        below = call("standard_gamma", half2.expand(shape)) / half2
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        return (
            gw.lgamma(a + b) - gw.lgamma(a) - gw.lgamma(b) + a * ratio.log() + (a - 1) * value.log()
            - (a + b) * (ratio * value).log1p()
        )  # fmt: skip
