"""Decompositions and products under PyTorch's older names, and of low rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported
from gradwire_protocol.out import Out

from ..dispatch.dispatch import call
from ..dispatch.out_argument import accepts_out
from ..surface.methods import named_result, offer, returning
from ..tensor.tensor import Tensor
from .matrices import matrix_power as power
from .matrices import multi_dot

Slogdet = named_result("slogdet", "sign", "logabsdet")
QR = named_result("qr", "Q", "R")
SVD = named_result("svd", "U", "S", "V")
Geqrf = named_result("geqrf", "a", "tau")
TriangularSolve = named_result("triangular_solve", "solution", "cloned_coefficient")
LUUnpack = named_result("lu_unpack", "P", "L", "U")


@returning(Slogdet)
def slogdet(input: Tensor) -> Any:
    """(sign, logabsdet) of each determinant; of a complex matrix, the sign is a phase."""
    return Slogdet(*call("slogdet", input))


def logdet(input: Tensor) -> Tensor:
    """The logarithm of each determinant; NaN where a real one is negative."""
    sign, size = call("slogdet", input)
    if input.is_complex():
        return call("add", call("log", sign), size)
    return call("where", call("eq", sign, -1.0), float("nan"), size)


def inverse(input: Tensor) -> Tensor:
    """The inverse of each square matrix."""
    return call("inverse", input)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse; singular values up to ``rcond`` times the largest count as 0."""
    return call("linalg_pinv", input, None, rcond, False)


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of Hermitian, positive definite matrices; see :func:`gradwire.linalg.cholesky`."""
    return call("linalg_cholesky", input, upper)


@returning(QR)
def qr(input: Tensor, some: bool = True) -> Any:
    """(Q, R); see :func:`gradwire.linalg.qr`. Without ``some``, Q is square."""
    return QR(*call("linalg_qr", input, "reduced" if some else "complete"))


@returning(SVD)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """(U, S, V) with ``input == U @ diag(S) @ V.mH``; see :func:`gradwire.linalg.svd`. Without ``some``, U and V are
    square, without ``compute_uv`` they are zeros of that shape."""
    if not compute_uv:
        values = call("linalg_svdvals", input)
        where = {"dtype": input.dtype, "device": input._form.device}
        u, v = (call("zeros", (*input.shape[:-2], n, n), **where) for n in input.shape[-2:])
        return SVD(u, values, v)
    u, values, vh = call("linalg_svd", input, not some)
    v = call("transpose", vh, -2, -1)
    return SVD(u, values, call("conj", v) if v.is_complex() else v)


@returning(Geqrf)
def geqrf(input: Tensor) -> Any:
    """(a, tau): the QR factorization as LAPACK packs it, for :func:`orgqr` and :func:`ormqr`."""
    return Geqrf(*call("geqrf", input))


def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The first columns of a product of elementary reflectors; see :func:`gradwire.linalg.householder_product`."""
    return call("linalg_householder_product", input, input2)


def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """``Q @ input3`` (``input3 @ Q`` without ``left``) for the square Q that reflectors ``input`` and ``input2`` pack;
    with ``transpose``, Q's adjoint in its place."""
    return call("ormqr", input, input2, input3, left, transpose)


@returning(TriangularSolve)
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """(solution, copy of A) of ``A @ X == b`` for triangular A, of ``A.mT @ X == b`` with ``transpose``."""
    return TriangularSolve(*call("triangular_solve", b, A, upper, transpose, unitriangular))


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """(LU, pivots), with ``get_infos`` (LU, pivots, infos); see :func:`gradwire.linalg.lu_factor`."""
    found = call("linalg_lu_factor_ex", A, pivot, not get_infos)
    return tuple(found) if get_infos else tuple(found[:2])


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The solution of ``A @ X == b`` from A's packed LU factorization."""
    return call("linalg_lu_solve", LU_data, LU_pivots, b)


@returning(LUUnpack)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """(P, L, U) from a packed LU factorization; what is not asked for is empty."""
    return LUUnpack(*call("lu_unpack", LU_data, LU_pivots, unpack_data, unpack_pivots))


