"""A few singular values or eigenvalues of large matrices."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def _random_range(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """An orthonormal basis of about the range of A, by subspace iteration (Halko, Martinsson, Tropp 2009, alg. 4.4)."""
    where = {"dtype": A.dtype, "device": A._meta.device}
    draw = call("randn", (A.shape[-1], q), **where)
    whole = A if M is None else call("sub", A, M)
    basis: Tensor = call("linalg_qr", call("matmul", whole, draw))[0]
    for _ in range(niter):
        basis = call("linalg_qr", call("matmul", whole.mH, basis))[0]
        basis = call("linalg_qr", call("matmul", whole, basis))[0]
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Any:
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


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
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
