"""Matrices as products of simpler ones: Cholesky, QR, LU, LDL, and the packed forms that LAPACK leaves them in."""

from __future__ import annotations

from typing import Final

from ..autocast import CPU_FLOAT32
from ..costs import matrices, solution
from ..dtypes import int32
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import UNKNOWN, Inference, Meta, Shape, new, several
from ..shapes import broadcast, common_device
from ..table import Out, Tensor, gradients, op
from .linalg import OF_CHOLESKY, by_columns, need_matrix, need_square
from .matrix import fits, need_same_dtype


def smaller(a: int, b: int) -> int:
    """The smaller of two extents, unknown where one is."""
    return UNKNOWN if UNKNOWN in (a, b) else min(a, b)


def _infos(self: Meta) -> Inference:
    """One LAPACK code per matrix of a batch."""
    return new(self.shape[:-2], int32, self.device)


def _of_lu(lower: str, upper: str, by_lower: str, by_upper: str) -> str:
    """The gradient of a square matrix, by those of its factors."""
    inner = f"tril(adjoint({lower}) @ {by_lower}) + triu({by_upper} @ adjoint({upper}))"
    return f"linalg_solve_triangular(adjoint({lower}), linalg_solve_triangular(adjoint({upper}), {inner}))"


_SQUARE: Final = _of_lu("result1", "result2", "grad1", "grad2")
_WIDE: Final = _of_lu(
    "result1", "(u := narrow(result2))",
    "(grad1 - (x := linalg_solve_triangular(adjoint(result1), (p := narrow(grad2)))) @ adjoint(u))", "p",
)  # fmt: skip
_TALL: Final = _of_lu(
    "(l := narrow(result1))", "result2", "(q := narrow(grad1))",
    "(grad2 - adjoint(l) @ (y := linalg_solve_triangular(adjoint(result2), q)))",
)  # fmt: skip


@op(
    results=2, grad_fn="LinalgCholeskyExBackward0", exposed=(), batched=True, cost=matrices(1), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(OF_CHOLESKY)
def linalg_cholesky_ex(self: Tensor, upper: bool = False, check_errors: bool = False) -> Inference:
    """(factor, info): the Cholesky factor as of :func:`linalg_cholesky`, and for each matrix 0, or the order of the
    leading minor that is not positive definite; the factor is then unspecified. With ``check_errors`` it raises."""
    need_square("linalg_cholesky_ex", self)
    return several(by_columns(self.shape, self.dtype, self.device), _infos(self))


@op(results=2, grad_fn="LinalgQrBackward0", exposed=(), cost=matrices(1), out=Out.EXACT, autocast=CPU_FLOAT32)
@gradients(
    "linalg_solve_triangular((r := adjoint(result1)), result @ ((t := triu((i := grad1 @ r"
    " - adjoint(result) @ grad))) + adjoint(t) + diag_embed(diagonal(i))) + grad)"
    " if keeps_shape(self) and not is_empty(self) and not is_complex(self)"
    " else linalg_solve_triangular(grad, grad1, result, result1)"
    " if keeps_shape(self) and not is_empty(self) else cat(grad, grad1, result, result1)"
)
def linalg_qr(self: Tensor, mode: str = "reduced") -> Inference:
    """(Q, R) with ``self = Q @ R``, the columns of Q orthonormal and R upper triangular.

    For ``(m, n)`` matrices and ``k = min(m, n)``, Q is ``(m, k)`` and R ``(k, n)`` in mode "reduced"; "complete" gives
    a square Q and an R of ``(m, n)``; "r" gives an empty Q. There is no gradient in mode "r", nor in mode "complete"
    where ``m > n``: RuntimeError.
    """
    need_matrix("linalg_qr", self)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"linalg_qr: mode must be 'reduced', 'complete' or 'r', not {mode!r}")
    *batch, m, n = self.shape
    k = m if mode == "complete" else smaller(m, n)
    q = new((0,), self.dtype, self.device) if mode == "r" else by_columns((*batch, m, k), self.dtype, self.device)
    made = several(q, by_columns((*batch, k, n), self.dtype, self.device))
    if mode == "r":
        return made.without_derivative("there is no gradient with mode='r', which leaves out the Q that it needs")
    if mode == "complete" and m > n:
        return made.without_derivative(f"mode='complete' has no gradient for more rows than columns, {m} > {n}")
    return made


