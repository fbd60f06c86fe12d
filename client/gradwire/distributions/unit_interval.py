"""Distributions on the unit interval and on the simplex."""

from __future__ import annotations

from math import nan
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError

from .._core.context.argument_types import Shape
from .._core.tensor.tensor import Tensor
from . import constraints
from .composed import TransformedDistribution
from .distribution import ExponentialFamily
from .library import call, gw
from .parameters import Values, broadcast_all, euler_constant, moment
from .real_line import Normal, Uniform
from .transforms import AffineTransform, PowerTransform, StickBreakingTransform

__all__ = ["Beta", "Dirichlet", "Kumaraswamy", "LogisticNormal"]


class Dirichlet(ExponentialFamily):
    """Points of a simplex; ``concentration`` has one element for each component along its last dimension."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"concentration": 1}
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentValueError("Dirichlet: concentration needs a dimension of components, this is one number")
        self.concentration: Tensor = concentration
        shape = tuple(concentration.shape)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples that follow the concentrations, each component along the quantiles of its marginal."""
        return call("sample_dirichlet", self.concentration.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, with respect to all components but the last."""
        self._check_sample(value)
        a = self.concentration
        return gw.xlogy(a - 1, value).sum(-1) + gw.lgamma(a.sum(-1)) - gw.lgamma(a).sum(-1)

    mean: moment = moment(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        inner = above / above.sum(-1, True)
        corner = gw.nn.functional.one_hot(inner.argmax(-1), self.concentration.shape[-1]).to(inner.dtype)
        return gw.where((self.concentration < 1).all(-1, True), corner, inner)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        """From the digammas of the concentrations and of their sum."""
        a = self.concentration
        count, total = a.shape[-1], a.sum(-1)
        return (
            gw.lgamma(a).sum(-1) - gw.lgamma(total) - (count - total) * gw.digamma(total)
            - ((a - 1) * gw.digamma(a)).sum(-1)
        )  # fmt: skip

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return gw.lgamma(x).sum(-1) - gw.lgamma(x.sum(-1))


class Beta(ExponentialFamily):
    """Density in proportion to ``x ** (concentration1 - 1) * (1 - x) ** (concentration0 - 1)``."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"_concentration1": 0, "_concentration0": 0}
    _mean_carrier_measure = 0

    def __init__(self, concentration1: Values, concentration0: Values, validate_args: bool | None = None) -> None:
        # Kept beside the Dirichlet distribution that has them: numbers are known here, and checked without the server.
        self._concentration1, self._concentration0 = broadcast_all(concentration1, concentration0)
        both = gw.stack([self._concentration1, self._concentration0], -1)
        self._dirichlet = Dirichlet(both, validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> Tensor:
        """The first concentration: of the value."""
        return self._concentration1

    @property
    def concentration0(self) -> Tensor:
        """The second concentration: of one less the value."""
        return self._concentration0

    mean: moment = moment(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode: moment = moment(lambda self: self._dirichlet.mode.select(-1, 0))

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The first component of a Dirichlet variate of two."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        return self._dirichlet.log_prob(gw.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        """That of the Dirichlet distribution."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return gw.lgamma(x) + gw.lgamma(y) - gw.lgamma(x + y)


class Kumaraswamy(TransformedDistribution):
    """Like the Beta distribution, with the distribution function ``1 - (1 - x ** a) ** b``.

    ``a`` is ``concentration1``, ``b`` is ``concentration0``.
    """

    concentration1: Tensor
    concentration0: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Values, concentration0: Values, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(gw.zeros_like(self.concentration0), gw.ones_like(self.concentration0), validate_args=False)
        steps = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        """The n-th moment, ``b B(1 + n / a, b)``."""
        share, b = 1 + n / self.concentration1, self.concentration0
        return (b.log() + gw.lgamma(share) + gw.lgamma(b) - gw.lgamma(share + b)).exp()

    mean: moment = moment(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner = a.reciprocal() * ((a - 1) / (a * b - 1)).log()
        return gw.where((a < 1) | (b < 1), nan, inner.exp())

    variance: moment = moment(lambda self: self._moment(2) - self.mean.pow(2))

    def entropy(self) -> Tensor:
        """From the harmonic number of ``concentration0``."""
        a, b = self.concentration1, self.concentration0
        harmonic = gw.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """Points of a simplex: independent normal numbers along the last dimension, through stick breaking."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, loc: Values, scale: Values, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def _normal(self) -> Any:
        independent: Any = self.base_dist
        return independent.base_dist

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self._normal.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal numbers."""
        return self._normal.scale
