"""The Gumbel distribution."""

from __future__ import annotations

from math import pi
from typing import Any, ClassVar

from . import constraints
from .library import gw
from .parameters import broadcast_all, euler_constant, number_of, precision
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """``loc - scale * log(-log u)`` for a uniform u: the largest of many."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
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

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return pi / 6**0.5 * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        """``log(scale) + 1`` and Euler's constant."""
        return self.scale.log() + (1 + euler_constant)
