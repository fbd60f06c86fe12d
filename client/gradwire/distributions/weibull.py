"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .exponential import Exponential
from .library import gw
from .parameters import broadcast_all, euler_constant
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """``scale * e ** (1 / concentration)`` for an exponential variate e of rate 1."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "scale": constraints.positive, "concentration": constraints.positive,
    }  # fmt: skip
    support = constraints.positive
    _batched: ClassVar[dict[str, int]] = {"scale": 0, "concentration": 0}

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(
            Exponential(gw.ones_like(self.scale), validate_args=False), self._steps(), validate_args=validate_args
        )  # fmt: skip

    def _steps(self) -> list[Any]:
        self.concentration_reciprocal = self.concentration.reciprocal()
        return [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
        super()._expand_inner(new, batch_shape)
        new.transforms = new._steps()

    @property
    def mean(self) -> Any:
        return self.scale * gw.lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Any:
        inner = (self.concentration - 1) / self.concentration
        return self.scale * inner.pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Any:
        first = gw.lgamma(1 + self.concentration_reciprocal)
        second = gw.lgamma(1 + 2 * self.concentration_reciprocal)
        return self.scale.pow(2) * (second.exp() - (2 * first).exp())

    def entropy(self) -> Any:
        """From Euler's constant and both parameters."""
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
