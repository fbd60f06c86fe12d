"""Linear algebra in the main namespace and as methods: PyTorch's older names, and those it shares with ``linalg``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch import call
from ..methods import named_result, offer
from ..outputs import accepts_out
from ..tensor import Tensor

Slogdet = named_result("slogdet", "sign", "logabsdet")
QR = named_result("qr", "Q", "R")
SVD = named_result("svd", "U", "S", "V")
Geqrf = named_result("geqrf", "a", "tau")
TriangularSolve = named_result("triangular_solve", "solution", "cloned_coefficient")
LUUnpack = named_result("lu_unpack", "P", "L", "U")


def slogdet(input: Tensor) -> Any:
    """(sign, logabsdet) of each determinant; of a complex matrix, the sign is a phase."""
    return Slogdet(*call("slogdet", input))


def logdet(input: Tensor) -> Any:
    """The logarithm of each determinant; NaN where a real one is negative."""
    sign, size = call("slogdet", input)
    if input.is_complex():
        return call("add", call("log", sign), size)
    return call("where", call("eq", sign, -1.0), float("nan"), size)


def inverse(input: Tensor) -> Any:
    """The inverse of each square matrix."""
    return call("inverse", input)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Any:
    """The pseudo-inverse; singular values up to ``rcond`` times the largest count as 0."""
    return call("linalg_pinv", input, None, rcond, False)


def cholesky(input: Tensor, upper: bool = False) -> Any:
    """The Cholesky factor of Hermitian, positive definite matrices; see :func:`gradwire.linalg.cholesky`."""
    return call("linalg_cholesky", input, upper)


def qr(input: Tensor, some: bool = True) -> Any:
    """(Q, R); see :func:`gradwire.linalg.qr`. Without ``some``, Q is square."""
    return QR(*call("linalg_qr", input, "reduced" if some else "complete"))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """(U, S, V) with ``input == U @ diag(S) @ V.mH``; see :func:`gradwire.linalg.svd`. Without ``some``, U and V are
    square, without ``compute_uv`` they are zeros of that shape."""
    if not compute_uv:
        values = call("linalg_svdvals", input)
        where = {"dtype": input.dtype, "device": input._meta.device}
        u, v = (call("zeros", (*input.shape[:-2], n, n), **where) for n in input.shape[-2:])
        return SVD(u, values, v)
    u, values, vh = call("linalg_svd", input, not some)
    v = call("transpose", vh, -2, -1)
    return SVD(u, values, call("conj", v) if v.is_complex() else v)


def geqrf(input: Tensor) -> Any:
    """(a, tau): the QR factorization as LAPACK packs it, for :func:`orgqr` and :func:`ormqr`."""
    return Geqrf(*call("geqrf", input))


def orgqr(input: Tensor, input2: Tensor) -> Any:
    """The first columns of a product of elementary reflectors; see :func:`gradwire.linalg.householder_product`."""
    return call("linalg_householder_product", input, input2)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Any:
    """``Q @ other`` (``other @ Q`` without ``left``) for the square Q that reflectors ``input`` and ``tau`` pack; with
    ``transpose``, Q's adjoint in its place."""
    return call("ormqr", input, tau, other, left, transpose)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """(solution, copy of A) of ``A @ X == b`` for triangular A, of ``A.mT @ X == b`` with ``transpose``."""
    return TriangularSolve(*call("triangular_solve", b, A, upper, transpose, unitriangular))


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """(LU, pivots), with ``get_infos`` (LU, pivots, infos); see :func:`gradwire.linalg.lu_factor`."""
    found = call("linalg_lu_factor_ex", A, pivot, not get_infos)
    return tuple(found) if get_infos else tuple(found[:2])


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    """The solution of ``A @ X == b`` from A's packed LU factorization."""
    return call("linalg_lu_solve", LU_data, LU_pivots, b)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """(P, L, U) from a packed LU factorization; what is not asked for is empty."""
    return LUUnpack(*call("lu_unpack", LU_data, LU_pivots, unpack_data, unpack_pivots))


def matrix_power(input: Tensor, n: int) -> Any:
    """``input`` multiplied by itself ``n`` times; for negative ``n``, its inverse."""
    from ..linalg.products import matrix_power as power

    return power(input, n)


def chain_matmul(*matrices: Tensor) -> Any:
    """The product of matrices in the cheapest order; see :func:`gradwire.linalg.multi_dot`."""
    from ..linalg.products import multi_dot

    if len(matrices) == 1 and isinstance(matrices[0], Tensor):
        return matrices[0]
    return multi_dot(matrices)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element of a vector, the highest first unless ``increasing``; see
    :func:`gradwire.linalg.vander`."""
    count = x.shape[0] if N is None else N
    powers = call("pow", call("unsqueeze", x, -1), call("arange", 0, count, 1, device=x._meta.device))
    return powers if increasing else call("flip", powers, (-1,))


_function: Callable[..., Any]
for _function in (
    slogdet, logdet, inverse, pinverse, cholesky, qr, svd, geqrf, orgqr, ormqr, triangular_solve, lu, lu_solve,
    matrix_power,
):  # fmt: skip
    offer(accepts_out(_function))
offer(lu_unpack, method=False)
offer(accepts_out(chain_matmul), method=False)
offer(vander, method=False)
