"""Distributions of vectors with a covariance, and of matrices."""

from __future__ import annotations

from math import log, nan, pi, prod
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError, ShapeError
from gradwire_protocol.shapes import broadcast

from .._core.context.argument_types import Shape
from .._core.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .library import call, gw
from .parameters import Values, broadcast_all, filled, lazy_property, moment, noise, number_of, precision
from .unit_interval import Beta

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]


def transposed(matrix: Any) -> Tensor:
    """With the last two dimensions exchanged."""
    return matrix.transpose(-2, -1)


def the_given(owner: Any, **matrices: Any) -> tuple[str, Any]:
    """The one matrix that was given, with its name.

    Raises:
        ArgumentValueError: (a ValueError) where it is not one, or is no matrix.
    """
    given = [(name, m) for name, m in matrices.items() if m is not None]
    if len(given) != 1:
        raise ArgumentValueError(
            f"{type(owner).__name__} takes exactly one of {', '.join(matrices)}, {len(given)} were given"
        )
    name, matrix = given[0]
    if matrix.ndim < 2:
        raise ArgumentValueError(f"{type(owner).__name__}: {name} must have two dimensions or more, not {matrix.ndim}")
    return name, matrix


def factor_of(name: str, matrix: Any) -> Tensor:
    """The lower Cholesky factor of the covariance that a matrix says."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return gw.linalg.cholesky(matrix)
    # P = U U' for an upper U, from the lower factor of P with both orders reversed; then L is the inverse of U'.
    upper = gw.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1))
    eye = gw.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return gw.linalg.solve_triangular(transposed(upper), eye, upper=False)


def half_log_det(factor: Any) -> Tensor:
    """Half the logarithm of the determinant of what ``factor`` is a Cholesky factor of."""
    return factor.diagonal(0, -2, -1).log().sum(-1)


def squared_length(factor: Any, vector: Any) -> Tensor:
    """The squared Mahalanobis lengths ``|L^-1 v|**2``; vectors have any dimensions in front of those of the factor."""
    n, batch = factor.shape[-1], tuple(factor.shape)[:-2]
    shape = tuple(vector.shape)[:-1]
    if prod(batch) == 1:
        columns = vector.reshape(-1, n).t()  # all of them against one factor
        solved = gw.linalg.solve_triangular(factor.reshape(n, n), columns, upper=False)
        return solved.square().sum(0).reshape((1,) * (len(batch) - len(shape)) + shape)
    own = len(batch)
    if len(shape) < own or shape[len(shape) - own :] != batch:
        solved = gw.linalg.solve_triangular(factor, vector.unsqueeze(-1), upper=False)
        return solved.squeeze(-1).square().sum(-1)
    # Samples become columns, so that each factor is used once.
    columns = vector.reshape(-1, *batch, n).movedim(0, -1)
    solved = gw.linalg.solve_triangular(factor, columns, upper=False)
    return solved.square().sum(-2).movedim(-1, 0).reshape(shape)


def trace_of_ratio(factor: Any, other: Any) -> Tensor:
    """``trace(A^-1 B)`` for positive definite matrices with these Cholesky factors."""
    return gw.linalg.solve_triangular(factor, other, upper=False).square().sum((-2, -1))


class FactoredCovariance(Distribution):
    """The covariance of vectors in three forms: the one that was given, and the others, computed when asked for."""

    _unbroadcasted_scale_tril: Any

    def _square(self, matrix: Any) -> Any:
        n = self._event_shape[-1]
        return matrix.expand((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._square(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._square(factor @ transposed(factor))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._square(gw.cholesky_inverse(self._unbroadcasted_scale_tril))


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
    _batched: ClassVar[dict[str, int]] = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}
    _carried: ClassVar[tuple[str, ...]] = ("_unbroadcasted_scale_tril",)

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.ndim < 1:
            raise ArgumentValueError("MultivariateNormal: loc must be a vector or a batch of them, this is one number")
        name, matrix = the_given(
            self, covariance_matrix=covariance_matrix, scale_tril=scale_tril, precision_matrix=precision_matrix
        )
        batch_shape = broadcast(tuple(matrix.shape)[:-2], tuple(loc.shape)[:-1])
        setattr(self, name, matrix.expand((*batch_shape, *tuple(matrix.shape)[-2:])))
        self.loc: Tensor = loc.expand((*batch_shape, loc.shape[-1]))
        super().__init__(batch_shape, (loc.shape[-1],), validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    mean: moment = moment(lambda self: self.loc)
    mode: moment = moment(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The mean plus the Cholesky factor times normal noise."""
        eps = noise(self._extended_shape(sample_shape), self.loc)
        factor = self._unbroadcasted_scale_tril
        if factor.ndim == 2:
            return self.loc + eps @ factor.t()
        return self.loc + (factor @ eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        factor = self._unbroadcasted_scale_tril
        away = squared_length(factor, value - self.loc)
        return -0.5 * (away + self._event_shape[0] * log(2 * pi)) - half_log_det(factor)

    def entropy(self) -> Tensor:
        """Half the logarithm of the determinant of ``2 pi e`` times the covariance."""
        found = half_log_det(self._unbroadcasted_scale_tril) + 0.5 * self._event_shape[0] * (1 + log(2 * pi))
        return found.expand(self._batch_shape) if self._batch_shape else found


class LowRankMultivariateNormal(Distribution):
    """Vectors of mean ``loc`` and covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    Inverse and determinant come from a matrix as small as the rank (Woodbury's identity, the matrix determinant
    lemma).
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {
        "loc": 1, "cov_factor": 2, "cov_diag": 1, "covariance_matrix": 2, "scale_tril": 2, "precision_matrix": 2,
    }  # fmt: skip
    _carried: ClassVar[tuple[str, ...]] = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ArgumentValueError("LowRankMultivariateNormal: loc must be a vector or a batch of them")
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n:
            raise ArgumentValueError(f"cov_factor needs {n} rows, one for each element of loc: {cov_factor.shape}")
        if cov_diag.ndim < 1 or cov_diag.shape[-1] != n:
            raise ArgumentValueError(f"cov_diag needs {n} elements, as loc has: {cov_diag.shape}")
        try:
            batch_shape = broadcast(tuple(loc.shape)[:-1], tuple(cov_factor.shape)[:-2], tuple(cov_diag.shape)[:-1])
        except ShapeError as error:
            raise ArgumentValueError(
                f"the batches of loc {list(loc.shape)}, cov_factor {list(cov_factor.shape)} and cov_diag "
                f"{list(cov_diag.shape)} do not broadcast"
            ) from error
        self.loc: Tensor = loc.expand((*batch_shape, n))
        self.cov_diag: Tensor = cov_diag.expand((*batch_shape, n))
        self.cov_factor: Tensor = cov_factor.expand((*batch_shape, n, cov_factor.shape[-1]))
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

    mean: moment = moment(lambda self: self.loc)
    mode: moment = moment(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        found = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return found.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._square(factor @ transposed(factor) + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        # Of the covariance scaled to a unit diagonal part, which is better conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        eye = gw.eye(self._event_shape[0], dtype=self.loc.dtype, device=self.loc.device)
        return self._square(root * gw.linalg.cholesky(scaled @ transposed(scaled) + eye))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        part = gw.linalg.solve_triangular(self._capacitance_tril, self._weighted_factor(), upper=False)
        return self._square(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - transposed(part) @ part)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The mean plus noise along the factor's columns and noise of each element's own."""
        shape = tuple(self._extended_shape(sample_shape))
        rank = self.cov_factor.shape[-1]
        along = noise((*shape[:-1], rank), self.loc)
        own = noise(shape, self.loc)
        spread = (self._unbroadcasted_cov_factor @ along.unsqueeze(-1)).squeeze(-1)
        return self.loc + spread + self._unbroadcasted_cov_diag.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check_sample(value)
        length = self._squared_length(value - self.loc)
        return -0.5 * (length + self._log_det() + self._event_shape[0] * log(2 * pi))

    def _squared_length(self, away: Any) -> Any:
        """The squared Mahalanobis length."""
        weighted = away / self._unbroadcasted_cov_diag
        inner = (transposed(self._unbroadcasted_cov_factor) @ weighted.unsqueeze(-1)).squeeze(-1)
        return (away * weighted).sum(-1) - squared_length(self._capacitance_tril, inner)

    def _log_det(self) -> Any:
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def entropy(self) -> Tensor:
        """Half the logarithm of the determinant of ``2 pi e`` times the covariance."""
        found = 0.5 * (self._event_shape[0] * (1 + log(2 * pi)) + self._log_det())
        return found.expand(self._batch_shape) if self._batch_shape else found


class Wishart(FactoredCovariance, ExponentialFamily):
    """Sums of the outer products of ``df`` normal vectors with a covariance, for any ``df`` above their length less 1.

    The covariance is given as it is, as its inverse, or as its lower Cholesky factor.
    """

    support = constraints.positive_definite
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}
    _carried: ClassVar[tuple[str, ...]] = ("_unbroadcasted_scale_tril",)
    _mean_carrier_measure = 0

    def __init__(
        self, df: Values, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = the_given(
            self, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if matrix.shape[-1] != matrix.shape[-2]:
            raise ArgumentValueError(f"Wishart: {name} must be square: {list(matrix.shape)}")
        known = number_of(df)
        degrees: Any = df if known is None else filled(known, (), matrix.dtype, matrix.device)
        batch_shape = broadcast(tuple(matrix.shape)[:-2], tuple(degrees.shape))
        event_shape = tuple(matrix.shape)[-2:]
        if known is not None and known <= event_shape[0] - 1:
            raise ArgumentValueError(f"Wishart: df must be above {event_shape[0] - 1}, not {known}")
        self.df: Any = degrees.expand(batch_shape) if batch_shape else degrees
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

    mean: moment = moment(lambda self: self._df(2) * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self._df(2) - (self._event_shape[-1] + 1)
        return gw.where(factor > 0, factor, nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(0, -2, -1)
        return self._df(2) * (matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _halves(self, half_df: Any) -> Any:
        """Half of df, df - 1, ..., along a new last dimension."""
        n = self._event_shape[-1]
        return half_df.unsqueeze(-1) - gw.arange(n, dtype=half_df.dtype, device=half_df.device) / 2

    def rsample(self, sample_shape: Shape = (), max_try_correction: int | None = None) -> Tensor:
        """Bartlett's decomposition: roots of chi-squared variates on a diagonal, normal numbers below it.

        Args:
            sample_shape: shape in front of the batch.
            max_try_correction: has no effect. PyTorch draws singular samples again so many times.
        """
        shape = tuple(self._extended_shape(sample_shape))
        squares = 2 * call("standard_gamma", self._halves(self.df / 2).expand(shape[:-1]))
        inner = noise(shape, self.df).tril(-1) + squares.sqrt().diag_embed()
        factor = self._unbroadcasted_scale_tril @ inner
        return factor @ transposed(factor)

    def _log_norm(self, half_df: Any) -> Any:
        n = self._event_shape[-1]
        return gw.mvlgamma(half_df, n) + half_df * n * log(2)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, with respect to the lower triangle."""
        self._check_sample(value)
        n, half = self._event_shape[-1], self.df / 2
        factor = self._unbroadcasted_scale_tril
        inner = gw.linalg.solve_triangular(factor, value, upper=False)
        ratio = gw.linalg.solve_triangular(transposed(factor), inner, upper=True)
        trace = ratio.diagonal(0, -2, -1).sum(-1)
        log_det = gw.linalg.slogdet(value)[1]
        return (half - (n + 1) / 2) * log_det - trace / 2 - self._log_norm(half) - 2 * half * half_log_det(factor)

    def entropy(self) -> Tensor:
        """From the multivariate gamma and digamma functions of half of df."""
        n, half = self._event_shape[-1], self.df / 2
        digammas = gw.digamma(self._halves(half)).sum(-1)
        log_det = half_log_det(self._unbroadcasted_scale_tril)
        return (n + 1) * (n * log(2) / 2 + log_det) + gw.mvlgamma(half, n) - (half - (n + 1) / 2) * digammas + half * n

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        half = y + (self._event_shape[-1] + 1) / 2
        return self._log_norm(half) - half * gw.linalg.slogdet(-2 * x)[1]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of ``dim`` by ``dim`` correlation matrices.

    The density of the matrix is in proportion to its determinant to the power ``concentration - 1``: uniform for 1,
    around the identity above it. Samples grow row by row, the "onion" method [Lewandowski, Kurowicka and Joe,
    "Generating random correlation matrices based on vines and extended onion method", 2009].
    """

    concentration: Tensor

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched: ClassVar[dict[str, int]] = {"concentration": 0}
    _carried: ClassVar[tuple[str, ...]] = ("dim",)

    def __init__(self, dim: int, concentration: Values = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ArgumentValueError(f"LKJCholesky: dim is an int from 2 on, not {dim}")
        self.dim: int = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)
        self._beta = self._squared_lengths()

    def _squared_lengths(self) -> Any:
        """Of the part of each row that is left of the diagonal: Beta distributions; the first one is not used."""
        like = self.concentration
        below = gw.arange(self.dim - 1, dtype=like.dtype, device=like.device)
        before = gw.cat([gw.zeros(1, dtype=like.dtype, device=like.device), below])
        top = like + 0.5 * (self.dim - 2)
        return Beta(0.5 * before + 0.5, top.unsqueeze(-1) - 0.5 * before, validate_args=False)

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Factors of correlation matrices."""
        with gw.no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = tuple(self._extended_shape(sample_shape))
            direction = noise(shape, self.concentration).tril(-1)
            length = direction.square().sum(-1, True).sqrt()
            unit = gw.where(length > 0, direction / length, 0.0)  # the first row has nothing below the diagonal
            rows = squared.sqrt() * unit
            tiny = precision(rows.dtype)[1]
            diagonal = (1 - rows.square().sum(-1)).clamp(min=tiny).sqrt()
            return rows + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of the factor."""
        self._check_sample(value)
        n, a = self.dim - 1, self.concentration
        order = gw.arange(2, self.dim + 1, dtype=value.dtype, device=value.device)
        order = (2 * (a - 1)).unsqueeze(-1) + (self.dim - order)
        diagonal = value.diagonal(0, -2, -1).narrow(-1, 1, n)
        top = a + n / 2
        normalizer = n / 2 * log(pi) + gw.mvlgamma(top - 0.5, n) - n * gw.lgamma(top)
        return (order * diagonal.log()).sum(-1) - normalizer


# What libraries import of PyTorch's functions, under its names.


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices and vectors."""
    found: Tensor = gw.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)
    return found


_batch_mahalanobis = squared_length


def _batch_trace_XXT(bmat: Tensor) -> Tensor:
    """The trace of ``X X^T``."""
    found: Tensor = bmat.square().sum((-2, -1))
    return found


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    return factor_of("precision_matrix", P)


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of ``I + W^T D^-1 W``."""
    m = W.shape[-1]
    inner = gw.matmul(transposed(W) / D.unsqueeze(-2), W)
    found: Tensor = gw.linalg.cholesky(inner + gw.eye(m, dtype=W.dtype, device=W.device))
    return found


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The logarithm of the determinant of ``W W^T + D``."""
    return 2 * half_log_det(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The squared Mahalanobis length of ``x`` for the covariance ``W W^T + D``."""
    inner = _batch_mv(transposed(W) / D.unsqueeze(-2), x)
    return (x.square() / D).sum(-1) - squared_length(capacitance_tril, inner)
