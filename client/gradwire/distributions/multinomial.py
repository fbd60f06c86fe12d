"""The multinomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .library import gw
from .outcome_vectors import OutcomeVectors

__all__ = ["Multinomial"]


class Multinomial(OutcomeVectors):
    """How often each outcome occurs in ``total_count`` (one int) independent trials. See :class:`Categorical`."""

    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("total_count",)

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial takes one number of trials, an int, for the whole batch")
        self.total_count = total_count
        super().__init__(Categorical(probs, logits, validate_args=False), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

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
            param = self._param
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
        values = counts.enumerate_support(False)
        chances = counts.log_prob(values).exp()
        ways = (chances * gw.lgamma(values + 1)).sum((0, -1))
        total = gw.lgamma(gw.tensor(n + 1.0, dtype=chances.dtype, device=chances.device))
        return n * self._categorical.entropy() - total + ways
