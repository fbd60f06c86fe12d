"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .counts import Counts
from .library import gw
from .parameters import log1p_exp, number_of

__all__ = ["Binomial"]


class Binomial(Counts):
    """How many of ``total_count`` independent trials succeed."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
        "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True
    _batched: ClassVar[dict[str, int]] = {"total_count": 0, "probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name", "_known_count")

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._count(total_count, probs, logits)
        self._known_count = number_of(total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        known = self._known_count
        return constraints.integer_interval(0, self.total_count if known is None else known)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Counts, in the dtype of the probabilities."""
        with gw.no_grad():
            shape = tuple(self._extended_shape(sample_shape))
            return gw.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
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

    def entropy(self) -> Any:
        """The sum over all counts."""
        self._trials("entropy")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """0, 1, ..., the number of trials."""
        return self._counting(1 + self._trials("enumerate_support"), self._param.dtype, expand)
