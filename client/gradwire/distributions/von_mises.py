"""The von Mises distribution."""

from __future__ import annotations

from math import log, pi
from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .library import call, gw
from .parameters import broadcast_all

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles, in radians, around ``loc``: density in proportion to ``exp(concentration * cos(x - loc))``.

    Samples lie from -pi to pi; ``log_prob`` takes any angle.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _batched: ClassVar[dict[str, int]] = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # log I0(k) = k + log(i0e(k)), which does not overflow.
        return k * ((value - self.loc).cos() - 1) - log(2 * pi) - gw.special.i0e(k).log()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Angles from -pi to pi."""
        with gw.no_grad():
            shape = tuple(self._extended_shape(sample_shape))
            angle = call("sample_von_mises", self.concentration.expand(shape))
            return (angle + pi + self.loc) % (2 * pi) - pi

    @property
    def mean(self) -> Any:
        """The direction of the mean of the points on the circle."""
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """The circular variance: 1 less the length of the mean of the points on the circle."""
        return 1 - gw.special.i1e(self.concentration) / gw.special.i0e(self.concentration)
