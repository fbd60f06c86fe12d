"""Systems of linear equations, inverses, least squares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gradwire_protocol.errors import ArgumentError, ShapeError

from .._core.dispatch.dispatch import call
from .._core.surface.methods import named_result, returning
from .._core.tensor.tensor import Tensor

InvEx = named_result("linalg_inv_ex", "inverse", "info")
SolveEx = named_result("linalg_solve_ex", "result", "info")
Lstsq = named_result("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


def inv(A: Tensor) -> Tensor:
    """The inverse of each square matrix. A singular one raises :class:`LinAlgError` when the result is read."""
    return call("inverse", A)


@returning(InvEx)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """(inverse, info): :func:`inv` with an error code per matrix, 0 for success, in place of an error."""
    return InvEx(*call("linalg_inv_ex", A, check_errors))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution of ``A @ X == B``, of ``X @ A == B`` without ``left``. ``B`` holds matrices, or one vector each."""
    return call("linalg_solve", A, B, left)


@returning(SolveEx)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """(result, info): :func:`solve` with an error code per matrix in place of an error."""
    return SolveEx(*call("linalg_solve_ex", A, B, left, check_errors))


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The solution of ``A @ X == B`` (``X @ A == B`` without ``left``) by substitution; one triangle of A counts."""
    return call("linalg_solve_triangular", A, B, upper, left, unitriangular)


@returning(Lstsq)
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """(solution, residuals, rank, singular_values) of ``A @ X == B`` in least squares.

    ``driver`` is "gels", "gelsy" (the default on the CPU), "gelsd" or "gelss" and says what of the results is there.

    Raises:
        ShapeError: when the rows do not fit.
        ArgumentError: for another driver.
    """
    if driver is None:
        driver = "gelsy" if A._form.device == "cpu" else "gels"
    elif A._form.device != "cpu" and driver != "gels":
        raise ArgumentError(f"lstsq: on a GPU the driver is 'gels', not {driver!r}")
    return Lstsq(*call("linalg_lstsq", A, B, rcond, driver))


def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """The pseudo-inverse: singular values up to ``max(atol, rtol * largest)`` count as 0. ``rcond`` is an older name of
    ``rtol``, and the only one by position."""
    return call("linalg_pinv", A, atol, rtol if rcond is None else rcond, hermitian)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse under ``tensordot``: of the first ``ind`` dimensions as rows, the others as columns.

    Raises:
        ShapeError: when these have not as many elements.
        ArgumentError: when ``ind`` is not positive.
    """
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind counts the dimensions that are rows, it is {ind}")
    first, rest = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(first) != prod(rest):
        raise ShapeError(
            f"tensorinv: the first {ind} dimensions of {list(A.shape)} have {prod(first)} elements, the others "
            f"{prod(rest)}"
        )
    found = call("inverse", call("reshape", A, (prod(rest), prod(first))))
    return call("reshape", found, (*rest, *first))


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The ``X`` with ``tensordot(A, X, X.ndim) == B``; ``dims`` of A are moved to its end first.

    Raises:
        ShapeError: when A is not square in this sense, or B does not fit it.
    """
    if dims is not None:
        A = call("movedim", A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    if prod(shape) != B.numel() or prod(tuple(A.shape[: B.ndim])) != B.numel():
        raise ShapeError(
            f"tensorsolve: A of shape {list(A.shape)} is no square matrix whose rows are B, of shape {list(B.shape)}"
        )
    size = prod(shape)
    found = call("linalg_solve", call("reshape", A, (size, size)), call("reshape", B, (size,)))
    return call("reshape", found, shape)
