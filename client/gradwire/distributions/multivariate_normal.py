"""The multivariate normal distribution."""

from __future__ import annotations

from math import log, pi
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.shapes import broadcast

from . import constraints
from .covariance import factor_of, half_log_det, squared_length, the_given
from .factored_covariance import FactoredCovariance
from .parameters import noise

__all__ = ["MultivariateNormal"]


class MultivariateNormal(FactoredCovariance):
    """Vectors of mean ``loc`` and a covariance: given as it is, as its inverse, or as its lower Cholesky factor.

    The last dimension of ``loc`` and the last two of the matrix are the event; what is before broadcasts.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {
        "loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2,
    }  # fmt: skip
    _carried: ClassVar[tuple[str, ...]] = ("_unbroadcasted_scale_tril",)

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.ndim < 1:
            raise ArgumentValueError("MultivariateNormal: loc must be a vector or a batch of them, this is one number")
        name, matrix = the_given(
            self, covariance_matrix=covariance_matrix, scale_tril=scale_tril, precision_matrix=precision_matrix
        )
        batch_shape = broadcast(tuple(matrix.shape)[:-2], tuple(loc.shape)[:-1])
        setattr(self, name, matrix.expand((*batch_shape, *tuple(matrix.shape)[-2:])))
        self.loc = loc.expand((*batch_shape, loc.shape[-1]))
        super().__init__(batch_shape, (loc.shape[-1],), validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """The mean plus the Cholesky factor times normal noise."""
        eps = noise(self._extended_shape(sample_shape), self.loc)
        factor = self._unbroadcasted_scale_tril
        if factor.ndim == 2:
            return self.loc + eps @ factor.t()
        return self.loc + (factor @ eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        away = squared_length(factor, value - self.loc)
        return -0.5 * (away + self._event_shape[0] * log(2 * pi)) - half_log_det(factor)

    def entropy(self) -> Any:
        """Half the logarithm of the determinant of ``2 pi e`` times the covariance."""
        found = half_log_det(self._unbroadcasted_scale_tril) + 0.5 * self._event_shape[0] * (1 + log(2 * pi))
        return found.expand(self._batch_shape) if self._batch_shape else found