def matrix_power(input: Tensor, n: int) -> Tensor:
    """``input`` multiplied by itself ``n`` times; for negative ``n``, its inverse."""
    return power(input, n)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices in the cheapest order; see :func:`gradwire.linalg.multi_dot`."""
    if len(matrices) == 1 and isinstance(matrices[0], Tensor):
        return matrices[0]
    return multi_dot(matrices)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element of a vector, the highest first unless ``increasing``; see
    :func:`gradwire.linalg.vander`."""
    count = x.shape[0] if N is None else N
    powers = call("pow", call("unsqueeze", x, -1), call("arange", 0, count, 1, device=x._form.device))
    return powers if increasing else call("flip", powers, (-1,))


_function: Callable[..., Any]
for _function in (
    slogdet, logdet, inverse, pinverse, cholesky, geqrf, orgqr, ormqr, triangular_solve, lu, matrix_power,
):  # fmt: skip
    offer(accepts_out(_function))
for _function in (qr, svd, lu_solve):
    offer(accepts_out(_function, how=Out.EXACT))
offer(lu_unpack, method=False, out=Out.PLAIN)
offer(accepts_out(chain_matmul), method=False)
offer(vander, method=False)


def _random_range(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """An orthonormal basis of about the range of A, by subspace iteration (Halko, Martinsson, Tropp 2009, alg. 4.4)."""
    where = {"dtype": A.dtype, "device": A._form.device}
    draw = call("randn", (A.shape[-1], q), **where)
    whole = A if M is None else call("sub", A, M)
    basis: Tensor = call("linalg_qr", call("matmul", whole, draw))[0]
    for _ in range(niter):
        basis = call("linalg_qr", call("matmul", whole.mH, basis))[0]
        basis = call("linalg_qr", call("matmul", whole, basis))[0]
    return basis


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of about the ``q`` largest singular values of ``A - M``, by a random projection of it.

    ``M`` has the shape of A, or one that broadcasts to it.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = call("expand", M, tuple(A.shape))
    m, n = A.shape[-2:]
    if m < n:  # the smaller side is projected on
        v, values, u = _projected(A.mH, q, niter, None if M is None else M.mH)
        return u, values, v
    u, values, v = _projected(A, q, niter, M)
    return u, values, v


def _projected(A: Tensor, q: int, niter: int, M: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    basis = _random_range(A, q, niter, M)
    inner = basis.mH @ A if M is None else basis.mH @ A - basis.mH @ M
    u, values, vh = call("linalg_svd", inner, False)
    return basis @ u, values, vh.mH


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of about the ``q`` principal components of the rows of A, centred unless told not to.

    Raises:
        ArgumentError: for a ``q`` or ``niter`` that is out of range.
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    if not 0 <= q <= min(m, n):
        raise ArgumentError(f"pca_lowrank: q lies between 0 and the smaller extent {min(m, n)}, it is {q}")
    if niter < 0:
        raise ArgumentError(f"pca_lowrank: niter is not negative, it is {niter}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Any, Any]:
    """(eigenvalues, eigenvectors) of ``A @ x == w * B @ x``: the ``k`` largest, descending, or the smallest, ascending.

    ``A`` is symmetric, ``B`` (by default the identity) symmetric and positive definite. All eigenvalues are computed
    and ``k`` taken: what tunes PyTorch's iteration (``X``, but for its number of columns, ``iK``, ``niter``, ``tol``,
    ``method``, ``ortho_*``) is accepted and does not matter.

    Raises:
        ArgumentValueError: for matrices smaller than ``3 * k``, as in PyTorch.
        Unsupported: for a ``tracker``, since nothing is iterated.
    """
    if tracker is not None:
        raise Unsupported("lobpcg: there is no iteration that a tracker could follow")
    count = k if k is not None else n if n is not None else 1 if X is None else X.shape[-1]
    if A.shape[-1] < 3 * count:
        raise ArgumentValueError(f"lobpcg: matrices of {A.shape[-1]} rows are smaller than 3 * k, k is {count}")
    if B is None:
        values, vectors = call("linalg_eigh", A)
    else:
        factor = call("linalg_cholesky", B)
        half = call("linalg_solve_triangular", factor, A, False)
        values, vectors = call("linalg_eigh", call("linalg_solve_triangular", factor.mH, half, True, False))
        vectors = call("linalg_solve_triangular", factor.mH, vectors, True)
    if largest is False:
        return call("narrow", values, -1, 0, count), call("narrow", vectors, -1, 0, count)
    start = A.shape[-1] - count
    return (
        call("flip", call("narrow", values, -1, start, count), (-1,)),
        call("flip", call("narrow", vectors, -1, start, count), (-1,)),
    )


for _function in (svd_lowrank, pca_lowrank, lobpcg):
    offer(_function, method=False)
