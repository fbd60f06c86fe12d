"""What relaxed distributions share: a temperature, and a base distribution in logarithms that has the parameters."""

from __future__ import annotations

from math import log
from typing import Any

from ..tensor import Tensor
from .transformed_distribution import TransformedDistribution


def log_of(temperature: Any) -> Any:
    """The logarithm of a temperature, which is a tensor or a number."""
    return temperature.log() if isinstance(temperature, Tensor) else log(temperature)


class Relaxed(TransformedDistribution):
    """A transform of ``base``, which has checked the parameters already."""

    has_rsample = True

    def __init__(self, base: Any, transform: Any) -> None:
        super().__init__(base, transform, validate_args=False)
        self._validate_args = base._validate_args

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Log odds of two outcomes, logarithms of the probabilities of several."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs
