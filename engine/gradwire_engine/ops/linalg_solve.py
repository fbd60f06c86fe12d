"""Systems of linear equations: triangular, factored, with error codes, in least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.functional import F, conj
from ..autograd.registry import joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.lapack import (
    adjoint_of,
    broadcast_batches,
    check_infos,
    each_matrix,
    raising,
    routine,
    singular_values,
    solve_triangle,
)
from ..runtime.arrays import Array, Namespace
from .linalg import linalg_solve, solve_gradient_of
from .linalg_spectral import pseudo_inverse_gradient
from .matrix import adjoint, transposed

_SINGULAR = "it is singular, U[{0}, {0}] of its LU factorization is 0 (counted from 1)"


def _is_vector(a: Array | Tensor, b: Array | Tensor) -> bool:
    """Whether ``b`` holds one right-hand side per matrix."""
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])


def _infos(xp: Namespace, a: Array) -> Array:
    """Where the diagonal of each matrix's LU factorization has its first 0, counted from 1."""
    return each_matrix(xp, lambda matrix: np.int32(routine("getrf", matrix)(matrix)[2]), a)


def _without(xp: Namespace, infos: Any, result: Any) -> Any:
    """The results with NaN for the matrices that have none."""
    failed = (infos != 0).reshape((*infos.shape, *(1,) * (result.ndim - infos.ndim)))
    return xp.where(failed, np.nan, result).astype(result.dtype)


@kernel("linalg_inv_ex")
def linalg_inv_ex(xp: Namespace, a: Array, check_errors: bool) -> tuple[Array, Array]:
    try:
        with raising(xp):
            return xp.linalg.inv(a), xp.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        infos = _infos(xp, a)
    if check_errors:
        check_infos(xp, infos, _SINGULAR)
    regular = xp.where((infos != 0)[..., None, None], xp.eye(a.shape[-1], dtype=a.dtype), a)
    return _without(xp, infos, xp.linalg.inv(regular)), infos


@joint_derivative("linalg_inv_ex", saves="result0")
def inv_ex_gradient(s: Saved, g: Tensor, _: object) -> Tensor:
    inverse = adjoint(s.result0)
    return -(inverse @ g @ inverse)


@kernel("linalg_solve_ex")
def linalg_solve_ex(xp: Namespace, a: Array, b: Array, left: bool, check_errors: bool) -> tuple[Array, Array]:
    try:
        return linalg_solve(xp, a, b, left), xp.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        infos = _infos(xp, a)
    if check_errors:
        check_infos(xp, infos, _SINGULAR)
    regular = xp.where((infos != 0)[..., None, None], xp.eye(a.shape[-1], dtype=a.dtype), a)
    result = linalg_solve(xp, regular, b, left)
    if _is_vector(a, b):
        return _without(xp, infos, result), infos
    failed = xp.broadcast_to(infos, result.shape[:-2])
    return _without(xp, failed, result), infos


@joint_derivative("linalg_solve_ex", saves="self result0")
def solve_ex_gradient(s: Saved, g: Tensor, _: object) -> tuple[Tensor | None, Tensor | None]:
    return solve_gradient_of(s, s.result0, g)


# Triangles


