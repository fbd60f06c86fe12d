"""Factorizations and their packed forms.

Derivatives after Giles (2008), "Collected matrix derivative results", Walter and Lehmann (2010) for QR, and the usual
perturbation argument for the others, worked out for complex matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.errors import KernelError

from ..autograd.functional import F, conj
from ..autograd.registry import joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.lapack import adjoint_of, broadcast_batches, check_infos, compact_reflectors, each_matrix, routine
from ..numerics.scientific import on_host
from ..runtime.arrays import Array, Namespace, Native
from .linalg import cholesky_gradient_of, linalg_cholesky
from .matrix import adjoint, transposed

# Cholesky


@kernel("linalg_cholesky_ex")
def linalg_cholesky_ex(xp: Namespace, x: Array, upper: bool, check_errors: bool) -> tuple[Array, Array]:
    try:
        return linalg_cholesky(xp, x, upper), xp.zeros(x.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        if check_errors:
            raise

    def factor(matrix: Any) -> Any:
        found, info = routine("potrf", matrix)(matrix, lower=not upper, clean=1)
        return found, np.int32(info)

    return each_matrix(xp, factor, x)


@joint_derivative("linalg_cholesky_ex", saves="result0")
def cholesky_ex_gradient(s: Saved, g: Tensor, _: object) -> Tensor:
    return cholesky_gradient_of(s.result0, g, s.upper)


# QR


@kernel("linalg_qr")
def linalg_qr(xp: Namespace, x: Array, mode: str) -> tuple[Array, Array]:
    if mode == "r":
        return xp.zeros((0,), x.dtype), xp.linalg.qr(x, mode="r")
    if mode == "complete" and 0 in x.shape[-2:]:
        m = x.shape[-2]
        return xp.broadcast_to(xp.eye(m, dtype=x.dtype), (*x.shape[:-1], m)), xp.zeros(x.shape, x.dtype)
    q, r = xp.linalg.qr(x, mode=mode)
    return q, r


def hermitian_of_triangle(x: Tensor) -> Tensor:
    """The Hermitian matrices that have the upper triangles of ``x`` above a diagonal of its real parts."""
    strict = F.triu(x, 1)
    diagonal = F.diagonal(x, 0, -2, -1)
    if x.dtype.is_complex:
        diagonal = F.real(diagonal)
    return strict + adjoint(strict) + F.diag_embed(diagonal)


@joint_derivative("linalg_qr", saves="result0 result1", undefined=True)
def qr_gradient(s: Saved, g_q: Tensor | None, g_r: Tensor | None) -> Tensor:
    m, n = s.meta("self").shape[-2:]
    if s.mode == "r":
        raise KernelError("linalg_qr has no gradient with mode='r', which omits the Q that it needs")
    if s.mode == "complete" and m > n:
        raise KernelError(f"linalg_qr has no gradient with mode='complete' for more rows than columns, {m} > {n}")
    q, r = s.result0, s.result1
    if m >= n:
        return _qr_gradient(q, r, g_q, g_r)
    # Wide: the first m columns are Q R1, the others Q R2.
    r1, r2 = F.narrow(r, -1, 0, m), F.narrow(r, -1, m, n - m)
    if g_r is None:
        first, zeros = _qr_gradient(q, r1, g_q, None), F.zeros_like(r2)
        return F.cat([first, zeros], -1)
    g1, g2 = F.narrow(g_r, -1, 0, m), F.narrow(g_r, -1, m, n - m)
    through = q @ (r2 @ adjoint(g2))
    first = _qr_gradient(q, r1, through if g_q is None else g_q + through, g1)
    return F.cat([first, q @ g2], -1)


def _qr_gradient(q: Tensor, r: Tensor, g_q: Tensor | None, g_r: Tensor | None) -> Tensor:
    inner = g_r @ adjoint(r) if g_r is not None else None
    if g_q is not None:
        turned = adjoint(q) @ g_q
        inner = inner - turned if inner is not None else -turned
    sides = q @ hermitian_of_triangle(inner)  # type: ignore[arg-type]
    if g_q is not None:
        sides = sides + g_q
    return F.linalg_solve_triangular(adjoint(r), sides, False, False)


@kernel("geqrf")
def geqrf(xp: Namespace, x: Array) -> tuple[Array, Array]:
    if x.size == 0:
        return x, xp.zeros((*x.shape[:-2], min(x.shape[-2:])), x.dtype)
    packed, tau = on_host(xp, _packed_qr, x)
    return packed.swapaxes(-1, -2), tau


def _packed_qr(x: Array) -> tuple[Array, Array]:
    packed, tau = np.linalg.qr(x, mode="raw")
    return packed, tau


# Elementary reflectors. With (V, T) as in compact_reflectors, Q = I - V T V^H.


@kernel("linalg_householder_product")
def linalg_householder_product(xp: Namespace, a: Array, tau: Array) -> Array:
    m, n = a.shape[-2:]
    eye = xp.eye(m, n, dtype=a.dtype)
    if a.size == 0 or tau.size == 0:
        return xp.broadcast_to(eye, a.shape)
    v, t = compact_reflectors(xp, a, tau)
    return eye - xp.matmul(v, xp.matmul(t, adjoint_of(xp, v[..., :n, :])))


@kernel("ormqr")
def ormqr(xp: Namespace, a: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    if a.size == 0 or tau.size == 0 or other.size == 0:
        return other
    v, t = compact_reflectors(xp, a, tau)
    vh = adjoint_of(xp, v)
    if transpose:
        t = adjoint_of(xp, t)
    if left:
        return other - xp.matmul(v, xp.matmul(t, xp.matmul(vh, other)))
    return other - xp.matmul(xp.matmul(xp.matmul(other, v), t), vh)


class _Reflectors:
    """The compact form of reflectors in differentiable ops, and how gradients by its parts come back to them."""

    def __init__(self, a: Tensor, tau: Tensor) -> None:
        engine, (m, n), k = a.engine, a.shape[-2:], tau.shape[-1]
        self.columns, self.more = k, n - k
        of = {"dtype": a.dtype, "device": a.device}
        self.v = F.tril(F.narrow(a, -1, 0, k), -1) + engine.call("eye", m, k, **of)
        self.eye = engine.call("eye", k, **of)
        self.scale = F.unsqueeze(tau, -1)
        self.inner = F.triu(adjoint(self.v) @ self.v, 1)
        self.left = self.eye + self.scale * self.inner
        self.t = F.linalg_solve_triangular(self.left, self.scale * self.eye, True, True, True)

    def gradients(self, g_v: Tensor, g_t: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients by the packed matrix and by tau, from those by V (apart from T) and by T."""
        # T solves (I + D U) T = D.
        g_right = F.linalg_solve_triangular(adjoint(self.left), g_t, False, True, True)
        g_left = F.triu(-(g_right @ adjoint(self.t)), 1)
        g_tau = F.diagonal(g_right, 0, -2, -1) + F.sum(g_left * conj(self.inner), -1)
        g_inner = conj(self.scale) * g_left
        g_v = g_v + self.v @ (g_inner + adjoint(g_inner))
        g_a = F.tril(g_v, -1)
        if self.more:
            shape = (*g_a.shape[:-1], self.more)
            rest = g_a.engine.call("zeros", shape, dtype=g_a.dtype, device=g_a.device)
            g_a = F.cat([g_a, rest], -1)
        return g_a, g_tau


