"""Matrices as products of simpler ones."""

from __future__ import annotations

from typing import Any

from .._core.dispatch.dispatch import call
from .._core.surface.methods import named_result, returning
from .._core.tensor.tensor import Tensor

CholeskyEx = named_result("linalg_cholesky_ex", "L", "info")
QR = named_result("linalg_qr", "Q", "R")
LU = named_result("linalg_lu", "P", "L", "U")
LUFactor = named_result("linalg_lu_factor", "LU", "pivots")
LUFactorEx = named_result("linalg_lu_factor_ex", "LU", "pivots", "info")
LDLFactor = named_result("linalg_ldl_factor", "LD", "pivots")
LDLFactorEx = named_result("linalg_ldl_factor_ex", "LD", "pivots", "info")


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular ``L`` with ``L @ L.mH == A`` for Hermitian, positive definite ``A``; its adjoint with
    ``upper``. Another matrix raises :class:`LinAlgError` when the result is read."""
    return call("linalg_cholesky", A, upper)


@returning(CholeskyEx)
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """(L, info): :func:`cholesky` with an error code per matrix, 0 for success, in place of an error."""
    return CholeskyEx(*call("linalg_cholesky_ex", A, upper, check_errors))


@returning(QR)
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """(Q, R) with ``Q @ R == A``, Q's columns orthonormal and R upper triangular. ``mode`` is "reduced", "complete"
    for a square Q, or "r" for R alone."""
    return QR(*call("linalg_qr", A, mode))


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of elementary reflectors, as :func:`gradwire.geqrf` packs them."""
    return call("linalg_householder_product", A, tau)


@returning(LU)
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """(P, L, U) with ``P @ L @ U == A``: a permutation, a unit lower triangle and an upper triangle."""
    return LU(*call("linalg_lu", A, pivot))


@returning(LUFactor)
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """(LU, pivots): the factorization packed for :func:`lu_solve` and :func:`gradwire.lu_unpack`. A singular matrix
    raises :class:`LinAlgError` when the result is read."""
    return LUFactor(*call("linalg_lu_factor_ex", A, pivot, True)[:2])


@returning(LUFactorEx)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """(LU, pivots, info): :func:`lu_factor` with an error code per matrix in place of an error."""
    return LUFactorEx(*call("linalg_lu_factor_ex", A, pivot, check_errors))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The solution of ``A @ X == B`` (``X @ A == B`` without ``left``) from A's packed LU factorization."""
    return call("linalg_lu_solve", LU, pivots, B, left, adjoint)


@returning(LDLFactor)
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """(LD, pivots): the packed LDL factorization of symmetric matrices (or Hermitian ones), for :func:`ldl_solve`."""
    return LDLFactor(*call("linalg_ldl_factor_ex", A, hermitian, True)[:2])


@returning(LDLFactorEx)
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """(LD, pivots, info): :func:`ldl_factor` with an error code per matrix in place of an error."""
    return LDLFactorEx(*call("linalg_ldl_factor_ex", A, hermitian, check_errors))


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The solution of ``A @ X == B`` from A's packed LDL factorization."""
    return call("linalg_ldl_solve", LD, pivots, B, hermitian)
