"""Covariance matrices and their factors, for distributions of vectors and matrices."""

from __future__ import annotations

from math import prod
from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from .library import gw


def transposed(matrix: Any) -> Any:
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


def factor_of(name: str, matrix: Any) -> Any:
    """The lower Cholesky factor of the covariance that a matrix says."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return gw.linalg.cholesky(matrix)
    # P = U U' for an upper U, from the lower factor of P with both orders reversed; then L is the inverse of U'.
    upper = gw.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1))
    eye = gw.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return gw.linalg.solve_triangular(transposed(upper), eye, upper=False)


def half_log_det(factor: Any) -> Any:
    """Half the logarithm of the determinant of what ``factor`` is a Cholesky factor of."""
    return factor.diagonal(0, -2, -1).log().sum(-1)


def squared_length(factor: Any, vector: Any) -> Any:
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


def trace_of_ratio(factor: Any, other: Any) -> Any:
    """``trace(A^-1 B)`` for positive definite matrices with these Cholesky factors."""
    return gw.linalg.solve_triangular(factor, other, upper=False).square().sum((-2, -1))
