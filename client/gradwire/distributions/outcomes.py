"""Distributions that are given probabilities or logits, whichever the program has: the other is computed when asked."""

from __future__ import annotations

from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError

from .distribution import Distribution
from .library import gw
from .parameters import as_size, broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def one_of(owner: Any, probs: Any, logits: Any) -> str:
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

    def _take(self, probs: Any, logits: Any) -> None:
        """Keep what was given, under its name."""
        self._name = one_of(self, probs, logits)
        given = logits if probs is None else probs
        setattr(self, self._name, broadcast_all(given)[0])

    @lazy_property
    def logits(self) -> Any:
        """Log odds of two outcomes; normalised logarithms of the probabilities of several."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def _param(self) -> Any:
        return self.__dict__[self._name]

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return as_size(self._param.shape)

    def _counting(self, count: int, dtype: Any, expand: bool) -> Any:
        """0, 1, ..., ``count - 1`` along a new first dimension, for each distribution of the batch if ``expand``."""
        values = gw.arange(count, dtype=dtype, device=self._param.device)
        values = values.reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)
