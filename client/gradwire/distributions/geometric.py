"""The geometric distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .bernoulli import cross_entropy
from .distribution import require
from .library import gw
from .outcomes import Outcomes
from .parameters import precision, uniform

__all__ = ["Geometric"]


class Geometric(Outcomes):
    """How many independent trials fail before the first success: 0, 1, 2, ..."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            require(self.probs, constraints.positive, "Geometric: the parameter probs must be positive")

    @property
    def mean(self) -> Any:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Any:
        return gw.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        """By inversion."""
        with gw.no_grad():
            tiny = precision(self.probs.dtype)[1]
            u = uniform(self._extended_shape(sample_shape), self.probs).clamp(min=tiny)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        """``value * log(1 - p) + log(p)``."""
        if self._validate_args:
            self._validate_sample(value)
        probs = self.probs
        certain = (probs == 1) & (value == 0)  # 0 times minus infinity
        return value * (-gw.where(certain, 0.0, probs)).log1p() + probs.log()

    def entropy(self) -> Any:
        """That of one trial, over the probability of success."""
        return cross_entropy(self.logits, self.probs) / self.probs
