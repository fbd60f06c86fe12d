"""The categorical distribution."""

from __future__ import annotations

from math import nan, prod
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.shapes import broadcast

from . import constraints
from .library import gw
from .outcomes import Outcomes, one_of
from .parameters import largest

__all__ = ["Categorical"]


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

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._name = one_of(self, probs, logits)
        given = logits if probs is None else probs
        if given.ndim < 1:
            raise ArgumentValueError(f"Categorical: {self._name} needs a dimension of outcomes, this is one number")
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = logits - logits.logsumexp(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(tuple(given.shape)[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    def _everywhere(self, number: float) -> Any:
        return gw.full(tuple(self._extended_shape()), number, dtype=self._param.dtype, device=self._param.device)

    @property
    def mean(self) -> Any:
        return self._everywhere(nan)

    @property
    def mode(self) -> Any:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Any:
        return self._everywhere(nan)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Indices, int64."""
        with gw.no_grad():
            count = prod(sample_shape)
            shape = tuple(self._extended_shape(sample_shape))
            if 0 in shape:
                return gw.empty(shape, dtype=gw.int64, device=self._param.device)
            rows = self.probs.reshape(-1, self._num_events)
            return gw.multinomial(rows, count, True).t().reshape(shape)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of each index."""
        if self._validate_args:
            self._validate_sample(value)
        index = value.long()
        shape = broadcast(tuple(index.shape), tuple(self.logits.shape)[:-1])
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Any:
        """The sum of ``-p log(p)``; what is impossible adds nothing."""
        return -(self.logits.clamp(min=-largest(self.logits.dtype)) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """0, 1, ..., int64."""
        return self._counting(self._num_events, gw.int64, expand)
