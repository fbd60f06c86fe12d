"""Distributions over few outcomes, given by probabilities or by log odds."""

from __future__ import annotations

from math import log, nan, prod
from typing import Any, ClassVar

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.shapes import broadcast

from .._core.context.argument_types import Shape
from .._core.context.size import Size
from .._core.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily, require
from .library import gw
from .parameters import (
    Values,
    as_size,
    broadcast_all,
    clamp_probs,
    largest,
    lazy_property,
    log1p_exp,
    logits_to_probs,
    moment,
    precision,
    probs_to_logits,
    uniform,
)

__all__ = [
    "Bernoulli", "Categorical", "ContinuousBernoulli", "Geometric", "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
]  # fmt: skip


def one_of(owner: Any, probs: Values | None, logits: Values | None) -> str:
    """The name of the one that was given.

    Raises:
        ArgumentValueError: (a ValueError) where both were, or neither.
    """
    if (probs is None) == (logits is None):
        raise ArgumentValueError(f"{type(owner).__name__} takes either probs or logits, and exactly one of them")
    return "logits" if probs is None else "probs"


class Outcomes(Distribution):
    """What is said by the probabilities of outcomes.

    Class attributes:
        _binary: whether there are two, the probability being that of one of them.
    """

    _binary: ClassVar[bool] = True
    _name: str

    def _take(self, probs: Values | None, logits: Values | None) -> None:
        """Keep what was given, under its name."""
        self._name = one_of(self, probs, logits)
        given: Any = logits if probs is None else probs
        setattr(self, self._name, broadcast_all(given)[0])

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds of two outcomes; normalised logarithms of the probabilities of several."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    _param = property(lambda self: self.__dict__[self._name])

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return as_size(self._param.shape)

    def _counting(self, count: int, dtype: DType, expand: bool) -> Any:
        """0, 1, ..., ``count - 1`` along a new first dimension, for each distribution of the batch if ``expand``."""
        values = gw.arange(count, dtype=dtype, device=self._param.device)
        values = values.reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)


