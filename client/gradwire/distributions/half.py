"""What the absolute values of variates around 0 share."""

from __future__ import annotations

from math import inf, log
from typing import Any, ClassVar

from . import constraints
from .library import gw
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """The absolute value of a variate of ``whole``, whose density is symmetric around 0 and falls from there.

    It has the ``scale`` of that distribution.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, whole: Any, validate_args: bool | None) -> None:
        super().__init__(whole, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Any:
        """The scale of the whole distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return gw.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        """Twice the whole density; minus infinity below 0."""
        if self._validate_args:
            self._validate_sample(value)
        return gw.where(value >= 0, self.base_dist.log_prob(value) + log(2), -inf)

    def cdf(self, value: Any) -> Any:
        """``2 F(value) - 1`` for the whole distribution's F."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        """The inverse of :meth:`cdf`."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        """log 2 less than the whole one."""
        return self.base_dist.entropy() - log(2)
