"""What the spectrum of a matrix tells: eigenvalues, singular values, and functions of matrices made of them."""

from __future__ import annotations

from ..autocast import CPU_FLOAT32
from ..costs import matrices
from ..errors import ArgumentError, DTypeError
from ..meta import Inference, new, several
from ..shapes import broadcast, common_device
from ..table import Float, Out, Tensor, gradients, op
from .linalg import by_columns, need_matrix, need_square
from .linalg_factorization import smaller


def _need_triangle(name: str, UPLO: str) -> None:
    if UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO must be 'L' or 'U', the triangle that is read, not {UPLO!r}")


@op(internal=True)
def phase_free(self: Tensor, scale: Tensor) -> Inference:
    """How a loss changes with the phases of complex vectors that have none of their own: must be 0, up to a hundredth
    of the largest magnitude in ``scale`` (if above 1); RuntimeError otherwise. Returns it."""
    return new(self.shape, self.dtype, self.device)


@op(
    results=2, grad_fn="LinalgEighBackward0", exposed=(), batched=True, cost=matrices(10), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(
    "result1 @ ((triu((t := (s := adjoint(result1) @ grad1) - adjoint(s))) + tril(t))"
    " / (((v := unsqueeze(result)) - v + c) * c) + diag_embed(grad)) @ adjoint(result1)"
    " if not is_complex(self) else matmul(grad, grad1, result, result1)"
)
def linalg_eigh(self: Tensor, UPLO: str = "L") -> Inference:
    """(eigenvalues, eigenvectors) of each symmetric or Hermitian matrix, ascending; vectors are columns.

    Only the lower triangle is read ("U": the upper). The gradient of the vectors exists where the eigenvalues are
    distinct and the loss does not depend on the vectors' signs (of complex ones, phases).
    """
    need_square("linalg_eigh", self)
    _need_triangle("linalg_eigh", UPLO)
    values = new(self.shape[:-1], self.dtype.to_real(), self.device)
    return several(values, by_columns(self.shape, self.dtype, self.device))


@op(grad_fn="LinalgEighBackward0", exposed=(), batched=True, cost=matrices(4), out=Out.EXACT, autocast=CPU_FLOAT32)
@gradients("((s := linalg_eigh(self)[1]) * unsqueeze(grad)) @ adjoint(s)")
def linalg_eigvalsh(self: Tensor, UPLO: str = "L") -> Inference:
    """The eigenvalues of each symmetric or Hermitian matrix, ascending; see :func:`linalg_eigh`."""
    need_square("linalg_eigvalsh", self)
    _need_triangle("linalg_eigvalsh", UPLO)
    return new(self.shape[:-1], self.dtype.to_real(), self.device)


@op(results=2, grad_fn="LinalgEigBackward0", exposed=(), batched=True, cost=matrices(25), autocast=CPU_FLOAT32)
@gradients("linalg_solve(grad, grad1, result, result1)")
def linalg_eig(self: Tensor) -> Inference:
    """(eigenvalues, eigenvectors) of each square matrix, complex, in no order; vectors are columns of length 1."""
    need_square("linalg_eig", self)
    dtype = self.dtype.to_complex()
    return several(new(self.shape[:-1], dtype, self.device), by_columns(self.shape, dtype, self.device))


@op(grad_fn="LinalgEigBackward0", exposed=(), batched=True, cost=matrices(10), autocast=CPU_FLOAT32)
@gradients("linalg_solve((s := conj.ConjBackward0(transpose(linalg_eig(self)[1]))), unsqueeze(grad) * s)")
def linalg_eigvals(self: Tensor) -> Inference:
    """The eigenvalues of each square matrix, complex, in no order."""
    need_square("linalg_eigvals", self)
    return new(self.shape[:-1], self.dtype.to_complex(), self.device)


@op(
    results=3, grad_fn="LinalgSvdBackward0", exposed=(), batched=True, cost=matrices(10), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(
    "(matmul((a := (grad, grad1, grad2, result, result1, result2))) if self.ndim == 2"
    " else matmul.UnsafeViewBackward0(a)) if is_square(self) and not is_empty(self) else add(a)"
)
def linalg_svd(self: Tensor, full_matrices: bool = True) -> Inference:
    """(U, S, Vh) with ``self = U @ diag(S) @ Vh``: the singular values S descend, U and Vh are unitary.

    For ``(m, n)`` matrices and ``k = min(m, n)``, U is ``(m, m)`` and Vh ``(n, n)``; ``(m, k)`` and ``(k, n)`` without
    ``full_matrices``. Gradients of the vectors exist where the singular values are distinct and the loss does not
    depend on the vectors' signs (of complex ones, phases).
    """
    need_matrix("linalg_svd", self)
    *batch, m, n = self.shape
    k = smaller(m, n)
    u = by_columns((*batch, m, m if full_matrices else k), self.dtype, self.device)
    values = new((*batch, k), self.dtype.to_real(), self.device)
    return several(u, values, by_columns((*batch, n if full_matrices else k, n), self.dtype, self.device))


@op(grad_fn="LinalgSvdBackward0", exposed=(), batched=True, cost=matrices(4), out=Out.EXACT, autocast=CPU_FLOAT32)
@gradients("((s := linalg_svd(self)) * unsqueeze(grad)) @ s[2]")
def linalg_svdvals(self: Tensor) -> Inference:
    """The singular values of each matrix, descending."""
    need_matrix("linalg_svdvals", self)
    *batch, m, n = self.shape
    return new((*batch, smaller(m, n)), self.dtype.to_real(), self.device)


@op(
    grad_fn="LinalgPinvBackward0", differentiable=("self",), underived=("atol", "rtol"), exposed=(), cost=matrices(10),
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients("add(grad, result, self)")
def linalg_pinv(
    self: Tensor, atol: Tensor | Float | None = None, rtol: Tensor | Float | None = None, hermitian: bool = False
) -> Inference:
    """The pseudo-inverse (Moore-Penrose) of each matrix.

    Singular values at or below ``max(atol, rtol * largest)`` count as 0. ``rtol`` is by default the dtype's epsilon
    times the larger extent, 0 where an ``atol`` above 0 is given. Tensors hold one tolerance per matrix. With
    ``hermitian``, only the lower triangle is read.
    """
    (need_square if hermitian else need_matrix)("linalg_pinv", self)
    for name, tolerance in (("atol", atol), ("rtol", rtol)):
        if isinstance(tolerance, type(self)):
            if tolerance.dtype.is_complex:
                raise DTypeError(f"linalg_pinv: {name} is real, not {tolerance.dtype.name}")
            broadcast(tolerance.shape, self.shape[:-2])
    tensors = [t for t in (atol, rtol) if isinstance(t, type(self))]
    *batch, m, n = self.shape
    lead = broadcast(tuple(batch), *[t.shape for t in tensors])
    return new((*lead, n, m), self.dtype, common_device(self, *tensors))


@op(grad_fn="LinalgMatrixExpBackward0", batched=True, cost=matrices(25))
@gradients("narrow(narrow(matrix_exp(cat(cat(adjoint(self), grad), cat(c, adjoint(self))))))")
def matrix_exp(self: Tensor) -> Inference:
    """The exponential ``I + A + A @ A / 2 + ...`` of each square matrix. Halves are computed in float32."""
    need_square("matrix_exp", self, halves=True)
    return new(self.shape, self.dtype, self.device, compute=self.dtype)