@joint_derivative("linalg_householder_product", saves="self tau")
def householder_product_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, tau = s.self, s.tau
    if 0 in a.shape or 0 in tau.shape:
        return F.zeros_like(a), F.zeros_like(tau)
    form = _Reflectors(a, tau)
    v, t, n = form.v, form.t, a.shape[-1]
    # Q = E - V T V[:n]^H, where E are the first n columns of the identity.
    head = F.narrow(v, -2, 0, n)
    by_head = -(adjoint(g) @ (v @ t))
    rows = F.pad(by_head, (0, 0, 0, a.shape[-2] - n)) if a.shape[-2] > n else by_head
    g_v = rows - g @ (head @ adjoint(t))
    return form.gradients(g_v, -(adjoint(v) @ (g @ head)))


@joint_derivative("ormqr", saves="self tau other")
def ormqr_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    a, tau, other = s.self, s.tau, s.other
    g_other = F.ormqr(a, tau, g, s.left, not s.transpose)
    if not (s.needs("self") or s.needs("tau")):
        return None, None, g_other
    if 0 in a.shape or 0 in tau.shape or 0 in other.shape:
        return F.zeros_like(a), F.zeros_like(tau), g_other
    form = _Reflectors(a, tau)
    v, t = form.v, form.t
    # The gradient by Q itself, of which I - V T V^H is what varies.
    g_q = g @ adjoint(other) if s.left else adjoint(other) @ g
    if s.transpose:
        g_q = adjoint(g_q)
    g_v = -(g_q @ (v @ adjoint(t))) - adjoint(g_q) @ (v @ t)
    return *form.gradients(g_v, -(adjoint(v) @ (g_q @ v))), g_other


