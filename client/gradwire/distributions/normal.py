"""The normal distribution."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any, ClassVar

from . import constraints
from .exp_family import ExponentialFamily
from .library import gw
from .parameters import broadcast_all, noise

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """Mean ``loc`` and standard deviation ``scale``."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}
    _mean_carrier_measure = 0

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """``loc + scale * noise``."""
        return self.loc + noise(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        return -(((value - self.loc) / self.scale) ** 2) / 2 - self.scale.log() - log(2 * pi) / 2

    def cdf(self, value: Any) -> Any:
        """Through the error function."""
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + gw.erf((value - self.loc) / (self.scale * sqrt(2))))

    def icdf(self, value: Any) -> Any:
        """Through the inverse error function."""
        return self.loc + self.scale * gw.erfinv(2 * value - 1) * sqrt(2)

    def entropy(self) -> Any:
        """``log(scale * sqrt(2 pi e))``."""
        return self.scale.log() + (0.5 + log(2 * pi) / 2)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        precision = self.scale.pow(-2)
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x * x / y + 0.5 * (-pi / y).log()
