"""Eigenvalues, singular values, pseudo-inverses and matrix exponentials.

Derivatives from first-order perturbation theory, as in Giles (2008); for complex singular vectors with the phases fixed
as by Hubig (2019); the pseudo-inverse after Golub and Pereyra (1973), the exponential after Van Loan (1978).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.errors import KernelError

from ..autograd.functional import F, conj
from ..autograd.registry import joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.lapack import adjoint_of, singular_values
from ..numerics.scientific import on_host, scipy_of
from ..runtime.arrays import Array, Namespace
from .matrix import adjoint


def _gaps(values: Tensor) -> Tensor:
    """``values[j] - values[i]`` at (i, j), with 1 on the diagonal."""
    n = values.shape[-1]
    eye = values.engine.call("eye", n, dtype=values.dtype, device=values.device)
    return F.unsqueeze(values, -2) - F.unsqueeze(values, -1) + eye


def _off_diagonal(x: Tensor) -> Tensor:
    return F.triu(x, 1) + F.tril(x, -1)


_CLOSE = 1e-2


@kernel("phase_free")
def phase_free(xp: Namespace, turns: Array, scale: Array) -> Array:
    if turns.size and float(xp.abs(turns).max()) > _CLOSE * max(1.0, float(xp.abs(scale).max())):
        raise KernelError(
            "the loss depends on the phases of complex eigenvectors or singular vectors, which are arbitrary, so it "
            "has no gradient; use quantities that do not depend on phases, such as magnitudes or projections"
        )
    return turns


def _turns(x: Tensor) -> Tensor:
    return F.imag(F.diagonal(x, 0, -2, -1))


# Hermitian eigenvalues


@kernel("linalg_eigh")
def linalg_eigh(xp: Namespace, x: Array, UPLO: str) -> tuple[Array, Array]:
    values, vectors = xp.linalg.eigh(x, UPLO=UPLO.upper())
    return values, vectors


@joint_derivative("linalg_eigh", saves="result0 result1", undefined=True)
def eigh_gradient(s: Saved, g_values: Tensor | None, g_vectors: Tensor | None) -> Tensor | None:
    vectors = s.result1
    if g_vectors is None:
        return _from_values(vectors, g_values)
    # Only a turn of the vectors can be undone: what of the gradient would stretch them does not count.
    turned = adjoint(vectors) @ g_vectors
    if turned.dtype.is_complex:
        F.phase_free(_turns(turned), turned)
    inner = _off_diagonal(turned - adjoint(turned)) / (2 * _gaps(s.result0))
    if g_values is not None:
        inner = inner + F.diag_embed(g_values)
    return vectors @ inner @ adjoint(vectors)


def _from_values(vectors: Tensor, g_values: Tensor | None) -> Tensor | None:
    if g_values is None:
        return None
    return (vectors * F.unsqueeze(g_values, -2)) @ adjoint(vectors)


@kernel("linalg_eigvalsh")
def linalg_eigvalsh(xp: Namespace, x: Array, UPLO: str) -> Array:
    return xp.linalg.eigvalsh(x, UPLO=UPLO.upper())


@joint_derivative("linalg_eigvalsh", saves="self")
def eigvalsh_gradient(s: Saved, g: Tensor) -> Tensor | None:
    return _from_values(F.linalg_eigh(s.self, s.UPLO)[1], g)


# Eigenvalues of any matrix


@kernel("linalg_eig")
def linalg_eig(xp: Namespace, x: Array) -> tuple[Array, Array]:
    return on_host(xp, _eig, x)


def _eig(x: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(x)
    return values, vectors


@joint_derivative("linalg_eig", saves="result0 result1", undefined=True)
def eig_gradient(s: Saved, g_values: Tensor | None, g_vectors: Tensor | None) -> Tensor | None:
    values, vectors = s.result0, s.result1
    left = adjoint(vectors)
    inner = None
    if g_vectors is not None:
        turned = left @ g_vectors
        F.phase_free(_turns(turned), turned)
        # The vectors are of length 1: a change along themselves is taken back.
        along = F.real(F.diagonal(turned, 0, -2, -1))
        turned = turned - (left @ vectors) * F.unsqueeze(along, -2)
        inner = _off_diagonal(turned) / conj(_gaps(values))
    if g_values is not None:
        diagonal = F.diag_embed(g_values)
        inner = diagonal if inner is None else inner + diagonal
    return None if inner is None else F.linalg_solve(left, inner @ left)


@kernel("linalg_eigvals")
def linalg_eigvals(xp: Namespace, x: Array) -> Array:
    return on_host(xp, np.linalg.eigvals, x)


@joint_derivative("linalg_eigvals", saves="self")
def eigvals_gradient(s: Saved, g: Tensor) -> Tensor:
    left = adjoint(F.linalg_eig(s.self)[1])
    return F.linalg_solve(left, F.unsqueeze(g, -1) * left)


# Singular values


@kernel("linalg_svd")
def linalg_svd(xp: Namespace, x: Array, full_matrices: bool) -> Any:
    if x.size == 0 and full_matrices:
        (m, n), batch = x.shape[-2:], x.shape[:-2]
        u, vh = (xp.broadcast_to(xp.eye(k, dtype=x.dtype), (*batch, k, k)) for k in (m, n))
        return u, xp.zeros((*batch, min(m, n)), x.real.dtype), vh
    return singular_values(xp, x, full_matrices)


@joint_derivative("linalg_svd", saves="result0 result1 result2", undefined=True)
def svd_gradient(s: Saved, g_u: Tensor | None, g_s: Tensor | None, g_vh: Tensor | None) -> Tensor | None:
    (m, n), k = s.meta("self").shape[-2:], s.outs[1].shape[-1]
    u, values, vh = F.narrow(s.result0, -1, 0, k), s.result1, F.narrow(s.result2, -2, 0, k)
    if g_u is None and g_vh is None:
        return None if g_s is None else _from_singular_values(u, vh, g_s)
    squares = (F.unsqueeze(values, -2) - F.unsqueeze(values, -1)) * (F.unsqueeze(values, -2) + F.unsqueeze(values, -1))
    squares = squares + values.engine.call("eye", k, dtype=values.dtype, device=values.device)
    columns, rows = F.unsqueeze(values, -2), F.unsqueeze(values, -1)
    inner: Any = None if g_s is None else F.diag_embed(g_s)
    beyond: Any = None
    turns: Any = None
    if g_u is not None:
        g_u = F.narrow(g_u, -1, 0, k)
        turned = adjoint(u) @ g_u
        part = _off_diagonal(turned - adjoint(turned)) / squares * columns
        if g_u.dtype.is_complex:
            turns = _turns(turned)
            part = part + F.diag_embed(F.complex(F.zeros_like(turns), turns / values))
        inner = part if inner is None else inner + part
        if m > k:
            beyond = ((g_u - u @ turned) / columns) @ vh
    if g_vh is not None:
        g_v = adjoint(F.narrow(g_vh, -2, 0, k))
        turned = vh @ g_v
        if turned.dtype.is_complex:
            F.phase_free(_turns(turned) if turns is None else turns + _turns(turned), turned)
        part = rows * (_off_diagonal(turned - adjoint(turned)) / squares)
        inner = part if inner is None else inner + part
        if n > k:
            rest = (u / columns) @ adjoint(g_v - adjoint(vh) @ turned)
            beyond = rest if beyond is None else beyond + rest
    elif turns is not None:
        F.phase_free(turns, turned)
    found: Tensor = u @ inner @ vh
    return found if beyond is None else found + beyond


def _from_singular_values(u: Tensor, vh: Tensor, g: Tensor) -> Tensor:
    return (u * F.unsqueeze(g, -2)) @ vh


@kernel("linalg_svdvals")
def linalg_svdvals(xp: Namespace, x: Array) -> Any:
    if x.size == 0:
        return xp.zeros((*x.shape[:-2], min(x.shape[-2:])), x.real.dtype)
    return singular_values(xp, x, vectors=False)


@joint_derivative("linalg_svdvals", saves="self")
def svdvals_gradient(s: Saved, g: Tensor) -> Tensor:
    u, _, vh = F.linalg_svd(s.self, False)
    return _from_singular_values(u, vh, g)


# Pseudo-inverse


@kernel("linalg_pinv")
def linalg_pinv(
    xp: Namespace, x: Array, atol: Array | float | None, rtol: Array | float | None, hermitian: bool
) -> Array:
    m, n = x.shape[-2:]
    real = x.real.dtype
    given = [t.shape for t in (atol, rtol) if isinstance(t, xp.ndarray)]
    batch = np.broadcast_shapes(x.shape[:-2], *given)
    if x.size == 0:
        return xp.zeros((*batch, n, m), x.dtype)
    if hermitian:
        values, u = xp.linalg.eigh(x)
        vh, sizes = adjoint_of(xp, u), xp.abs(values)
    else:
        u, values, vh = singular_values(xp, x)
        sizes = values
    default = np.finfo(real).eps * max(m, n)
    if rtol is None:
        if atol is None:
            rtol = default
        else:
            rtol = xp.where(atol > 0, 0, default) if isinstance(atol, xp.ndarray) else (0 if atol > 0 else default)
    atol = 0 if atol is None else atol
    largest = sizes.max(axis=-1)
    least = xp.maximum(xp.asarray(atol, dtype=real), xp.asarray(rtol, dtype=real) * largest)
    kept = sizes > least[..., None]
    scale = xp.where(kept, 1 / xp.where(kept, values, 1), 0).astype(real)
    return xp.matmul(adjoint_of(xp, vh) * scale[..., None, :], adjoint_of(xp, u))


@joint_derivative("linalg_pinv", saves="self result")
def pinv_gradient(s: Saved, g: Tensor) -> Tensor:
    return pseudo_inverse_gradient(s.result, s.self, g)


def pseudo_inverse_gradient(inverse: Tensor, a: Tensor, g: Tensor) -> Tensor:
    """The gradient by matrices of constant rank, from the gradient by their pseudo-inverses."""
    p, ph, gh = inverse, adjoint(inverse), adjoint(g)
    within = -(ph @ g @ ph)
    rows = (gh - a @ (p @ gh)) @ (p @ ph)
    columns = (ph @ p) @ (gh - (gh @ p) @ a)
    return within + rows + columns


# Exponential


@kernel("matrix_exp")
def matrix_exp(xp: Namespace, x: Array) -> Array:
    if x.size == 0:
        return x
    if xp is np or x.ndim == 2:
        return scipy_of(xp, "linalg").expm(x)
    return on_host(xp, _expm, x)


def _expm(x: Array) -> Array:
    from scipy.linalg import expm

    return expm(x)


@joint_derivative("matrix_exp", saves="self")
def matrix_exp_gradient(s: Saved, g: Tensor) -> Tensor:
    # exp([[B, G], [0, B]]) holds the derivative of exp at B, along G, at its upper right.
    a, n = adjoint(s.self), g.shape[-1]
    above = F.cat([a, g], -1)
    below = F.cat([F.zeros_like(a), a], -1)
    return F.narrow(F.narrow(F.matrix_exp(F.cat([above, below], -2)), -2, 0, n), -1, n, n)