# LU


def _factor_lu(xp: Namespace, x: Array) -> tuple[Array, Array, Array]:
    """(LU, pivots from 1, info)"""
    k = min(x.shape[-2:])
    if x.size == 0:
        pivots = xp.broadcast_to(xp.arange(1, k + 1, dtype=np.int32), (*x.shape[:-2], k))
        return x, pivots, xp.zeros(x.shape[:-2], np.int32)

    def factor(matrix: Array) -> Any:
        packed, pivots, info = routine("getrf", matrix)(matrix)
        return packed, pivots.astype(np.int32) + np.int32(1), np.int32(info)

    return each_matrix(xp, factor, x)


def rows_after(pivots: Array, m: int) -> Array:
    """The order of the m rows after the swaps that the pivots say, one after another."""
    order = np.broadcast_to(np.arange(m), (*pivots.shape[:-1], m)).copy()
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64) - 1
        moved = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., i : i + 1], -1)
        order[..., i : i + 1] = moved
    return order


def _unpack_lu(xp: Namespace, packed: Array) -> tuple[Array, Array]:
    m, n = packed.shape[-2:]
    k = min(m, n)
    return xp.tril(packed[..., :k], -1) + xp.eye(m, k, dtype=packed.dtype), xp.triu(packed[..., :k, :])


def _check_pivots(name: str, pivots: Array, m: int) -> None:
    """LAPACK takes pivots on trust; these come from outside.

    Raises:
        KernelError: for one that names no row.
    """
    if pivots.size and not (pivots.min() >= 1 and pivots.max() <= m):
        raise KernelError(f"{name}: pivots must be rows from 1 to {m}, but are from {pivots.min()} to {pivots.max()}")


def _check_blocks(pivots: Array) -> None:
    """As :func:`_check_pivots`, for an LDL factorization: blocks of two are a negative number, twice."""
    n, k = len(pivots), 0
    while k < n:
        pivot = int(pivots[k])
        pair = pivot < 0
        if not 1 <= abs(pivot) <= n or (pair and (k + 1 == n or int(pivots[k + 1]) != pivot)):
            raise KernelError(f"linalg_ldl_solve: pivot {k} is {pivot}, which is not from an LDL factorization")
        k += 1 + pair


def _permutation(xp: Namespace, pivots: Array, m: int, dtype: Native) -> Array:
    order = on_host(xp, rows_after, pivots, m)
    return (order[..., None, :] == xp.arange(m)[:, None]).astype(dtype)


