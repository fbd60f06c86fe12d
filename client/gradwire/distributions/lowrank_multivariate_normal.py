"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

from math import log, pi
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError, ShapeError
from gradwire_protocol.shapes import broadcast

from . import constraints
from .covariance import half_log_det, squared_length, transposed
from .distribution import Distribution
from .library import gw
from .parameters import lazy_property, noise

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Vectors of mean ``loc`` and covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    Inverse and determinant come from a matrix as small as the rank (Woodbury's identity, the matrix determinant
    lemma).
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {
        "loc": 1, "cov_factor": 2, "cov_diag": 1, "covariance_matrix": 2, "scale_tril": 2, "precision_matrix": 2,
    }  # fmt: skip
    _carried: ClassVar[tuple[str, ...]] = (
        "_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril",
    )  # fmt: skip

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ArgumentValueError("LowRankMultivariateNormal: loc must be a vector or a batch of them")
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n:
            raise ArgumentValueError(f"cov_factor needs {n} rows, one for each element of loc: {cov_factor.shape}")
        if cov_diag.ndim < 1 or cov_diag.shape[-1] != n:
            raise ArgumentValueError(f"cov_diag needs {n} elements, as loc has: {cov_diag.shape}")
        try:
            batch_shape = broadcast(
                tuple(loc.shape)[:-1], tuple(cov_factor.shape)[:-2], tuple(cov_diag.shape)[:-1]
            )  # fmt: skip
        except ShapeError as error:
            raise ArgumentValueError(
                f"the batches of loc {list(loc.shape)}, cov_factor {list(cov_factor.shape)} and cov_diag "
                f"{list(cov_diag.shape)} do not broadcast"
            ) from error
        self.loc = loc.expand((*batch_shape, n))
        self.cov_diag = cov_diag.expand((*batch_shape, n))
        self.cov_factor = cov_factor.expand((*batch_shape, n, cov_factor.shape[-1]))
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        super().__init__(batch_shape, (n,), validate_args=validate_args)
        eye = gw.eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self._capacitance_tril = gw.linalg.cholesky(self._weighted_factor() @ cov_factor + eye)

    def _weighted_factor(self) -> Any:
        """The factor transposed, over the diagonal."""
        return transposed(self._unbroadcasted_cov_factor) / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _square(self, matrix: Any) -> Any:
        n = self._event_shape[0]
        return matrix.expand((*self._batch_shape, n, n))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        found = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return found.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._square(factor @ transposed(factor) + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        # Of the covariance scaled to a unit diagonal part, which is better conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        eye = gw.eye(self._event_shape[0], dtype=self.loc.dtype, device=self.loc.device)
        return self._square(root * gw.linalg.cholesky(scaled @ transposed(scaled) + eye))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        part = gw.linalg.solve_triangular(self._capacitance_tril, self._weighted_factor(), upper=False)
        return self._square(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - transposed(part) @ part)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """The mean plus noise along the factor's columns and noise of each element's own."""
        shape = tuple(self._extended_shape(sample_shape))
        rank = self.cov_factor.shape[-1]
        along = noise((*shape[:-1], rank), self.loc)
        own = noise(shape, self.loc)
        spread = (self._unbroadcasted_cov_factor @ along.unsqueeze(-1)).squeeze(-1)
        return self.loc + spread + self._unbroadcasted_cov_diag.sqrt() * own

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        length = self._squared_length(value - self.loc)
        return -0.5 * (length + self._log_det() + self._event_shape[0] * log(2 * pi))

    def _squared_length(self, away: Any) -> Any:
        """The squared Mahalanobis length."""
        weighted = away / self._unbroadcasted_cov_diag
        inner = (transposed(self._unbroadcasted_cov_factor) @ weighted.unsqueeze(-1)).squeeze(-1)
        return (away * weighted).sum(-1) - squared_length(self._capacitance_tril, inner)

    def _log_det(self) -> Any:
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def entropy(self) -> Any:
        """Half the logarithm of the determinant of ``2 pi e`` times the covariance."""
        found = 0.5 * (self._event_shape[0] * (1 + log(2 * pi)) + self._log_det())
        return found.expand(self._batch_shape) if self._batch_shape else found
