"""Distributions of counts."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core.context.argument_types import Shape
from .._core.tensor.tensor import Tensor
from . import constraints
from .distribution import ExponentialFamily
from .library import gw
from .outcomes import Categorical, Outcomes, OutcomeVectors, one_of
from .parameters import Values, broadcast_all, lazy_property, log1p_exp, moment, number_of
from .positive import Gamma

__all__ = ["Binomial", "Multinomial", "NegativeBinomial", "Poisson"]


class Counts(Outcomes):
    """Numbers of trials ``total_count``, which broadcast with the probabilities."""

    total_count: Tensor

    def _count(self, total_count: Values, probs: Values | None, logits: Values | None) -> None:
        self._name = one_of(self, probs, logits)
        chosen: Any = logits if probs is None else probs
        count, given = broadcast_all(total_count, chosen)
        self.total_count = count if count.dtype is given.dtype else count.to(given.dtype)
        setattr(self, self._name, given)


class Binomial(Counts):
    """How many of ``total_count`` independent trials succeed."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batched: ClassVar[dict[str, int]] = {"total_count": 0, "probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name", "_known_count")

    def __init__(
        self,
        total_count: Values = 1,
        probs: Values | None = None,
        logits: Values | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._count(total_count, probs, logits)
        self._known_count = number_of(total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        known = self._known_count
        return constraints.integer_interval(0, self.total_count if known is None else known)

    mean: moment = moment(lambda self: self.total_count * self.probs)
    mode: moment = moment(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance: moment = moment(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Counts, in the dtype of the probabilities."""
        with gw.no_grad():
            shape = tuple(self._extended_shape(sample_shape))
            return gw.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check_sample(value)
        n = self.total_count
        ways = gw.lgamma(n + 1) - gw.lgamma(value + 1) - gw.lgamma(n - value + 1)
        return value * self.logits - n * log1p_exp(self.logits) + ways

    def _trials(self, what: str) -> int:
        """The number of trials, where it is one. A round trip where it was given as a tensor."""
        if self._known_count is None:
            least, most = gw.fetch(self.total_count.min(), self.total_count.max())
            if least != most:
                raise NotImplementedError(
                    f"Binomial.{what} needs one number of trials for the whole batch; they are {least:g} to {most:g}"
                )
            self._known_count = int(most)
        return int(self._known_count)

    def entropy(self) -> Tensor:
        """The sum over all counts."""
        self._trials("entropy")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0, 1, ..., the number of trials."""
        return self._counting(1 + self._trials("enumerate_support"), self._param.dtype, expand)


class Multinomial(OutcomeVectors):
    """How often each outcome occurs in ``total_count`` (one int) independent trials. See :class:`Categorical`."""

    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("total_count",)

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial takes one number of trials, an int, for the whole batch")
        self.total_count: int = total_count
        super().__init__(Categorical(probs, logits, validate_args=False), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    mean: moment = moment(lambda self: self.probs * self.total_count)
    variance: moment = moment(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Counts, in the dtype of the probabilities."""
        with gw.no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            param = self._param
            counts = gw.zeros(tuple(self._extended_shape(sample_shape)), dtype=param.dtype, device=param.device)
            return counts.scatter_add(-1, drawn, gw.ones_like(drawn, dtype=param.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check_sample(value)
        logits = self.logits
        # What cannot happen and did not: 0 times minus infinity.
        harmless = gw.where((value == 0) & (logits == -float("inf")), 0.0, logits)
        ways = gw.lgamma(value.sum(-1) + 1) - gw.lgamma(value + 1).sum(-1)
        return ways + (harmless * value).sum(-1)

    def entropy(self) -> Tensor:
        """From that of one trial and the marginal counts, which are binomial."""
        n = self.total_count
        counts = Binomial(n, self.probs, validate_args=False)
        values = counts.enumerate_support(False)
        chances = counts.log_prob(values).exp()
        ways = (chances * gw.lgamma(values + 1)).sum((0, -1))
        total = gw.lgamma(gw.tensor(n + 1.0, dtype=chances.dtype, device=chances.device))
        return n * self._categorical.entropy() - total + ways


class Poisson(ExponentialFamily):
    """Counts of independent events that come at ``rate``."""

    rate: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _batched: ClassVar[dict[str, int]] = {"rate": 0}

    def __init__(self, rate: Values, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: self.rate)
    mode: moment = moment(lambda self: self.rate.floor())
    variance: moment = moment(lambda self: self.rate)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Counts, in the dtype of the rate."""
        with gw.no_grad():
            return gw.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check_sample(value)
        return gw.xlogy(value, self.rate) - self.rate - gw.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()


class NegativeBinomial(Counts):
    """How many independent trials succeed before ``total_count`` fail."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _batched: ClassVar[dict[str, int]] = {"total_count": 0, "probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name",)

    def __init__(
        self,
        total_count: Values,
        probs: Values | None = None,
        logits: Values | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._count(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: self.total_count * self.logits.exp())
    mode: moment = moment(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance: moment = moment(lambda self: self.mean / gw.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Poisson variates whose rates are gamma variates."""
        with gw.no_grad():
            return gw.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check_sample(value)
        n = self.total_count
        unnormalised = -n * log1p_exp(self.logits) - value * log1p_exp(-self.logits)
        ways = gw.lgamma(n + value) - gw.lgamma(1 + value) - gw.lgamma(n)
        return unnormalised + gw.where(n + value == 0, 0.0, ways)
