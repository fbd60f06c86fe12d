"""Relaxed distributions: continuous ones that tend to outcomes as their temperature tends to 0."""

from __future__ import annotations

from math import lgamma, log
from typing import Any, ClassVar

from .._core.context.argument_types import Shape
from .._core.tensor.tensor import Tensor
from . import constraints
from .composed import TransformedDistribution
from .distribution import Distribution
from .outcomes import Categorical, Outcomes, OutcomeVectors
from .parameters import Values, clamp_probs, log1p_exp, uniform
from .transforms import ExpTransform, SigmoidTransform

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


def log_of(temperature: Values) -> Values:
    """The logarithm of a temperature, which is a tensor or a number."""
    return temperature.log() if isinstance(temperature, Tensor) else log(temperature)


class Relaxed(TransformedDistribution):
    """A transform of ``base``, which has checked the parameters already."""

    base_dist: LogitRelaxedBernoulli | ExpRelaxedCategorical
    has_rsample = True

    def __init__(self, base: Distribution, transform: Any) -> None:
        super().__init__(base, transform, validate_args=False)
        self._validate_args = base._validate_args

    @property
    def temperature(self) -> Values:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log odds of two outcomes, logarithms of the probabilities of several."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs


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
        self,
        temperature: Values,
        probs: Values | None = None,
        logits: Values | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature: Values = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """``(logit(u) + logits) / temperature`` for a uniform u."""
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self._param))
        p = clamp_probs(self.probs)
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        away = self.logits - value * self.temperature
        return log_of(self.temperature) + away - 2 * log1p_exp(away)


class RelaxedBernoulli(Relaxed):
    """Numbers between 0 and 1 that tend to a Bernoulli variate as ``temperature`` tends to 0, with gradients."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(
        self,
        temperature: Values,
        probs: Values | None = None,
        logits: Values | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform())


class ExpRelaxedCategorical(OutcomeVectors):
    """Logarithms of relaxed one-hot samples [Maddison, Mnih and Teh, "The concrete distribution", 2017]."""

    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("temperature",)

    def __init__(
        self,
        temperature: Values,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature: Values = temperature
        super().__init__(Categorical(probs, logits, validate_args=False), validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Gumbel noise on the logits, over the temperature, normalised."""
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
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
        self,
        temperature: Values,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform())
