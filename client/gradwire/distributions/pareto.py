"""The Pareto distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .exponential import Exponential
from .parameters import broadcast_all
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Numbers from ``scale`` on whose tail falls as the power ``alpha``."""

    arg_constraints: ClassVar[dict[str, Any]] = {"alpha": constraints.positive, "scale": constraints.positive}
    _batched: ClassVar[dict[str, int]] = {"scale": 0, "alpha": 0}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)  # infinite up to 1
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)  # infinite up to 2
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Any:
        """``log(scale / alpha) + 1 + 1 / alpha``."""
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
