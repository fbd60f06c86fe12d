"""The categorical distribution over vectors of one 1."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .categorical import Categorical
from .library import gw
from .outcome_vectors import OutcomeVectors

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OutcomeVectors):
    """One of several outcomes, as a vector of zeros with a 1 at its index. See :class:`Categorical`."""

    support = constraints.one_hot
    has_enumerate_support = True
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(Categorical(probs, logits, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Any) -> Any:
        return gw.nn.functional.one_hot(index, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Vectors in the dtype of the probabilities."""
        with gw.no_grad():
            return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of each vector."""
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        """That of the index."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """The rows of an identity matrix."""
        n = self._event_shape[0]
        values = gw.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples whose gradient is taken for that of the probabilities [Bengio, Leonard and Courville 2013]."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        """``sample + (probs - probs.detach())``."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