@op(results=2, exposed=(), batched=True, cost=matrices(1), autocast=CPU_FLOAT32)
def geqrf(self: Tensor) -> Inference:
    """(a, tau): the QR factorization as LAPACK packs it. R is the upper triangle of ``a``, below it are the vectors of
    the elementary reflectors whose factors are ``tau``. Not differentiable: see :func:`linalg_qr`."""
    need_matrix("geqrf", self)
    *batch, m, n = self.shape
    packed = by_columns(self.shape, self.dtype, self.device)
    return several(packed, new((*batch, smaller(m, n)), self.dtype, self.device))


def _need_reflectors(name: str, self: Meta, tau: Meta) -> None:
    need_matrix(name, self)
    need_same_dtype(name, self, tau)
    *batch, m, n = self.shape
    if tau.ndim != self.ndim - 1 or not all(fits(a, b) for a, b in zip(tau.shape[:-1], batch, strict=True)):
        raise ShapeError(
            f"{name}: tau needs one vector per matrix; reflectors of {list(self.shape)} do not match {list(tau.shape)}"
        )
    k = tau.shape[-1]
    if UNKNOWN not in (m, n, k) and not k <= n:
        raise ShapeError(f"{name}: {k} factors tau for {n} columns of reflectors")


@op(grad_fn="LinalgHouseholderProductBackward0", exposed=(), batched=True, cost=matrices(2), autocast=CPU_FLOAT32)
@gradients(
    self="c if is_empty(self) else cat(grad, self, tau)",
    tau="c if is_empty(self) else add(grad, self, tau)",
    saves="self tau",
)
def linalg_householder_product(self: Tensor, tau: Tensor) -> Inference:
    """The first n columns of the product ``H1 @ H2 @ ... @ Hk`` of elementary reflectors ``I - tau_i v_i v_i^H``.

    ``self`` is ``(m, n)`` with ``m >= n``; column i holds ``v_i`` below the diagonal, which counts as 1. ``tau`` is
    ``(k,)`` with ``k <= n``. So the packed results of :func:`geqrf` give Q.
    """
    _need_reflectors("linalg_householder_product", self, tau)
    m, n = self.shape[-2:]
    if UNKNOWN not in (m, n) and m < n:
        raise ShapeError(f"linalg_householder_product needs at least as many rows as columns, got {list(self.shape)}")
    return by_columns(self.shape, self.dtype, common_device(self, tau))


