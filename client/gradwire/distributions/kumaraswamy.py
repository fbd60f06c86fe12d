"""The Kumaraswamy distribution."""

from __future__ import annotations

from math import nan
from typing import Any, ClassVar

from . import constraints
from .library import gw
from .parameters import broadcast_all, euler_constant
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Like the Beta distribution, with the distribution function ``1 - (1 - x ** a) ** b``.

    ``a`` is ``concentration1``, ``b`` is ``concentration0``.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support = constraints.unit_interval
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(gw.zeros_like(self.concentration0), gw.ones_like(self.concentration0), validate_args=False)
        steps = [
            PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]  # fmt: skip
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        """The n-th moment, ``b B(1 + n / a, b)``."""
        share, b = 1 + n / self.concentration1, self.concentration0
        return (b.log() + gw.lgamma(share) + gw.lgamma(b) - gw.lgamma(share + b)).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        inner = a.reciprocal() * ((a - 1) / (a * b - 1)).log()
        return gw.where((a < 1) | (b < 1), nan, inner.exp())

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Any:
        """From the harmonic number of ``concentration0``."""
        a, b = self.concentration1, self.concentration0
        harmonic = gw.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
