"""The relaxed categorical distribution."""

from __future__ import annotations

from math import lgamma
from typing import Any, ClassVar

from . import constraints
from .categorical import Categorical
from .outcome_vectors import OutcomeVectors
from .parameters import clamp_probs, uniform
from .relaxed import Relaxed, log_of
from .transforms import ExpTransform

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OutcomeVectors):
    """Logarithms of relaxed one-hot samples [Maddison, Mnih and Teh, "The concrete distribution", 2017]."""

    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(Categorical(probs, logits, validate_args=False), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Gumbel noise on the logits, over the temperature, normalised."""
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        count = self._event_shape[0]
        scale = (count - 1) * log_of(self.temperature) + lgamma(count)
        score = self.logits - value * self.temperature
        return (score - score.logsumexp(-1, True)).sum(-1) + scale


class RelaxedOneHotCategorical(Relaxed):
    """Points of a simplex that tend to its corners as ``temperature`` tends to 0, with gradients."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform())
