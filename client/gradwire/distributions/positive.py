"""Distributions of positive numbers."""

from __future__ import annotations

from math import inf, log, nan, pi, sqrt
from typing import Any, ClassVar

from .._core.context.argument_types import Shape
from .._core.tensor.tensor import Tensor
from . import constraints
from .composed import TransformedDistribution
from .distribution import Distribution, ExponentialFamily
from .library import call, gw
from .parameters import Values, broadcast_all, euler_constant, filled, moment, number_of, precision, uniform
from .real_line import Cauchy, Normal
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform

__all__ = [
    "Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto", "HalfCauchy", "HalfNormal", "InverseGamma",
    "LogNormal", "Pareto", "Weibull",
]  # fmt: skip


class Gamma(ExponentialFamily):
    """Density in proportion to ``x ** (concentration - 1) * exp(-rate * x)``."""

    concentration: Tensor
    rate: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"concentration": 0, "rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, concentration: Values, rate: Values, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: self.concentration / self.rate)
    mode: moment = moment(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance: moment = moment(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A variate of rate 1, which follows its concentration at a fixed quantile, over the rate."""
        shape = tuple(self._extended_shape(sample_shape))
        return call("standard_gamma", self.concentration.expand(shape)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        a, rate = self.concentration, self.rate
        return gw.xlogy(a, rate) + gw.xlogy(a - 1, value) - rate * value - gw.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        """The regularised lower incomplete gamma function."""
        self._check_sample(value)
        return gw.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        """``a - log(rate) + lgamma(a) + (1 - a) digamma(a)`` for a concentration a."""
        a = self.concentration
        return a - self.rate.log() + gw.lgamma(a) + (1 - a) * gw.digamma(a)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return gw.lgamma(x + 1) - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The sum of the squares of ``df`` independent standard normal numbers."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df": constraints.positive}
    _batched: ClassVar[dict[str, int]] = {"concentration": 0, "rate": 0}

    def __init__(self, df: Values, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        half = number_of(self.concentration)
        if half is not None:
            return filled(2 * half, (), self.concentration.dtype, self.concentration.device)
        return self.concentration * 2


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma variate."""

    base_dist: Gamma
    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, concentration: Values, rate: Values, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = -gw.ones((), dtype=base.rate.dtype, device=base.rate.device)
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The concentration of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return gw.where(a > 1, self.rate / (a - 1), inf)

    mode: moment = moment(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return gw.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), inf)

    def entropy(self) -> Tensor:
        """``a + log(rate) + lgamma(a) - (1 + a) digamma(a)`` for a concentration a."""
        a = self.concentration
        return a + self.rate.log() + gw.lgamma(a) - (1 + a) * gw.digamma(a)


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variates, each over its degrees of freedom."""

    df1: Tensor
    df2: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"df1": 0, "df2": 0}

    def __init__(self, df1: Values, df2: Values, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: gw.where(self.df2 > 2, self.df2 / (self.df2 - 2), nan))

    @property
    def mode(self) -> Tensor:
        inner = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return gw.where(self.df1 > 2, inner, nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        inner = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return gw.where(b > 4, inner, nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A ratio of gamma variates."""
        shape = tuple(self._extended_shape(sample_shape))
        tiny = precision(self.df2.dtype)[1]
        half1, half2 = self.df1 / 2, self.df2 / 2
        above = call("standard_gamma", half1.expand(shape)) / half1
        below = call("standard_gamma", half2.expand(shape)) / half2
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        return (
            gw.lgamma(a + b) - gw.lgamma(a) - gw.lgamma(b) + a * ratio.log() + (a - 1) * value.log()
            - (a + b) * (ratio * value).log1p()
        )  # fmt: skip


class Exponential(ExponentialFamily):
    """Waiting times of events that come at ``rate``."""

    rate: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, rate: Values, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: self.rate.reciprocal())
    mode: moment = moment(lambda self: gw.zeros_like(self.rate))
    stddev: moment = moment(lambda self: self.rate.reciprocal())
    variance: moment = moment(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A variate of rate 1, over the rate."""
        return -(-uniform(self._extended_shape(sample_shape), self.rate)).log1p() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """``1 - exp(-rate * value)``."""
        self._check_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """``1 - log(rate)``."""
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -(-x).log()


class Weibull(TransformedDistribution):
    """``scale * e ** (1 / concentration)`` for an exponential variate e of rate 1."""

    scale: Tensor
    concentration: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _batched: ClassVar[dict[str, int]] = {"scale": 0, "concentration": 0}

    def __init__(self, scale: Values, concentration: Values, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(
            Exponential(gw.ones_like(self.scale), validate_args=False), self._steps(), validate_args=validate_args
        )

    def _steps(self) -> list[Any]:
        self.concentration_reciprocal: Tensor = self.concentration.reciprocal()
        return [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        super()._expand_inner(new, batch_shape)
        new.transforms = new._steps()

    mean: moment = moment(lambda self: self.scale * gw.lgamma(1 + self.concentration_reciprocal).exp())

    @property
    def mode(self) -> Tensor:
        inner = (self.concentration - 1) / self.concentration
        return self.scale * inner.pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Tensor:
        first = gw.lgamma(1 + self.concentration_reciprocal)
        second = gw.lgamma(1 + 2 * self.concentration_reciprocal)
        return self.scale.pow(2) * (second.exp() - (2 * first).exp())

    def entropy(self) -> Tensor:
        """From Euler's constant and both parameters."""
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1


class Pareto(TransformedDistribution):
    """Numbers from ``scale`` on whose tail falls as the power ``alpha``."""

    scale: Tensor
    alpha: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"alpha": constraints.positive, "scale": constraints.positive}
    _batched: ClassVar[dict[str, int]] = {"scale": 0, "alpha": 0}

    def __init__(self, scale: Values, alpha: Values, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite up to 1
        return a * self.scale / (a - 1)

    mode: moment = moment(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)  # infinite up to 2
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        """``log(scale / alpha) + 1 + 1 / alpha``."""
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(Distribution):
    """Excesses over a threshold ``loc``: the survival function is ``(1 + c (x - loc) / scale) ** (-1 / c)``.

    ``c`` is ``concentration``; where it is 0 this is an exponential distribution, where it is negative the support
    ends at ``loc - scale / c``.
    """

    loc: Tensor
    scale: Tensor
    concentration: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Values, scale: Values, concentration: Values, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _parts(self) -> tuple[Any, Any]:
        """Where the concentration counts as 0, and the concentration with something else there."""
        flat = gw.isclose(self.concentration, gw.zeros_like(self.concentration))
        return flat, gw.where(flat, gw.ones_like(self.concentration), self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        ends = self.concentration < 0
        top = gw.where(ends, self.loc - self.scale / gw.where(ends, self.concentration, -1.0), inf)
        return constraints.interval(self.loc, top)

    def _z(self, x: Tensor) -> Any:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The quantile of a uniform number."""
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        flat, c = self._parts()
        z = self._z(value)
        tail = gw.where(flat, z, (1 + 1 / c) * gw.log1p(c * z))
        return -self.scale.log() - tail

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability beyond ``value``."""
        self._check_sample(value)
        flat, c = self._parts()
        z = self._z(value)
        return gw.where(flat, -z, -gw.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability up to ``value``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability up to ``value``."""
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile of a probability."""
        flat, c = self._parts()
        beyond = (-value).log1p()
        return self.loc + self.scale * gw.where(flat, -beyond, (-c * beyond).expm1() / c)

    @property
    def mean(self) -> Tensor:
        return gw.where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), nan)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return gw.where(c < 0.5, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), nan)

    def entropy(self) -> Tensor:
        """``log(scale) + concentration + 1``."""
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)

    mode: moment = moment(lambda self: self.loc)