@kernel("linalg_solve_triangular")
def linalg_solve_triangular(xp: Namespace, a: Array, b: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    return solve_triangle(xp, a, b, upper, left, unitriangular)


@joint_derivative("linalg_solve_triangular", saves="self result")
def solve_triangular_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, x = s.self, s.result
    g_b = F.linalg_solve_triangular(adjoint(a), g, not s.upper, s.left, s.unitriangular)
    if not s.needs("self"):
        return None, g_b
    g_a = -(g_b @ adjoint(x) if s.left else adjoint(x) @ g_b)
    return _triangle(g_a, s.upper, s.unitriangular), g_b


def _triangle(x: Tensor, upper: bool, strict: bool) -> Tensor:
    return F.triu(x, int(strict)) if upper else F.tril(x, -int(strict))


@kernel("triangular_solve")
def triangular_solve(
    xp: Namespace, b: Array, a: Array, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Array, Array]:
    a, b = broadcast_batches(xp, a, b)
    if transpose:
        return solve_triangle(xp, a.swapaxes(-1, -2), b, not upper, True, unitriangular), a
    return solve_triangle(xp, a, b, upper, True, unitriangular), a


@joint_derivative("triangular_solve", saves="A result0", undefined=True)
def triangular_solve_gradient(s: Saved, g: Tensor | None, g_copy: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    if g is None:
        return None, g_copy
    a, x = s.A, s.result0
    matrix = conj(a) if s.transpose else adjoint(a)
    g_b = F.linalg_solve_triangular(matrix, g, s.upper == s.transpose, True, s.unitriangular)
    if not s.needs("A"):
        return g_b, None
    g_a = -(conj(x) @ transposed(g_b) if s.transpose else g_b @ adjoint(x))
    g_a = _triangle(g_a, s.upper, s.unitriangular)
    return g_b, g_a if g_copy is None else g_a + g_copy


# With a Cholesky factor


@kernel("cholesky_solve")
def cholesky_solve(xp: Namespace, b: Array, factor: Array, upper: bool) -> Array:
    half = solve_triangle(xp, adjoint_of(xp, factor) if upper else factor, b, False)
    return solve_triangle(xp, factor if upper else adjoint_of(xp, factor), half, True)


@joint_derivative("cholesky_solve", saves="input2 result")
def cholesky_solve_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    factor, x = s.input2, s.result
    g_b = F.cholesky_solve(g, factor, s.upper)
    if not s.needs("input2"):
        return g_b, None
    both = g_b @ adjoint(x)
    both = both + adjoint(both)
    return g_b, -(factor @ both) if s.upper else -(both @ factor)


@kernel("cholesky_inverse")
def cholesky_inverse(xp: Namespace, factor: Array, upper: bool) -> Array:
    eye = xp.broadcast_to(xp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
    return cholesky_solve(xp, eye, factor, upper)


@joint_derivative("cholesky_inverse", saves="self result")
def cholesky_inverse_gradient(s: Saved, g: Tensor) -> Tensor:
    factor, inverse = s.self, s.result
    both = inverse @ (g + adjoint(g)) @ inverse
    return -(factor @ both) if s.upper else -(both @ factor)


# Least squares


@kernel("linalg_lstsq")
def linalg_lstsq(
    xp: Namespace, a: Array, b: Array, rcond: float | None, driver: str
) -> tuple[Array, Array, Array, Array]:
    vector = _is_vector(a, b)
    if vector:
        b = b[..., None]
    m, n = a.shape[-2:]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    real = a.real.dtype
    u, values, vh = singular_values(xp, a)
    least = np.finfo(real).eps * max(m, n) if rcond is None or rcond < 0 else rcond
    kept = values > (least * values[..., :1] if driver != "gels" and values.size else 0)
    rank = kept.sum(axis=-1)
    scale = xp.where(kept, 1 / xp.where(kept, values, 1), 0).astype(real)
    x = xp.matmul(adjoint_of(xp, vh), scale[..., None] * xp.matmul(adjoint_of(xp, u), b))
    x = xp.broadcast_to(x, (*batch, *x.shape[-2:]))
    residuals = xp.zeros((0,), real)
    if m > n and driver != "gelsy":
        off = b - xp.matmul(a, x)
        residuals = xp.sum(xp.square(off.real) + xp.square(off.imag), axis=-2, dtype=real)
        full = xp.broadcast_to(rank == n, batch)
        residuals = xp.where(full[..., None], residuals, np.nan)
    return (
        x[..., 0] if vector else x,
        residuals,
        xp.zeros((0,), np.int64) if driver == "gels" else rank.astype(np.int64),
        values if driver in ("gelsd", "gelss") else xp.zeros((0,), real),
    )


@joint_derivative("linalg_lstsq", saves="self other result0", undefined=True)
def lstsq_gradient(
    s: Saved, g: Tensor | None, g_residuals: Tensor | None, *_: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    a, b, x = s.self, s.other, s.result0
    vector = _is_vector(a, b)
    if vector:
        b, x = F.unsqueeze(b, -1), F.unsqueeze(x, -1)
    g_a = g_b = None
    if g is not None:
        g = F.unsqueeze(g, -1) if vector else g
        inverse = F.linalg_pinv(a)
        g_b = adjoint(inverse) @ g
        if s.needs("self"):
            g_a = pseudo_inverse_gradient(inverse, a, g @ adjoint(b))
    if g_residuals is not None and s.outs[1].numel:
        off = 2 * F.unsqueeze(g_residuals, -2) * (b - a @ x)
        g_b = off if g_b is None else g_b + off
        if s.needs("self"):
            through = -(off @ adjoint(x))
            g_a = through if g_a is None else g_a + through
    if g_b is not None and vector:
        g_b = F.squeeze(g_b, -1)
    return g_a, g_b
