"""Linear algebra, through LAPACK on the CPU and cuSOLVER on a GPU."""

from __future__ import annotations

import numpy as np

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.lapack import broadcast_batches, is_finite, raising, singular_values
from ..runtime.arrays import Array, Namespace
from .matrix import adjoint


@kernel("det")
def det(xp: Namespace, x: Array) -> Array:
    return xp.linalg.det(x)


@kernel("slogdet")
def slogdet(xp: Namespace, x: Array) -> tuple[Array, Array]:
    sign, log = xp.linalg.slogdet(x)
    return sign, log


@kernel("inverse")
def inverse(xp: Namespace, x: Array) -> Array:
    with raising(xp):
        return xp.linalg.inv(x)


@kernel("cofactor")
def cofactor(xp: Namespace, x: Array) -> Array:
    # With x = U S V: det is det(U) det(V) prod(S), so each singular value's cofactor is the product of the others.
    n = x.shape[-1]
    if not is_finite(xp, x):
        return xp.full(x.shape, np.nan, x.dtype)
    u, s, vh = singular_values(xp, x)
    others = xp.broadcast_to(s[..., None, :], (*s.shape, n)).copy()
    others[..., xp.arange(n), xp.arange(n)] = 1
    phase = xp.conj(xp.linalg.det(u) * xp.linalg.det(vh))
    scale = xp.prod(others, axis=-1) * phase[..., None]
    return xp.matmul(u * scale[..., None, :], vh)


@kernel("linalg_solve")
def linalg_solve(xp: Namespace, a: Array, b: Array, left: bool) -> Array:
    with raising(xp):
        if b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
            return xp.linalg.solve(a, b[..., None])[..., 0]
        if xp is not np:
            a, b = broadcast_batches(xp, a, b)  # CuPy's does not
        if left:
            return xp.linalg.solve(a, b)
        return xp.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


@kernel("linalg_cholesky")
def linalg_cholesky(xp: Namespace, x: Array, upper: bool) -> Array:
    with raising(xp):
        if upper:
            return xp.conj(xp.linalg.cholesky(xp.conj(x.swapaxes(-1, -2)))).swapaxes(-1, -2)
        return xp.linalg.cholesky(x)


def _matrix(x: Tensor) -> Tensor:
    """One number per matrix of a batch, to be multiplied with the matrices."""
    return F.unsqueeze(F.unsqueeze(x, -1), -1)


def _det(s: Saved, g: Tensor) -> Tensor:
    if s.self.engine.differentiates:
        return _matrix(g * conj(s.result)) * adjoint(F.inverse(s.self))
    return _matrix(g) * F.cofactor(s.self)


derivative("det", self=("self result", _det))


@joint_derivative("slogdet", saves="self result0", undefined=True)
def slogdet_gradient(s: Saved, g_sign: Tensor | None, g_log: Tensor | None) -> Tensor:
    inverse = adjoint(F.inverse(s.self))
    scale = g_log
    if g_sign is not None and g_sign.dtype.is_complex:
        # The phase turns with the imaginary part of the logarithm of the determinant.
        turn = F.imag(g_sign * conj(s.result0))
        turned = F.complex(F.zeros_like(turn), turn)
        scale = turned if scale is None else turned + scale
    return _matrix(scale) * inverse if scale is not None else F.zeros_like(s.self)  # a real sign is flat


derivative("inverse", self=("result", lambda s, g: -(adjoint(s.result) @ g @ adjoint(s.result))))


@joint_derivative("linalg_solve", saves="self result")
def solve_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    return solve_gradient_of(s, s.result, g)


def solve_gradient_of(s: Saved, x: Tensor, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Gradients by matrix and right side of a system, from its solution ``x`` and the gradient by that."""
    a, b = s.self, s.meta("other")
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if vector:
        g_b = F.squeeze(F.linalg_solve(adjoint(a), F.unsqueeze(g, -1)), -1)
        return (-(F.unsqueeze(g_b, -1) * conj(F.unsqueeze(x, -2))) if s.needs("self") else None), g_b
    g_b = F.linalg_solve(adjoint(a), g, s.left)
    if not s.needs("self"):
        return None, g_b
    return -(g_b @ adjoint(x) if s.left else adjoint(x) @ g_b), g_b


@joint_derivative("linalg_cholesky", saves="result")
def cholesky_gradient(s: Saved, g: Tensor) -> Tensor:
    return cholesky_gradient_of(s.result, g, s.upper)


def cholesky_gradient_of(factor: Tensor, g: Tensor, upper: bool) -> Tensor:
    """The gradient by a matrix from its Cholesky factor and the gradient by that."""
    if upper:
        factor, g = adjoint(factor), adjoint(g)
    # The lower triangle of L^H gL, mirrored into the upper one, between L^-H and L^-1. Like PyTorch, an imaginary part
    # on the diagonal, which no Hermitian operand can use, is not removed.
    inner = F.tril(adjoint(factor) @ F.tril(g))
    inner = inner + adjoint(F.tril(inner, -1))
    half = F.linalg_solve_triangular(adjoint(factor), inner, True)
    return F.linalg_solve_triangular(factor, half, False, False) * 0.5
