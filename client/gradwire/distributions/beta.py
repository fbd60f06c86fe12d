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
    _batched: ClassVar[dict[str, int]] = {"_concentration1": 0, "_concentration0": 0}
    _mean_carrier_measure = 0

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        # Kept beside the Dirichlet distribution that has them: numbers are known here, and checked without the server.
        self._concentration1, self._concentration0 = broadcast_all(concentration1, concentration0)
        both = gw.stack([self._concentration1, self._concentration0], -1)
        self._dirichlet = Dirichlet(both, validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> Any:
        """The first concentration: of the value."""
        return self._concentration1

    @property
    def concentration0(self) -> Any:
        """The second concentration: of one less the value."""
        return self._concentration0

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