@kernel("linalg_lu_factor_ex")
def linalg_lu_factor_ex(xp: Namespace, x: Array, pivot: bool, check_errors: bool) -> tuple[Array, Array, Array]:
    packed, pivots, info = _factor_lu(xp, x)
    if check_errors:
        check_infos(xp, info, "it is singular, U[{0}, {0}] is 0 (counted from 1)")
    return packed, pivots, info


@kernel("lu_unpack")
def lu_unpack(
    xp: Namespace, packed: Array, pivots: Array, unpack_data: bool, unpack_pivots: bool
) -> tuple[Array, Array, Array]:
    nothing = xp.zeros((0,), packed.dtype)
    if unpack_pivots:
        _check_pivots("lu_unpack", pivots, packed.shape[-2])
    p = _permutation(xp, pivots, packed.shape[-2], packed.dtype) if unpack_pivots else nothing
    return p, *(_unpack_lu(xp, packed) if unpack_data else (nothing, nothing))


@kernel("linalg_lu")
def linalg_lu(xp: Namespace, x: Array, pivot: bool) -> tuple[Array, Array, Array]:
    packed, pivots, _ = _factor_lu(xp, x)
    return _permutation(xp, pivots, x.shape[-2], x.dtype), *_unpack_lu(xp, packed)


@joint_derivative("linalg_lu", saves="result0 result1 result2", undefined=True)
def lu_gradient(s: Saved, _: Tensor | None, g_l: Tensor | None, g_u: Tensor | None) -> Tensor | None:
    if g_l is None and g_u is None:
        return None
    return s.result0 @ _lu_gradient(s.result1, s.result2, g_l, g_u)


@joint_derivative("linalg_lu_factor_ex", saves="result0 result1")
def lu_factor_gradient(s: Saved, g: Tensor, *_: object) -> Tensor:
    p, lower, upper = F.lu_unpack(s.result0, s.result1)
    k = min(g.shape[-2:])
    return p @ _lu_gradient(lower, upper, F.narrow(g, -1, 0, k), F.triu(F.narrow(g, -2, 0, k)))


def _lu_gradient(lower: Tensor, upper: Tensor, g_l: Tensor | None, g_u: Tensor | None) -> Tensor:
    """The gradient by ``L @ U``. What is beyond the square part follows from it: L2 = A2 U1^-1, U2 = L1^-1 A2."""
    m, k, n = lower.shape[-2], lower.shape[-1], upper.shape[-1]
    g_l = F.zeros_like(lower) if g_l is None else g_l
    g_u = F.zeros_like(upper) if g_u is None else g_u
    if m > k:
        below, g_below = F.narrow(lower, -2, k, m - k), F.narrow(g_l, -2, k, m - k)
        lower, g_l = F.narrow(lower, -2, 0, k), F.narrow(g_l, -2, 0, k)
        g_rest = F.linalg_solve_triangular(adjoint(upper), g_below, False, False)
        return F.cat([_square_lu_gradient(lower, upper, g_l, g_u - adjoint(below) @ g_rest), g_rest], -2)
    if n > k:
        beside, g_beside = F.narrow(upper, -1, k, n - k), F.narrow(g_u, -1, k, n - k)
        upper, g_u = F.narrow(upper, -1, 0, k), F.narrow(g_u, -1, 0, k)
        g_rest = F.linalg_solve_triangular(adjoint(lower), g_beside, True, True, True)
        return F.cat([_square_lu_gradient(lower, upper, g_l - g_rest @ adjoint(beside), g_u), g_rest], -1)
    return _square_lu_gradient(lower, upper, g_l, g_u)


def _square_lu_gradient(lower: Tensor, upper: Tensor, g_l: Tensor, g_u: Tensor) -> Tensor:
    inner = F.tril(adjoint(lower) @ g_l, -1) + F.triu(g_u @ adjoint(upper))
    half = F.linalg_solve_triangular(adjoint(upper), inner, False, False)
    return F.linalg_solve_triangular(adjoint(lower), half, True, True, True)


