"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .outcomes import Outcomes
from .parameters import clamp_probs, log1p_exp, uniform
from .relaxed import Relaxed, log_of
from .transforms import SigmoidTransform

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Outcomes):
    """Log odds of relaxed Bernoulli samples: logistic noise around the logits, over a temperature.

    Maddison, Mnih and Teh, "The concrete distribution", 2017; Jang, Gu and Poole, "Categorical reparameterization
    with Gumbel-softmax", 2017.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name", "temperature")

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """``(logit(u) + logits) / temperature`` for a uniform u."""
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self._param))
        p = clamp_probs(self.probs)
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        away = self.logits - value * self.temperature
        return log_of(self.temperature) + away - 2 * log1p_exp(away)


class RelaxedBernoulli(Relaxed):
    """Numbers between 0 and 1 that tend to a Bernoulli variate as ``temperature`` tends to 0, with gradients."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform())
