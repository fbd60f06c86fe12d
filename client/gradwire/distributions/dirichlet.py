"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError

from . import constraints
from .exp_family import ExponentialFamily
from .library import call, gw

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Points of a simplex; ``concentration`` has one element for each component along its last dimension."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"concentration": 1}
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentValueError("Dirichlet: concentration needs a dimension of components, this is one number")
        self.concentration = concentration
        shape = tuple(concentration.shape)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples that follow the concentrations, each component along the quantiles of its marginal."""
        return call("sample_dirichlet", self.concentration.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, with respect to all components but the last."""
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return gw.xlogy(a - 1, value).sum(-1) + gw.lgamma(a.sum(-1)) - gw.lgamma(a).sum(-1)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0)
        inner = above / above.sum(-1, True)
        corner = gw.nn.functional.one_hot(inner.argmax(-1), self.concentration.shape[-1]).to(inner.dtype)
        return gw.where((self.concentration < 1).all(-1, True), corner, inner)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        """From the digammas of the concentrations and of their sum."""
        a = self.concentration
        count, total = a.shape[-1], a.sum(-1)
        return (
            gw.lgamma(a).sum(-1) - gw.lgamma(total) - (count - total) * gw.digamma(total)
            - ((a - 1) * gw.digamma(a)).sum(-1)
        )  # fmt: skip

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return gw.lgamma(x).sum(-1) - gw.lgamma(x.sum(-1))
