"""The Beta distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .library import gw
from .parameters import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Density in proportion to ``x ** (concentration1 - 1) * (1 - x) ** (concentration0 - 1)``."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support = constraints.unit_interval
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {}
    _mean_carrier_measure = 0

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        # Checked here, as they are in the Dirichlet distribution that computes.
        one, zero = broadcast_all(concentration1, concentration0)
        self._given = {"concentration1": one, "concentration0": zero}
        self._dirichlet = Dirichlet(gw.stack([one, zero], -1), validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch expanded."""
        new = self._get_checked_instance(Beta, _instance)
        batch_shape = tuple(batch_shape)
        new._given = {name: value.expand(batch_shape) for name, value in self._given.items()}
        new._dirichlet = self._dirichlet.expand(batch_shape)
        super(Beta, new).__init__(batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def concentration1(self) -> Any:
        """The first concentration: of the value."""
        return self._given["concentration1"]

    @property
    def concentration0(self) -> Any:
        """The second concentration: of one less the value."""
        return self._given["concentration0"]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode.select(-1, 0)

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """The first component of a Dirichlet variate of two."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(gw.stack([value, 1 - value], -1))

    def entropy(self) -> Any:
        """That of the Dirichlet distribution."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return gw.lgamma(x) + gw.lgamma(y) - gw.lgamma(x + y)