@op(grad_fn="OrmqrBackward0", exposed=(), batched=True, cost=solution(), out=Out.EXACT, autocast=CPU_FLOAT32)
@gradients(
    self="tril(grad, other, self, tau)",
    tau="add(grad, other, self, tau)",
    other="ormqr(self, tau, grad)",
    saves="self tau other",
)
def ormqr(self: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Inference:
    """``Q @ other``, or with ``left=False`` ``other @ Q``; with ``transpose``, Q's adjoint in its place.

    Q is the square product of the elementary reflectors in ``self`` and ``tau``, as :func:`geqrf` packs them.
    """
    _need_reflectors("ormqr", self, tau)
    need_same_dtype("ormqr", self, other)
    if other.ndim != self.ndim or not all(fits(a, b) for a, b in zip(other.shape[:-2], self.shape[:-2], strict=True)):
        raise ShapeError(f"ormqr: batches of {list(self.shape)} and {list(other.shape)} differ")
    m, inner = self.shape[-2], other.shape[-2 if left else -1]
    if not fits(m, inner):
        raise ShapeError(f"ormqr: reflectors of {m} rows do not match the extent {inner} in {list(other.shape)}")
    if UNKNOWN not in (m, tau.shape[-1]) and tau.shape[-1] > m:
        raise ShapeError(f"ormqr: {tau.shape[-1]} reflectors in {m} dimensions")
    return by_columns(other.shape, other.dtype, common_device(self, tau, other))


def _need_pivoting(name: str, self: Meta, pivot: bool) -> None:
    need_matrix(name, self)
    if not pivot and self.device == "cpu":
        raise ArgumentError(f"{name}: without pivoting there is no factorization on the CPU")
    if not pivot:
        raise Unsupported(f"{name} without pivoting is not available; leave pivot=True")


@op(results=3, constant=(0,), grad_fn="LinalgLuBackward0", exposed=(), batched=True, cost=matrices(1), out=Out.EXACT)
@gradients(
    f"c @ ({_SQUARE} if is_square(self) else cat({_WIDE}, x) if is_wide(self) else cat({_TALL}, y))",
    saves="result0 result1 result2",
)
def linalg_lu(self: Tensor, pivot: bool = True) -> Inference:
    """(P, L, U) with ``self = P @ L @ U``: a permutation, a lower triangle with ones on its diagonal, and an upper one.
    For ``(m, n)`` matrices and ``k = min(m, n)`` they are ``(m, m)``, ``(m, k)`` and ``(k, n)``."""
    _need_pivoting("linalg_lu", self, pivot)
    return _unpacked(self, True, True)


@op(
    results=3, grad_fn="LinalgLuFactorExBackward0", exposed=(), batched=True, cost=matrices(1), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(
    "matmul(grad, result) if self.ndim == 2 else matmul.UnsafeViewBackward0(grad, result)", saves="result0 result1"
)
def linalg_lu_factor_ex(self: Tensor, pivot: bool = True, check_errors: bool = False) -> Inference:
    """(LU, pivots, info): L below the diagonal of LU and U above; ``pivots`` the row, counted from 1, that was swapped
    with each; ``info`` 0, or where U's diagonal has its first 0, counted from 1. With ``check_errors`` that raises."""
    _need_pivoting("linalg_lu_factor_ex", self, pivot)
    *batch, m, n = self.shape
    pivots = new((*batch, smaller(m, n)), int32, self.device)
    return several(by_columns(self.shape, self.dtype, self.device), pivots, _infos(self))


@op(
    results=3, constant=(0,), grad_fn="LuUnpackBackward0", differentiable=("self",), exposed=(), batched=True,
    cost=matrices(1), out=Out.EXACT,
)  # fmt: skip
@gradients(
    "((l := tril(grad1)) if not unpack_pivots or keeps_shape(self) or not is_wide(self)"
    " else pad(l)) + ((u := triu(grad2)) if not unpack_pivots or keeps_shape(self) or is_wide(self)"
    " else pad(u))"
)
def lu_unpack(self: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Inference:
    """(P, L, U) from the packed form of :func:`linalg_lu_factor_ex`. What is not asked for is empty."""
    need_matrix("lu_unpack", self)
    if unpack_pivots and pivots.dtype is not int32:
        raise DTypeError(f"lu_unpack: pivots must be int32, got {pivots.dtype.name}")
    fitting = (*self.shape[:-2], smaller(*self.shape[-2:]))
    if unpack_pivots and pivots.shape != fitting and UNKNOWN not in (*pivots.shape, *self.shape):
        raise ShapeError(f"lu_unpack: pivots of shape {list(pivots.shape)} do not fit LU of {list(self.shape)}")
    return _unpacked(self, unpack_pivots, unpack_data)


def _unpacked(self: Meta, permutation: bool, triangles: bool) -> Inference:
    *batch, m, n = self.shape
    k = smaller(m, n)
    shapes: list[Shape] = [(*batch, m, m)] if permutation else [(0,)]
    shapes += [(*batch, m, k), (*batch, k, n)] if triangles else [(0,), (0,)]
    return several(*[new(shape, self.dtype, self.device) for shape in shapes])


@op(
    grad_fn="LinalgLuSolveBackward0", differentiable=("self", "other"), exposed=(), cost=solution(), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(
    self=(
        "tril((r := c @ -((g @ adjoint(result) if left else adjoint(result) @ g) if not adjoint"
        " else (result @ adjoint(g) if left else adjoint(g) @ result))) @ adjoint((u := lu_unpack(self))[2]))"
        " + triu(adjoint(u[1]) @ r)"
    ),
    other="(g := linalg_lu_solve(self, grad))",
    saves="self pivots result",
    broadcasts=("self",),
)
def linalg_lu_solve(self: Tensor, pivots: Tensor, other: Tensor, left: bool = True, adjoint: bool = False) -> Inference:
    """The solution ``X`` of ``A @ X = other`` (``X @ A = other`` with ``left=False``, A's adjoint in its place with
    ``adjoint``), where ``self`` and ``pivots`` are A's packed LU factorization. Batches broadcast."""
    need_square("linalg_lu_solve", self)
    need_same_dtype("linalg_lu_solve", self, other)
    if pivots.dtype is not int32:
        raise DTypeError(f"linalg_lu_solve: pivots must be int32, got {pivots.dtype.name}")
    if pivots.shape != self.shape[:-1] and UNKNOWN not in (*pivots.shape, *self.shape):
        raise ShapeError(f"linalg_lu_solve: pivots of shape {list(pivots.shape)} do not fit LU of {list(self.shape)}")
    shape = solution_shape("linalg_lu_solve", self, other, left)
    device = common_device(self, pivots, other)
    # With left=False the transposed system is solved, and its columns are the solution's rows.
    return by_columns(shape, self.dtype, device) if left else new(shape, self.dtype, device)


def solution_shape(name: str, self: Meta, other: Meta, left: bool) -> Shape:
    """The shape of the solution of a system of square matrices ``self`` with matrices ``other`` at its right side.

    Raises:
        ShapeError: naming the extents that do not meet, or the batches that do not broadcast.
    """
    if other.ndim < 2:
        raise ShapeError(f"{name}: the right side must be a matrix or a batch of them, got shape {list(other.shape)}")
    at = -2 if left else -1
    if not fits(other.shape[at], self.shape[-1]):
        raise ShapeError(
            f"{name}: shapes {list(self.shape)} and {list(other.shape)} do not fit, {self.shape[-1]} unknowns but "
            f"{other.shape[at]}"
        )
    return (*broadcast(self.shape[:-2], other.shape[:-2]), *other.shape[-2:])


@op(results=3, exposed=(), batched=True, cost=matrices(1), out=Out.EXACT)
def linalg_ldl_factor_ex(self: Tensor, hermitian: bool = False, check_errors: bool = False) -> Inference:
    """(LD, pivots, info): the factorization ``P @ L @ D @ L.mT @ P.mT`` of symmetric matrices (``L.mH`` of Hermitian
    ones), packed as LAPACK's sytrf and hetrf leave it in the lower triangle. Only that triangle is read. ``info`` is 0,
    or the first block of D that is singular, counted from 1; with ``check_errors`` that raises. Not differentiable."""
    need_square("linalg_ldl_factor_ex", self)
    pivots = new(self.shape[:-1], int32, self.device)
    return several(by_columns(self.shape, self.dtype, self.device), pivots, _infos(self))


@op(exposed=(), cost=solution(), out=Out.EXACT)
def linalg_ldl_solve(self: Tensor, pivots: Tensor, other: Tensor, hermitian: bool = False) -> Inference:
    """The solution ``X`` of ``A @ X = other``, where ``self`` and ``pivots`` are A's packed LDL factorization. Batches
    broadcast. Not differentiable."""
    need_square("linalg_ldl_solve", self)
    need_same_dtype("linalg_ldl_solve", self, other)
    if pivots.shape != self.shape[:-1] and UNKNOWN not in (*pivots.shape, *self.shape):
        raise ShapeError(f"linalg_ldl_solve: pivots of shape {list(pivots.shape)} do not fit LD of {list(self.shape)}")
    if pivots.dtype.category != int32.category:
        raise DTypeError(f"linalg_ldl_solve: pivots must be integers, got {pivots.dtype.name}")
    shape = solution_shape("linalg_ldl_solve", self, other, True)
    return by_columns(shape, self.dtype, common_device(self, pivots, other))
