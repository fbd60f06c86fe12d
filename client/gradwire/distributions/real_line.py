"""Distributions on the real line."""

from __future__ import annotations

from math import inf, log, nan, pi, sqrt
from typing import Any, ClassVar

from .._core.context.argument_types import Shape
from .._core.tensor.tensor import Tensor
from . import constraints
from .composed import TransformedDistribution
from .distribution import Distribution, ExponentialFamily
from .library import call, gw
from .parameters import Values, broadcast_all, euler_constant, moment, noise, number_of, precision, uniform
from .parameters import uniform as drawn
from .transforms import AffineTransform, ExpTransform

__all__ = ["Cauchy", "Gumbel", "Laplace", "Normal", "StudentT", "Uniform", "VonMises"]


class Normal(ExponentialFamily):
    """Mean ``loc`` and standard deviation ``scale``."""

    loc: Tensor
    scale: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}
    _mean_carrier_measure = 0

    def __init__(self, loc: Values, scale: Values, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: self.loc)
    mode: moment = moment(lambda self: self.loc)
    stddev: moment = moment(lambda self: self.scale)
    variance: moment = moment(lambda self: self.stddev.pow(2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """``loc + scale * noise``."""
        return self.loc + noise(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        return -(((value - self.loc) / self.scale) ** 2) / 2 - self.scale.log() - log(2 * pi) / 2

    def cdf(self, value: Tensor) -> Tensor:
        """Through the error function."""
        self._check_sample(value)
        return 0.5 * (1 + gw.erf((value - self.loc) / (self.scale * sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        """Through the inverse error function."""
        return self.loc + self.scale * gw.erfinv(2 * value - 1) * sqrt(2)

    def entropy(self) -> Tensor:
        """``log(scale * sqrt(2 pi e))``."""
        return self.scale.log() + (0.5 + log(2 * pi) / 2)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        precision = self.scale.pow(-2)
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x * x / y + 0.5 * (-pi / y).log()


class Uniform(Distribution):
    """Numbers from ``low`` up to but without ``high``, all equally likely."""

    low: Tensor
    high: Tensor

    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"low": 0, "high": 0}

    def __init__(self, low: Values, high: Values, validate_args: bool | None = None) -> None:
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
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    mean: moment = moment(lambda self: (self.high + self.low) / 2)
    mode: moment = moment(lambda self: float("nan") * self.high)
    stddev: moment = moment(lambda self: (self.high - self.low) / 12**0.5)
    variance: moment = moment(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """``low + u * (high - low)``."""
        return self.low + drawn(self._extended_shape(sample_shape), self.low) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """``-log(high - low)``, minus infinity outside."""
        self._check_sample(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """The share of the interval below."""
        self._check_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """``log(high - low)``."""
        return (self.high - self.low).log()


class Cauchy(Distribution):
    """Median ``loc`` and half width at half maximum ``scale``; it has neither mean nor variance."""

    loc: Tensor
    scale: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Values, scale: Values, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: gw.full_like(self.loc, nan))
    mode: moment = moment(lambda self: self.loc)
    variance: moment = moment(lambda self: gw.full_like(self.loc, inf))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """``loc + scale * noise``."""
        angle = (uniform(self._extended_shape(sample_shape), self.loc) - 0.5) * pi
        return self.loc + angle.tan() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        return -log(pi) - self.scale.log() - ((value - self.loc) / self.scale).pow(2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """Through the arctangent."""
        self._check_sample(value)
        return gw.atan((value - self.loc) / self.scale) / pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """Through the tangent."""
        return gw.tan(pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        """``log(4 pi scale)``."""
        return self.scale.log() + log(4 * pi)


class Laplace(Distribution):
    """Density ``exp(-|x - loc| / scale) / (2 scale)``."""

    loc: Tensor
    scale: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Values, scale: Values, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: self.loc)
    mode: moment = moment(lambda self: self.loc)
    stddev: moment = moment(lambda self: sqrt(2) * self.scale)
    variance: moment = moment(lambda self: 2 * self.scale.pow(2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A signed exponential variate, from one uniform number."""
        eps = precision(self.loc.dtype)[0]
        u = uniform(self._extended_shape(sample_shape), self.loc) * (2 - eps) + (eps - 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        """One half, more or less an exponential tail."""
        self._check_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        """``1 + log(2 scale)``."""
        return self.scale.log() + (1 + log(2))


class Gumbel(TransformedDistribution):
    """``loc - scale * log(-log u)`` for a uniform u: the largest of many."""

    loc: Tensor
    scale: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Values, scale: Values, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        eps, tiny = precision(self.loc.dtype)
        if number_of(self.loc) is not None and number_of(self.scale) is not None:
            base = Uniform(tiny, 1 - eps, validate_args=False)
        else:
            low, high = gw.full_like(self.loc, tiny), gw.full_like(self.loc, 1 - eps)
            base = Uniform(low, high, validate_args=False)
        steps = [
            ExpTransform().inv, AffineTransform(0, -1.0), ExpTransform().inv, AffineTransform(self.loc, -self.scale),
        ]  # fmt: skip
        super().__init__(base, steps, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    mean: moment = moment(lambda self: self.loc + self.scale * euler_constant)
    mode: moment = moment(lambda self: self.loc)
    stddev: moment = moment(lambda self: pi / 6**0.5 * self.scale)
    variance: moment = moment(lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        """``log(scale) + 1`` and Euler's constant."""
        return self.scale.log() + (1 + euler_constant)


class StudentT(Distribution):
    """``loc + scale * z / sqrt(c / df)`` for a standard normal z and a chi-squared c of ``df`` degrees of freedom."""

    df: Tensor
    loc: Tensor
    scale: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df: Values, loc: Values = 0.0, scale: Values = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: gw.where(self.df > 1, self.loc, nan))
    mode: moment = moment(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        wide = self.scale.pow(2) * self.df / (self.df - 2)
        return gw.where(self.df > 2, wide, gw.where(self.df > 1, gw.full_like(wide, inf), nan))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A normal variate over the root of a gamma variate."""
        shape = tuple(self._extended_shape(sample_shape))
        z = noise(shape, self.df)
        half_df = self.df / 2
        mixed = call("standard_gamma", half_df.expand(shape)) / half_df
        return self.loc + self.scale * z * mixed.rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log() + 0.5 * self.df.log() + log(pi) / 2 + gw.lgamma(0.5 * self.df)
            - gw.lgamma(0.5 * (self.df + 1))
        )  # fmt: skip
        return -0.5 * (self.df + 1) * (y.pow(2) / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        """From digammas, and the Beta function of 1/2 and half the degrees of freedom."""
        half = 0.5 * self.df
        log_beta = log(pi) / 2 + gw.lgamma(half) - gw.lgamma(half + 0.5)
        spread = (half + 0.5) * (gw.digamma(half + 0.5) - gw.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta


class VonMises(Distribution):
    """Angles, in radians, around ``loc``: density in proportion to ``exp(concentration * cos(x - loc))``.

    Samples lie from -pi to pi; ``log_prob`` takes any angle.
    """

    loc: Tensor
    concentration: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Values, concentration: Values, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        k = self.concentration
        # log I0(k) = k + log(i0e(k)), which does not overflow.
        return k * ((value - self.loc).cos() - 1) - log(2 * pi) - gw.special.i0e(k).log()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Angles from -pi to pi."""
        with gw.no_grad():
            shape = tuple(self._extended_shape(sample_shape))
            angle = call("sample_von_mises", self.concentration.expand(shape))
            return (angle + pi + self.loc) % (2 * pi) - pi

    @property
    def mean(self) -> Tensor:
        """The direction of the mean of the points on the circle."""
        return self.loc

    mode: moment = moment(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The circular variance: 1 less the length of the mean of the points on the circle."""
        return 1 - gw.special.i1e(self.concentration) / gw.special.i0e(self.concentration)
