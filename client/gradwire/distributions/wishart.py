"""The Wishart distribution."""

from __future__ import annotations

from math import log, nan
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.shapes import broadcast

from . import constraints
from .covariance import factor_of, half_log_det, the_given, transposed
from .exp_family import ExponentialFamily
from .factored_covariance import FactoredCovariance
from .library import call, gw
from .parameters import filled, noise, number_of

__all__ = ["Wishart"]


class Wishart(FactoredCovariance, ExponentialFamily):
    """Sums of the outer products of ``df`` normal vectors with a covariance, for any ``df`` above their length less 1.

    The covariance is given as it is, as its inverse, or as its lower Cholesky factor.
    """

    support = constraints.positive_definite
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {
        "df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2,
    }  # fmt: skip
    _carried: ClassVar[tuple[str, ...]] = ("_unbroadcasted_scale_tril",)
    _mean_carrier_measure = 0

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = the_given(
            self, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if matrix.shape[-1] != matrix.shape[-2]:
            raise ArgumentValueError(f"Wishart: {name} must be square: {list(matrix.shape)}")
        known = number_of(df)
        if known is not None:
            df = filled(known, (), matrix.dtype, matrix.device)
        batch_shape = broadcast(tuple(matrix.shape)[:-2], tuple(df.shape))
        event_shape = tuple(matrix.shape)[-2:]
        if known is not None and known <= event_shape[0] - 1:
            raise ArgumentValueError(f"Wishart: df must be above {event_shape[0] - 1}, not {known}")
        self.df = df.expand(batch_shape) if batch_shape else df
        setattr(self, name, matrix.expand((*batch_shape, *event_shape)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self._event_shape[-1] - 1),
        }  # fmt: skip

    def _df(self, trailing: int) -> Any:
        return self.df.reshape((*self._batch_shape, *(1,) * trailing))

    @property
    def mean(self) -> Any:
        return self._df(2) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self._df(2) - (self._event_shape[-1] + 1)
        return gw.where(factor > 0, factor, nan) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(0, -2, -1)
        return self._df(2) * (matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _halves(self, half_df: Any) -> Any:
        """Half of df, df - 1, ..., along a new last dimension."""
        n = self._event_shape[-1]
        return half_df.unsqueeze(-1) - gw.arange(n, dtype=half_df.dtype, device=half_df.device) / 2

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Bartlett's decomposition: roots of chi-squared variates on a diagonal, normal numbers below it."""
        shape = tuple(self._extended_shape(sample_shape))
        squares = 2 * call("standard_gamma", self._halves(self.df / 2).expand(shape[:-1]))
        inner = noise(shape, self.df).tril(-1) + squares.sqrt().diag_embed()
        factor = self._unbroadcasted_scale_tril @ inner
        return factor @ transposed(factor)

    def _log_norm(self, half_df: Any) -> Any:
        n = self._event_shape[-1]
        return gw.mvlgamma(half_df, n) + half_df * n * log(2)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, with respect to the lower triangle."""
        if self._validate_args:
            self._validate_sample(value)
        n, half = self._event_shape[-1], self.df / 2
        factor = self._unbroadcasted_scale_tril
        inner = gw.linalg.solve_triangular(factor, value, upper=False)
        ratio = gw.linalg.solve_triangular(transposed(factor), inner, upper=True)
        trace = ratio.diagonal(0, -2, -1).sum(-1)
        log_det = gw.linalg.slogdet(value)[1]
        return (
            (half - (n + 1) / 2) * log_det - trace / 2 - self._log_norm(half) - 2 * half * half_log_det(factor)
        )  # fmt: skip

    def entropy(self) -> Any:
        """From the multivariate gamma and digamma functions of half of df."""
        n, half = self._event_shape[-1], self.df / 2
        digammas = gw.digamma(self._halves(half)).sum(-1)
        log_det = half_log_det(self._unbroadcasted_scale_tril)
        return (
            (n + 1) * (n * log(2) / 2 + log_det) + gw.mvlgamma(half, n) - (half - (n + 1) / 2) * digammas + half * n
        )  # fmt: skip

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        half = y + (self._event_shape[-1] + 1) / 2
        return self._log_norm(half) - half * gw.linalg.slogdet(-2 * x)[1]
