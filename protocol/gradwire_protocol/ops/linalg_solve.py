"""Systems of linear equations, beside those in ``linalg``: triangular, factored, with error codes, in least squares."""

from __future__ import annotations

from typing import Final

from ..autocast import CPU_FLOAT32
from ..costs import matrices, solution
from ..dtypes import int32, int64
from ..errors import ArgumentError, ShapeError
from ..meta import UNKNOWN, Inference, new, several
from ..shapes import broadcast, common_device
from ..table import Float, Out, Tensor, gradients, op
from .linalg import IS_VECTOR, OF_SOLVE, by_columns, is_vector, linalg_solve, need_matrix, need_square
from .linalg_factorization import smaller, solution_shape
from .matrix import fits, need_same_dtype

_LEAVES_RESIDUALS: Final = "driver != 'gelsy' and not is_square(self) and not is_wide(self)"


def _as_matrix(operand: str) -> str:
    return f"(unsqueeze({operand}) if {IS_VECTOR} else {operand})"


@op(
    results=2, grad_fn="LinalgInvExBackward0", exposed=(), batched=True, cost=matrices(1), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients("-((s := adjoint(result)) @ grad @ s)")
def linalg_inv_ex(self: Tensor, check_errors: bool = False) -> Inference:
    """(inverse, info): the inverse of each square matrix, and 0 for each, or where the diagonal of its LU factorization
    has its first 0, counted from 1; the inverse is then NaN. With ``check_errors`` that raises."""
    need_square("linalg_inv_ex", self)
    info = new(self.shape[:-2], int32, self.device)
    return several(by_columns(self.shape, self.dtype, self.device), info)


@op(results=2, grad_fn="LinalgSolveExBackward0", exposed=(), cost=solution(), out=Out.EXACT, autocast=CPU_FLOAT32)
@gradients(**OF_SOLVE, saves="self result0")
def linalg_solve_ex(self: Tensor, other: Tensor, left: bool = True, check_errors: bool = False) -> Inference:
    """(solution, info): as :func:`linalg_solve`, and 0 for each matrix, or where the diagonal of its LU factorization
    has its first 0, counted from 1; the solution is then NaN. With ``check_errors`` that raises."""
    solution = linalg_solve(self, other, left)
    return several(solution, new(self.shape[:-2], int32, self.device))


@op(grad_fn="LinalgSolveTriangularBackward0", exposed=(), cost=solution(), out=Out.EXACT)
@gradients(
    self=(
        "tril((s := -((g := linalg_solve_triangular(adjoint(self), grad)) @ adjoint(result) if left"
        " else adjoint(result) @ g))) if not upper else triu(s)"
    ),
    other="g",
    saves="self result",
    broadcasts=True,
)
def linalg_solve_triangular(
    self: Tensor, other: Tensor, upper: bool, left: bool = True, unitriangular: bool = False
) -> Inference:
    """The solution ``X`` of ``self @ X = other``, or with ``left=False`` of ``X @ self = other``, by substitution.

    Only the upper (or lower) triangle of ``self`` is read, and not its diagonal with ``unitriangular``. Batches
    broadcast. A zero on the diagonal gives infinities.
    """
    need_square("linalg_solve_triangular", self)
    need_same_dtype("linalg_solve_triangular", self, other)
    shape = solution_shape("linalg_solve_triangular", self, other, left)
    return by_columns(shape, self.dtype, common_device(self, other))


@op(
    results=2, grad_fn="TriangularSolveBackward0", exposed=(), cost=solution("A", "self"), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(
    self="(g := linalg_solve_triangular(conj(A) if transpose else adjoint(A), grad))",
    A=(
        "(triu((s := -(conj(result) @ transpose(g) if transpose else g @ adjoint(result)))) if upper"
        " else tril(s)) + grad1"
    ),
    saves="A result0",
    broadcasts=("self",),
)
def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Inference:
    """(solution, copy of A): the ``X`` of ``A @ X = self`` for triangles A, or with ``transpose`` of ``A.mT @ X``."""
    need_square("triangular_solve", A)
    need_same_dtype("triangular_solve", A, self)
    shape = solution_shape("triangular_solve", A, self, True)
    device = common_device(A, self)
    copy = by_columns((*shape[:-2], *A.shape[-2:]), A.dtype, device)
    return several(by_columns(shape, A.dtype, device), copy)


@op(grad_fn="CholeskySolveBackward0", cost=solution("input2", "self"), autocast=CPU_FLOAT32)
@gradients(
    self="(g := cholesky_solve(grad, input2))",
    input2="-((s := (t := g @ adjoint(result)) + adjoint(t)) @ input2 if not upper else input2 @ s)",
    saves="input2 result",
    broadcasts=("self",),
)
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Inference:
    """The solution ``X`` of ``A @ X = self``, where ``input2`` is A's Cholesky factor. Batches broadcast."""
    need_square("cholesky_solve", input2)
    need_same_dtype("cholesky_solve", self, input2)
    shape = solution_shape("cholesky_solve", input2, self, True)
    return by_columns(shape, self.dtype, common_device(self, input2))


@op(grad_fn="CholeskyInverseBackward0", batched=True, cost=matrices(1), autocast=CPU_FLOAT32)
@gradients("-((s := result @ (grad + adjoint(grad)) @ result) @ self if not upper else self @ s)")
def cholesky_inverse(self: Tensor, upper: bool = False) -> Inference:
    """The inverse of A, where ``self`` is A's Cholesky factor."""
    need_square("cholesky_inverse", self)
    return by_columns(self.shape, self.dtype, self.device)


@op(results=4, constant=(3,), grad_fn="LinalgLstsqBackward0", exposed=(), cost=solution(times=4), autocast=CPU_FLOAT32)
@gradients(
    self=f"add(grad, grad1, other, result, self) if {_LEAVES_RESIDUALS} else add(grad, other, self)",
    other=(
        f"squeeze.SqueezeBackward1((b := (h := adjoint(linalg_pinv(self)) @ {_as_matrix('grad')}) + unsqueeze(grad1)"
        f" * c * ({_as_matrix('other')} - self @ {_as_matrix('result')}) if {_LEAVES_RESIDUALS} else h)) if {IS_VECTOR}"
        " else b"
    ),
    saves="self other result0",
)
def linalg_lstsq(self: Tensor, other: Tensor, rcond: Float | None = None, driver: str = "gelsy") -> Inference:
    """(solution, residuals, rank, singular values) of ``self @ X = other`` in least squares, of least norm.

    ``self`` is ``(m, n)``, ``other`` ``(m, k)``, or ``(m,)`` per matrix. The drivers are LAPACK's by name: "gels" takes
    the matrices to have full rank, the others count singular values above ``rcond`` times the largest (by default the
    dtype's epsilon times the larger extent). Residuals, the squared norms of the columns of ``other - self @ X``, are
    there for ``m > n`` and other drivers than "gelsy", and NaN for matrices that lack full rank; the rank is not there
    for "gels", the singular values are there for "gelsd" and "gelss". What is not there is empty.
    """
    need_matrix("linalg_lstsq", self)
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise ArgumentError(f"linalg_lstsq: driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', not {driver!r}")
    if other.ndim < 1:
        raise ShapeError("linalg_lstsq: the right side is a number, it needs at least one dimension")
    if not 0 <= self.ndim - other.ndim <= 1:
        raise ShapeError(
            f"linalg_lstsq: the right side has as many dimensions as the matrices, or one less; shapes are "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    vector = is_vector(self, other)
    *batch, m, n = self.shape
    rows = other.shape[-1] if vector or other.ndim < 2 else other.shape[-2]
    if not fits(rows, m):
        raise ShapeError(f"linalg_lstsq: matrices of {m} rows do not match right sides of {rows}")
    need_same_dtype("linalg_lstsq", self, other)
    device = common_device(self, other)
    lead = broadcast(self.shape[:-2], other.shape[: -1 if vector else -2])
    columns = () if vector else other.shape[-1:]
    overdetermined = UNKNOWN in (m, n) or m > n
    residuals = (*lead, *(columns or (1,))) if overdetermined and driver != "gelsy" else (0,)
    rank = (0,) if driver == "gels" else tuple(batch)
    values = (*batch, smaller(m, n)) if driver in ("gelsd", "gelss") else (0,)
    real = self.dtype.to_real()
    solution = (*lead, n, *columns)
    return several(
        new(solution, self.dtype, device) if vector else by_columns(solution, self.dtype, device),
        new(residuals, real, device),
        new(rank, int64, device),
        new(values, real, device),
    )
