"""The Bernoulli distribution."""

from __future__ import annotations

from math import nan
from typing import Any, ClassVar

from . import constraints
from .exp_family import ExponentialFamily
from .library import gw
from .outcomes import Outcomes
from .parameters import log1p_exp

__all__ = ["Bernoulli"]


def cross_entropy(logits: Any, value: Any) -> Any:
    """``-log`` of the probability of a value of 0 or 1 at these log odds; linear between them."""
    return log1p_exp(logits) - logits * value


class Bernoulli(Outcomes, ExponentialFamily):
    """1 with probability ``probs``, else 0; or with log odds ``logits``."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _batched: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name",)
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        likely = (self.probs >= 0.5).to(self.probs.dtype)
        return gw.where(self.probs == 0.5, nan, likely)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """0 and 1, in the dtype of the probabilities."""
        with gw.no_grad():
            return gw.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
        return -cross_entropy(self.logits, value)

    def entropy(self) -> Any:
        """The cross entropy with itself."""
        return cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        """0, then 1."""
        return self._counting(2, self._param.dtype, expand)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (gw.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return log1p_exp(x)