@joint_derivative("lu_unpack", undefined=True)
def lu_unpack_gradient(s: Saved, _: Tensor | None, g_l: Tensor | None, g_u: Tensor | None) -> Tensor | None:
    *_, m, n = s.meta("self").shape
    parts = []
    if g_l is not None:
        part = F.tril(g_l, -1)
        parts.append(F.pad(part, (0, n - part.shape[-1])) if n > part.shape[-1] else part)
    if g_u is not None:
        part = F.triu(g_u)
        parts.append(F.pad(part, (0, 0, 0, m - part.shape[-2])) if m > part.shape[-2] else part)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@kernel("linalg_lu_solve")
def linalg_lu_solve(xp: Namespace, packed: Array, pivots: Array, other: Array, left: bool, adjoint: bool) -> Array:
    packed, other = broadcast_batches(xp, packed, other)
    pivots = xp.broadcast_to(pivots, packed.shape[:-1])
    if other.size == 0:
        return other
    _check_pivots("linalg_lu_solve", pivots, packed.shape[-1])

    def solve(matrix: Array, swaps: Array, right: Array) -> Array:
        getrs = routine("getrs", matrix, right)
        if left:
            trans = (2 if np.iscomplexobj(matrix) else 1) if adjoint else 0
            return getrs(matrix, swaps - 1, right, trans=trans)[0]
        if adjoint:  # X A^H = B is conj(A) X^T = B^T
            return np.conj(getrs(matrix, swaps - 1, np.conj(right.T), trans=0)[0]).T
        return getrs(matrix, swaps - 1, right.T, trans=1)[0].T

    return each_matrix(xp, solve, packed, pivots, other, ranks=(2, 1, 2))


@joint_derivative("linalg_lu_solve", saves="self pivots result")
def lu_solve_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    packed, x = s.self, s.result
    g_other = F.linalg_lu_solve(packed, s.pivots, g, s.left, not s.adjoint)
    if not s.needs("self"):
        return None, g_other
    p, lower, upper = F.lu_unpack(packed, s.pivots)
    if s.adjoint:
        g_product = -(x @ adjoint(g_other)) if s.left else -(adjoint(g_other) @ x)
    else:
        g_product = -(g_other @ adjoint(x)) if s.left else -(adjoint(x) @ g_other)
    rows = transposed(p) @ g_product
    return F.tril(rows @ adjoint(upper), -1) + F.triu(adjoint(lower) @ rows), g_other


# LDL


@kernel("linalg_ldl_factor_ex")
def linalg_ldl_factor_ex(xp: Namespace, x: Array, hermitian: bool, check_errors: bool) -> tuple[Array, Array, Array]:
    if x.size == 0:
        return x, xp.zeros(x.shape[:-1], np.int32), xp.zeros(x.shape[:-2], np.int32)
    name = "hetrf" if hermitian and x.dtype.kind == "c" else "sytrf"

    def factor(matrix: Array) -> Any:
        packed, pivots, info = routine(name, matrix)(matrix, lower=1)
        return np.tril(packed), pivots.astype(np.int32), np.int32(info)

    packed, pivots, info = each_matrix(xp, factor, x)
    if check_errors:
        check_infos(xp, info, "it is singular, D[{0}, {0}] is 0 (counted from 1)")
    return packed, pivots, info


@kernel("linalg_ldl_solve")
def linalg_ldl_solve(xp: Namespace, packed: Array, pivots: Array, other: Array, hermitian: bool) -> Array:
    packed, other = broadcast_batches(xp, packed, other)
    pivots = xp.broadcast_to(pivots, packed.shape[:-1])
    if other.size == 0:
        return other
    name = "hetrs" if hermitian and packed.dtype.kind == "c" else "sytrs"

    def solve(matrix: Array, swaps: Array, right: Array) -> Array:
        _check_blocks(swaps)
        return routine(name, matrix, right)(matrix, swaps.astype(np.int32), right, lower=1)[0]

    return each_matrix(xp, solve, packed, pivots, other, ranks=(2, 1, 2))
