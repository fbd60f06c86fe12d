"""Eigenvalues, singular values, determinants and the exponential."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError

from .._core.dispatch.dispatch import call
from .._core.surface.methods import named_result, returning
from .._core.tensor.tensor import Tensor

Eigh = named_result("linalg_eigh", "eigenvalues", "eigenvectors")
Eig = named_result("linalg_eig", "eigenvalues", "eigenvectors")
SVD = named_result("linalg_svd", "U", "S", "Vh")
Slogdet = named_result("linalg_slogdet", "sign", "logabsdet")


def det(A: Tensor) -> Tensor:
    """The determinant of each square matrix."""
    return call("det", A)


@returning(Slogdet)
def slogdet(A: Tensor) -> Any:
    """(sign, logabsdet) of each determinant; of a complex matrix, the sign is a phase."""
    return Slogdet(*call("slogdet", A))


@returning(Eigh)
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices, ascending; the triangle that ``UPLO`` names is read."""
    return Eigh(*call("linalg_eigh", A, UPLO))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending."""
    return call("linalg_eigvalsh", A, UPLO)


@returning(Eig)
def eig(A: Tensor) -> Any:
    """(eigenvalues, eigenvectors) of square matrices, complex; the vectors are columns of length 1."""
    return Eig(*call("linalg_eig", A))


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, complex."""
    return call("linalg_eigvals", A)


@returning(SVD)
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """(U, S, Vh) with ``A == U @ diag(S) @ Vh``.

    Raises:
        ArgumentError: for a ``driver`` on the CPU, or an unknown one. On a GPU it is accepted and does not matter.
    """
    _check_driver(A, driver)
    return SVD(*call("linalg_svd", A, full_matrices))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, descending; see :func:`svd` for ``driver``."""
    _check_driver(A, driver)
    return call("linalg_svdvals", A)


def _check_driver(A: Tensor, driver: str | None) -> None:
    if driver is None:
        return
    if A._form.device == "cpu":
        raise ArgumentError(f"svd: a driver is chosen on a GPU, not on the CPU; it is {driver!r}")
    if driver not in ("gesvd", "gesvdj", "gesvda"):
        raise ArgumentError(f"svd: driver is 'gesvd', 'gesvdj' or 'gesvda', not {driver!r}")


def matrix_exp(A: Tensor) -> Tensor:
    """The matrix exponential."""
    return call("matrix_exp", A)
