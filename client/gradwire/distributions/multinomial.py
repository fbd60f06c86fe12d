"""The multinomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .library import gw

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each outcome occurs in ``total_count`` (one int) independent trials. See :class:`Categorical`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batched: ClassVar[dict[str, int]] = {}

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial takes one number of trials, an int, for the whole batch")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args=False)
        shape = tuple(self._categorical.param_shape)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _validate_parameters(self) -> None:
        Distribution._validate_parameters(self._categorical)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch expanded."""
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        super(Multinomial, new).__init__(batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Counts, in the dtype of the probabilities."""
        with gw.no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            param = self._categorical._param
            counts = gw.zeros(tuple(self._extended_shape(sample_shape)), dtype=param.dtype, device=param.device)
            return counts.scatter_add(-1, drawn, gw.ones_like(drawn, dtype=param.dtype))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
        logits = self.logits
        # What cannot happen and did not: 0 times minus infinity.
        harmless = gw.where((value == 0) & (logits == -float("inf")), 0.0, logits)
        ways = gw.lgamma(value.sum(-1) + 1) - gw.lgamma(value + 1).sum(-1)
        return ways + (harmless * value).sum(-1)

    def entropy(self) -> Any:
        """From that of one trial and the marginal counts, which are binomial."""
        n = self.total_count
        counts = Binomial(n, self.probs, validate_args=False)
        chances = counts.log_prob(counts.enumerate_support(False)).exp()
        values = counts.enumerate_support(False)
        ways = (chances * gw.lgamma(values + 1)).sum((0, -1))
        total = gw.lgamma(gw.tensor(n + 1.0, dtype=chances.dtype, device=chances.device))
        return n * self._categorical.entropy() - total + ways
