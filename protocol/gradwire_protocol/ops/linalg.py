"""Linear algebra on square matrices and batches of them: determinant, inverse, solve, Cholesky."""

from __future__ import annotations

from typing import Final

from ..autocast import CPU_FLOAT32
from ..costs import matrices, solution
from ..dtypes import DType
from ..errors import DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, new
from ..shapes import broadcast, common_device
from ..table import Out, Tensor, gradients, op
from .matrix import fits, need_same_dtype


def need_matrix(name: str, self: Meta, halves: bool = False) -> None:
    """Check for a matrix or a batch of matrices, of a dtype that LAPACK has.

    Raises:
        ShapeError: for fewer than two dimensions.
        DTypeError: for bools and integers.
        Unsupported: for float16 and bfloat16, unless ``halves`` are welcome.
    """
    if self.ndim < 2:
        raise ShapeError(f"{name} needs a matrix or a batch of them, got shape {list(self.shape)}")
    if not self.dtype.is_floating_point and not self.dtype.is_complex:
        raise DTypeError(f"{name} needs a floating point or complex tensor, got {self.dtype.name}")
    if self.dtype.is_low_precision and not halves:
        raise Unsupported(f"{name} is not available in {self.dtype.name}; cast to float32")


def need_square(name: str, self: Meta, halves: bool = False) -> None:
    """Check as :func:`need_matrix` does, and that the matrices are square."""
    need_matrix(name, self, halves)
    if not fits(self.shape[-1], self.shape[-2]):
        raise ShapeError(f"{name} needs square matrices, got shape {list(self.shape)}")


def column_major(shape: Shape) -> Shape:
    """Strides of a batch of matrices whose columns are contiguous, as LAPACK leaves them."""
    *batch, n, m = shape
    stride = [1, max(n, 1)]
    step = max(n, 1) * max(m, 1)
    for extent in reversed(batch):
        stride.insert(0, step)
        step *= max(extent, 1)
    return tuple(stride)


def by_columns(shape: Shape, dtype: DType, device: str) -> Inference:
    """A batch of matrices in new memory, column after column."""
    return new(shape, dtype, device, stride=column_major(shape))


OF_CHOLESKY: Final = (
    "linalg_solve_triangular((f := adjoint(result) if upper else result), linalg_solve_triangular((a := adjoint(f)),"
    " (s := tril(a @ tril(adjoint(grad) if upper else grad))) + adjoint(tril(s)))) * c"
)
IS_VECTOR: Final = "(other.ndim == 1 or other.ndim == 2 and self.ndim > 2)"
"""Whether the right side of a system is a vector, or a batch of them."""
OF_SOLVE: Final = {
    "self": (
        "-(unsqueeze((v := squeeze.SqueezeBackward1(linalg_solve((a := adjoint(self)), unsqueeze(grad)))))"
        f" * conj(unsqueeze(result))) if {IS_VECTOR}"
        " else -((b := linalg_solve(a, grad)) @ adjoint(result) if left else adjoint(result) @ b)"
    ),
    "other": f"v if {IS_VECTOR} else b",
}


@op(grad_fn="LinalgDetBackward0", batched=True, cost=matrices(1))
@gradients("unsqueeze(unsqueeze(grad * conj(result))) * adjoint(inverse(self))")
def det(self: Tensor) -> Inference:
    """The determinant of each square matrix. Float and complex dtypes of 32 bits and more."""
    need_square("det", self)
    return new(self.shape[:-2], self.dtype, self.device)


@op(results=1, internal=True, batched=True, cost=matrices(10))
def cofactor(self: Tensor) -> Inference:
    """The conjugated cofactors of each square matrix, ``det(A).conj() * inv(A).mH`` where that exists: the gradient of
    the determinant, for singular matrices too."""
    need_square("cofactor", self)
    return new(self.shape, self.dtype, self.device)


@op(results=2, grad_fn="LinalgSlogdetBackward0", exposed=("function", "method"), batched=True, cost=matrices(1))
@gradients("unsqueeze(unsqueeze(grad1)) * transpose(inverse(self))", saves="self result0")
def slogdet(self: Tensor) -> Inference:
    """Sign (for complex matrices: phase) and natural logarithm of the absolute value of each determinant."""
    need_square("slogdet", self)
    sign = new(self.shape[:-2], self.dtype, self.device).outs[0]
    return Inference((sign, new(self.shape[:-2], self.dtype.to_real(), self.device).outs[0]))


@op(grad_fn="LinalgInvExBackward0", batched=True, cost=matrices(1), autocast=CPU_FLOAT32)
@gradients("-((s := adjoint(result)) @ grad @ s)")
def inverse(self: Tensor) -> Inference:
    """The inverse of each square matrix. A singular one raises RuntimeError when the result is read."""
    need_square("inverse", self)
    return new(self.shape, self.dtype, self.device, stride=column_major(self.shape))


@op(grad_fn="LinalgSolveExBackward0", exposed=(), cost=solution(), out=Out.EXACT, autocast=CPU_FLOAT32)
@gradients(**OF_SOLVE, saves="self result", broadcasts=("self",))
def linalg_solve(self: Tensor, other: Tensor, left: bool = True) -> Inference:
    """The solution ``X`` of ``self @ X = other``, or with ``left=False`` of ``X @ self = other``.

    ``other`` is a vector if it has one dimension, or the batch shape of ``self`` and one extent more, and a matrix or
    a batch of matrices otherwise. Batches broadcast. A singular matrix raises RuntimeError when the result is read.
    """
    need_square("linalg_solve", self)
    need_same_dtype("linalg_solve", self, other)
    device = common_device(self, other)
    n = self.shape[-1]
    if is_vector(self, other):
        if not left:
            raise ShapeError("linalg_solve: with left=False, other must be a matrix")
        if not fits(other.shape[-1], n):
            raise ShapeError(f"linalg_solve: {n} unknowns but a right side of shape {list(other.shape)}")
        shape = broadcast(self.shape[:-1], other.shape)
        return new(shape, self.dtype, device, stride=column_major(shape) if len(shape) > 1 else None)
    at = -2 if left else -1
    if other.ndim < 2 or not fits(other.shape[at], n):
        raise ShapeError(
            f"linalg_solve: shapes {list(self.shape)} and {list(other.shape)} do not fit, {n} unknowns but "
            f"{other.shape[at] if other.ndim >= 2 else other.shape[0] if other.ndim else 'a number'}"
        )
    shape = (*broadcast(self.shape[:-2], other.shape[:-2]), *other.shape[-2:])
    return new(shape, self.dtype, device, stride=column_major(shape) if left else None)


def is_vector(self: Meta, other: Meta) -> bool:
    """Whether ``other`` is a vector (or a batch of vectors) of right-hand sides for ``self``."""
    return other.ndim == 1 or (other.ndim == self.ndim - 1 and other.shape == self.shape[:-1])


@op(
    grad_fn="LinalgCholeskyExBackward0", exposed=(), batched=True, cost=matrices(1), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(OF_CHOLESKY)
def linalg_cholesky(self: Tensor, upper: bool = False) -> Inference:
    """The lower triangular ``L`` with ``L @ L.mH`` equal to each Hermitian, positive definite matrix; ``L.mH`` with
    ``upper``. Only the lower triangle is read (with ``upper`` the upper one). A matrix that is not positive definite
    raises RuntimeError when the result is read."""
    need_square("linalg_cholesky", self)
    return new(self.shape, self.dtype, self.device, stride=column_major(self.shape))
