# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from collections.abc import Sequence
from gradwire._core.composed.matrices import diagonal as diagonal
from gradwire._core.tensor.tensor import Tensor
from gradwire.return_types import linalg_cholesky_ex, linalg_eig, linalg_eigh, linalg_inv_ex, linalg_ldl_factor, linalg_ldl_factor_ex, linalg_lstsq, linalg_lu_factor, linalg_lu_factor_ex, linalg_qr, linalg_slogdet, linalg_solve_ex, linalg_svd
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import LinAlgError as LinAlgError
from typing import Literal, overload

def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangular ``L`` with ``L @ L.mH == A`` for Hermitian, positive definite ``A``; its adjoint with
    ``upper``. Another matrix raises :class:`LinAlgError` when the result is read."""
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> linalg_cholesky_ex:
    """(L, info): :func:`cholesky` with an error code per matrix, 0 for success, in place of an error."""
def cond(A: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number: the quotient of the largest and the smallest singular value for ``p`` None, 2 or -2, the
    product of the norms of order ``p`` of the matrix and its inverse for others. Infinite for singular matrices."""
def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of 3-vectors along ``dim``, with broadcasting."""
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of each square matrix."""
def eig(A: Tensor, *, out: Sequence[Tensor] | None = None) -> linalg_eig:
    """(eigenvalues, eigenvectors) of square matrices, complex; the vectors are columns of length 1."""
def eigh(A: Tensor, UPLO: str = 'L', *, out: Sequence[Tensor] | None = None) -> linalg_eigh:
    """(eigenvalues, eigenvectors) of Hermitian matrices, ascending; the triangle that ``UPLO`` names is read."""
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of square matrices, complex."""
def eigvalsh(A: Tensor, UPLO: str = 'L', *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending."""
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of elementary reflectors, as :func:`gradwire.geqrf` packs them."""
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of each square matrix. A singular one raises :class:`LinAlgError` when the result is read."""
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> linalg_inv_ex:
    """(inverse, info): :func:`inv` with an error code per matrix, 0 for success, in place of an error."""
def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Sequence[Tensor] | None = None) -> linalg_ldl_factor:
    """(LD, pivots): the packed LDL factorization of symmetric matrices (or Hermitian ones), for :func:`ldl_solve`."""
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> linalg_ldl_factor_ex:
    """(LD, pivots, info): :func:`ldl_factor` with an error code per matrix in place of an error."""
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """The solution of ``A @ X == B`` from A's packed LDL factorization."""
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Sequence[Tensor] | None = None) -> linalg_lstsq:
    """(solution, residuals, rank, singular_values) of ``A @ X == B`` in least squares."""
@overload
def lu(A: Tensor, pivot: bool = True, get_infos: Literal[False] = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(P, L, U) with ``P @ L @ U == A``: a permutation, a unit lower triangle and an upper triangle."""
@overload
def lu(A: Tensor, pivot: bool = True, *, get_infos: Literal[True], out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
def lu_factor(A: Tensor, *, pivot: bool = True, out: Sequence[Tensor] | None = None) -> linalg_lu_factor:
    """(LU, pivots): the factorization packed for :func:`lu_solve` and :func:`gradwire.lu_unpack`. A singular matrix
    raises :class:`LinAlgError` when the result is read."""
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> linalg_lu_factor_ex:
    """(LU, pivots, info): :func:`lu_factor` with an error code per matrix in place of an error."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None) -> Tensor:
    """The solution of ``A @ X == B`` (``X @ A == B`` without ``left``) from A's packed LU factorization."""
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product."""
def matrix_exp(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix exponential."""
def matrix_norm(A: Tensor, ord: float | str = 'fro', dim: int | Sequence[int] = ..., keepdim: bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of each matrix in the dimensions ``dim``: "fro", "nuc", or 1, 2, inf and their negatives."""
def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """``A`` multiplied by itself ``n`` times; for negative ``n``, its inverse."""
def matrix_rank(A: Tensor, tol: float | Tensor | None = None, hermitian: bool = False, *, atol: float | Tensor | None = None, rtol: float | Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """How many singular values (eigenvalues, with ``hermitian``) are larger than ``max(atol, rtol * largest)``."""
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices in the order that takes least multiplications. The first and the last may be
    vectors."""
def norm(A: Tensor, ord: float | str | None = None, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """:func:`vector_norm` where ``dim`` is one dimension, :func:`matrix_norm` where it is two; without ``dim`` as many
    as the tensor has. Without an ``ord``, the 2-norm of all elements (of those in ``dim``)."""
def pinv(A: Tensor, rcond: float | Tensor | None = None, *, atol: float | Tensor | None = None, rtol: float | Tensor | None = None, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse: singular values up to ``max(atol, rtol * largest)`` count as 0. ``rcond`` is an older name of
    ``rtol``, and the only one by position."""
def qr(A: Tensor, mode: str = 'reduced', *, out: Sequence[Tensor] | None = None) -> linalg_qr:
    """(Q, R) with ``Q @ R == A``, Q's columns orthonormal and R upper triangular. ``mode`` is "reduced", "complete"
    for a square Q, or "r" for R alone."""
def slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> linalg_slogdet:
    """(sign, logabsdet) of each determinant; of a complex matrix, the sign is a phase."""
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The solution of ``A @ X == B``, of ``X @ A == B`` without ``left``. ``B`` holds matrices, or one vector each."""
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> linalg_solve_ex:
    """(result, info): :func:`solve` with an error code per matrix in place of an error."""
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Tensor | None = None) -> Tensor:
    """The solution of ``A @ X == B`` (``X @ A == B`` without ``left``) by substitution; one triangle of A counts."""
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Sequence[Tensor] | None = None) -> linalg_svd:
    """(U, S, Vh) with ``A == U @ diag(S) @ Vh``."""
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values, descending; see :func:`svd` for ``driver``."""
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse under ``tensordot``: of the first ``ind`` dimensions as rows, the others as columns."""
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """The ``X`` with ``tensordot(A, X, X.ndim) == B``; ``dims`` of A are moved to its end first."""
def vander(x: Tensor, *, N: int | None = None, out: Tensor | None = None) -> Tensor:
    """The powers 0 to ``N - 1`` of each element, in a new last dimension; ``N`` is by default the last extent."""
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Dot products of vectors along ``dim``, the first conjugated, with broadcasting."""
def vector_norm(x: Tensor, ord: float | str = 2, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """``sum(abs(x) ** ord) ** (1 / ord)`` over ``dim``, by default over all elements."""
__all__ = ['LinAlgError', 'cholesky', 'cholesky_ex', 'cond', 'cross', 'det', 'diagonal', 'eig', 'eigh', 'eigvals', 'eigvalsh', 'householder_product', 'inv', 'inv_ex', 'ldl_factor', 'ldl_factor_ex', 'ldl_solve', 'lstsq', 'lu', 'lu_factor', 'lu_factor_ex', 'lu_solve', 'matmul', 'matrix_exp', 'matrix_norm', 'matrix_power', 'matrix_rank', 'multi_dot', 'norm', 'pinv', 'qr', 'slogdet', 'solve', 'solve_ex', 'solve_triangular', 'svd', 'svdvals', 'tensorinv', 'tensorsolve', 'vander', 'vecdot', 'vector_norm']
