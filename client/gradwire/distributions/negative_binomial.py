"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .counts import Counts
from .gamma import Gamma
from .library import gw
from .parameters import lazy_property, log1p_exp

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Counts):
    """How many independent trials succeed before ``total_count`` fail."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer
    _batched: ClassVar[dict[str, int]] = {"total_count": 0, "probs": 0, "logits": 0}
    _carried: ClassVar[tuple[str, ...]] = ("_name",)

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._count(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.mean / gw.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Poisson variates whose rates are gamma variates."""
        with gw.no_grad():
            return gw.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        unnormalised = -n * log1p_exp(self.logits) - value * log1p_exp(-self.logits)
        ways = gw.lgamma(n + value) - gw.lgamma(1 + value) - gw.lgamma(n)
        return unnormalised + gw.where(n + value == 0, 0.0, ways)