def cross_entropy(logits: Tensor, value: Tensor) -> Tensor:
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

    def __init__(
        self, probs: Values | None = None, logits: Values | None = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean: moment = moment(lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        likely = (self.probs >= 0.5).to(self.probs.dtype)
        return gw.where(self.probs == 0.5, nan, likely)

    variance: moment = moment(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """0 and 1, in the dtype of the probabilities."""
        with gw.no_grad():
            return gw.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check_sample(value)
        return -cross_entropy(self.logits, value)

    def entropy(self) -> Tensor:
        """The cross entropy with itself."""
        return cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0, then 1."""
        return self._counting(2, self._param.dtype, expand)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (gw.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return log1p_exp(x)


class ContinuousBernoulli(Outcomes, ExponentialFamily):
    """Numbers from 0 to 1 with density in proportion to ``p ** x * (1 - p) ** (1 - x)``.

    Loaiza-Ganem and Cunningham, "The continuous Bernoulli", 2019. Between ``lims``, around one half, where the
    formulas are 0 over 0, their Taylor series are used.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name", "_lims")
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Values | None = None, logits: Values | None = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._take(probs, logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)  # after they were checked

    def _outside(self) -> Any:
        """Where the formulas hold."""
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _cut_probs(self) -> Any:
        """The probabilities, with the lower limit where the formulas do not hold."""
        return gw.where(self._outside(), self.probs, self._lims[0])

    def _chosen(self, formula: Any, series: Any) -> Any:
        return gw.where(self._outside(), formula, series)

    def _log_norm(self) -> Any:
        """The logarithm of what the density is multiplied by to integrate to 1."""
        p = self._cut_probs()
        formula = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5).pow(2)
        return self._chosen(formula, log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        x = self.probs - 0.5
        series = 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x
        return self._chosen(p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()), series)

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        x = (self.probs - 0.5).pow(2)
        formula = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / ((-p).log1p() - p.log()).pow(2)
        return self._chosen(formula, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The quantile of a uniform number."""
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        return self._log_norm() - cross_entropy(self.logits, value)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability up to ``value``."""
        self._check_sample(value)
        p = self._cut_probs()
        formula = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        inner = self._chosen(formula, value)
        return gw.where(value <= 0, 0.0, gw.where(value >= 1, gw.ones_like(inner), inner))

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        p = self._cut_probs()
        formula = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return self._chosen(formula, value)

    def entropy(self) -> Tensor:
        """From the mean, in which the logarithm of the density is linear."""
        none, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (none - one) - self._log_norm() - none

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        low, high = self._lims
        outside = (x <= low - 0.5) | (x > high - 0.5)
        cut = gw.where(outside, x, low - 0.5)
        square = x.pow(2)
        series = 0.5 * x + square / 24 - square.pow(2) / 2880
        return gw.where(outside, cut.expm1().abs().log() - cut.abs().log(), series)


class Geometric(Outcomes):
    """How many independent trials fail before the first success: 0, 1, 2, ..."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name",)

    def __init__(
        self, probs: Values | None = None, logits: Values | None = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            require(self.probs, constraints.positive, "Geometric: the parameter probs must be positive")

    mean: moment = moment(lambda self: 1 / self.probs - 1)
    mode: moment = moment(lambda self: gw.zeros_like(self.probs))
    variance: moment = moment(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """By inversion."""
        with gw.no_grad():
            tiny = precision(self.probs.dtype)[1]
            u = uniform(self._extended_shape(sample_shape), self.probs).clamp(min=tiny)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """``value * log(1 - p) + log(p)``."""
        self._check_sample(value)
        probs = self.probs
        certain = (probs == 1) & (value == 0)  # 0 times minus infinity
        return value * (-gw.where(certain, 0.0, probs)).log1p() + probs.log()

    def entropy(self) -> Tensor:
        """That of one trial, over the probability of success."""
        return cross_entropy(self.logits, self.probs) / self.probs


class Categorical(Outcomes):
    """One of several outcomes, as an index.

    Args:
        probs: weights along the last dimension; normalised to sum to 1.
        logits: unnormalised logarithms; normalised likewise.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary: ClassVar[bool] = False
    _batched: ClassVar[dict[str, int]] = {"probs": 1, "logits": 1}
    _carried: ClassVar[tuple[str, ...]] = ("_name", "_num_events")

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._name = one_of(self, probs, logits)
        given: Any = logits if probs is None else probs
        if given.ndim < 1:
            raise ArgumentValueError(f"Categorical: {self._name} needs a dimension of outcomes, this is one number")
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = given - given.logsumexp(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(tuple(given.shape)[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    def _everywhere(self, number: float) -> Any:
        return gw.full(tuple(self._extended_shape()), number, dtype=self._param.dtype, device=self._param.device)

    mean: moment = moment(lambda self: self._everywhere(nan))
    mode: moment = moment(lambda self: self._param.argmax(-1))
    variance: moment = moment(lambda self: self._everywhere(nan))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Indices, int64."""
        with gw.no_grad():
            count = prod(sample_shape)
            shape = tuple(self._extended_shape(sample_shape))
            if 0 in shape:
                return gw.empty(shape, dtype=gw.int64, device=self._param.device)
            rows = self.probs.reshape(-1, self._num_events)
            return gw.multinomial(rows, count, True).t().reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each index."""
        self._check_sample(value)
        index = value.long()
        shape = broadcast(tuple(index.shape), tuple(self.logits.shape)[:-1])
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """The sum of ``-p log(p)``; what is impossible adds nothing."""
        return -(self.logits.clamp(min=-largest(self.logits.dtype)) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0, 1, ..., int64."""
        return self._counting(self._num_events, gw.int64, expand)


class OutcomeVectors(Distribution):
    """Vectors over the outcomes of ``categorical``, which keeps, normalises and checks the parameters."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, categorical: Categorical, validate_args: bool | None) -> None:
        self._categorical = categorical
        shape = tuple(categorical.param_shape)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _validate_parameters(self) -> None:
        Distribution._validate_parameters(self._categorical)

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    _param = property(lambda self: self._categorical._param)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape


class OneHotCategorical(OutcomeVectors):
    """One of several outcomes, as a vector of zeros with a 1 at its index. See :class:`Categorical`."""

    support = constraints.one_hot
    has_enumerate_support = True
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(Categorical(probs, logits, validate_args=False), validate_args)

    mean: moment = moment(lambda self: self.probs)
    mode: moment = moment(lambda self: self._one_hot(self._categorical.mode))
    variance: moment = moment(lambda self: self.probs * (1 - self.probs))

    def _one_hot(self, index: Any) -> Any:
        return gw.nn.functional.one_hot(index, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Vectors in the dtype of the probabilities."""
        with gw.no_grad():
            return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each vector."""
        self._check_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        """That of the index."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The rows of an identity matrix."""
        n = self._event_shape[0]
        values = gw.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples whose gradient is taken for that of the probabilities [Bengio, Leonard and Courville 2013]."""

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """``sample + (probs - probs.detach())``."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