class Half(TransformedDistribution):
    """The absolute value of a variate of ``whole``, whose density is symmetric around 0 and falls from there.

    It has the ``scale`` of that distribution.
    """

    base_dist: Cauchy | Normal
    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, whole: Any, validate_args: bool | None) -> None:
        super().__init__(whole, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the whole distribution."""
        return self.base_dist.scale

    mode: moment = moment(lambda self: gw.zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        """Twice the whole density; minus infinity below 0."""
        self._check_sample(value)
        return gw.where(value >= 0, self.base_dist.log_prob(value) + log(2), -inf)

    def cdf(self, value: Tensor) -> Tensor:
        """``2 F(value) - 1`` for the whole distribution's F."""
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        """log 2 less than the whole one."""
        return self.base_dist.entropy() - log(2)


class HalfCauchy(Half):
    """The absolute value of a Cauchy variate around 0 of the given ``scale``; its mean is infinite."""

    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, scale: Values, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    mean: moment = moment(lambda self: gw.full_like(self.scale, inf))
    variance: moment = moment(lambda self: self.base_dist.variance)


class HalfNormal(Half):
    """The absolute value of a normal number of mean 0 and standard deviation ``scale``."""

    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, scale: Values, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    mean: moment = moment(lambda self: self.scale * sqrt(2 / pi))
    variance: moment = moment(lambda self: self.scale.pow(2) * (1 - 2 / pi))


class LogNormal(TransformedDistribution):
    """The exponential of a normal number of mean ``loc`` and standard deviation ``scale``."""

    base_dist: Normal
    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, loc: Values, scale: Values, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=False), ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    mean: moment = moment(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode: moment = moment(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        """The normal one plus the mean of the logarithm."""
        return self.base_dist.entropy() + self.loc
