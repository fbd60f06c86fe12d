"""LAPACK for batches: what NumPy does not offer, matrix by matrix on the host; and triangular systems."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..runtime.arrays import Array, Namespace
from .scientific import on_host, scipy_of


def each_matrix(xp: Namespace, function: Callable[..., Any], *arrays: Array, ranks: tuple[int, ...] = ()) -> Any:
    """``function(*matrices)`` for each matrix of batches that have one shape, its results stacked. Runs on the host.

    ``ranks`` says how many dimensions belong to one call, where an operand is not matrices. Of an empty batch the
    results' shapes are found by calling the function with zeros.
    """
    given = ranks or (2,) * len(arrays)
    return on_host(xp, _stacked, function, given, *arrays)


def _stacked(function: Callable[..., Any], ranks: tuple[int, ...], *arrays: Array) -> Any:
    batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    if not batch:
        return function(*arrays)
    flat = [a.reshape((-1, *a.shape[a.ndim - rank :])) for a, rank in zip(arrays, ranks, strict=True)]
    calls = [function(*matrices) for matrices in zip(*flat, strict=True)]
    if not calls:
        shapes = function(*[np.zeros(a.shape[1:], a.dtype) for a in flat])
        parts = shapes if isinstance(shapes, tuple) else (shapes,)
        empty = tuple(np.zeros((*batch, *np.shape(p)), np.asarray(p).dtype) for p in parts)
        return empty if isinstance(shapes, tuple) else empty[0]
    if not isinstance(calls[0], tuple):
        return np.stack(calls).reshape((*batch, *np.shape(calls[0])))
    stacked = [np.stack(parts) for parts in zip(*calls, strict=True)]
    return tuple(s.reshape((*batch, *s.shape[1:])) for s in stacked)


def routine(name: str, *arrays: Array) -> Any:
    """The LAPACK routine of this name for the arrays' dtype."""
    from scipy.linalg.lapack import get_lapack_funcs

    return get_lapack_funcs((name,), arrays)[0]


def is_finite(xp: Namespace, x: Array) -> bool:
    """Whether there is no infinity and no NaN, as far as it is looked: on a GPU that would wait for the device."""
    return xp is not np or bool(np.isfinite(x).all())


def singular_values(
    xp: Namespace, x: Array, full_matrices: bool = False, vectors: bool = True
) -> Array | tuple[Array, Array, Array]:
    """(U, S, Vh), or S without ``vectors``.

    Raises:
        numpy.linalg.LinAlgError: for infinities and NaN, with which LAPACK's iteration may never end.
    """
    if not is_finite(xp, x):
        raise np.linalg.LinAlgError("a matrix with infinities or NaN has no singular values")
    found = xp.linalg.svd(x, full_matrices=full_matrices, compute_uv=vectors)
    return tuple(found) if vectors else found


def raising(xp: Namespace) -> AbstractContextManager[Any]:
    """CuPy hands back NaN for a singular matrix unless it is told to look, which waits for the device."""
    if xp is np:
        return nullcontext()
    import cupyx

    context: AbstractContextManager[Any] = cupyx.errstate(linalg="raise")
    return context


def check_infos(xp: Namespace, infos: Array, meaning: str) -> None:
    """Raise for the first matrix whose LAPACK code is not 0. Reads the codes.

    Raises:
        numpy.linalg.LinAlgError: naming the matrix and the code.
    """
    codes = np.atleast_1d(infos if xp is np else xp.asnumpy(infos))
    failed = np.argwhere(codes != 0)
    if len(failed):
        first = tuple(int(i) for i in failed[0])
        which = f"matrix {list(first)} of the batch: " if np.ndim(infos) else ""
        raise np.linalg.LinAlgError(f"{which}{meaning.format(int(codes[first]))}")


def broadcast_batches(xp: Namespace, *arrays: Array) -> list[Array]:
    """The arrays with their leading dimensions, all but two, broadcast to one shape."""
    batch = np.broadcast_shapes(*[a.shape[:-2] for a in arrays])
    return [a if a.shape[:-2] == batch else xp.broadcast_to(a, (*batch, *a.shape[-2:])) for a in arrays]


def adjoint_of(xp: Namespace, x: Array) -> Array:
    """Each matrix of a batch transposed and conjugated."""
    return xp.conj(x.swapaxes(-1, -2))


def solve_triangle(xp: Namespace, a: Array, b: Array, upper: bool, left: bool = True, unit: bool = False) -> Any:
    """``X`` with ``a @ X = b`` (``X @ a = b`` with ``left=False``), where only a triangle of ``a`` counts. Broadcasts.

    On the CPU a zero on the diagonal gives infinities.
    """
    a, b = broadcast_batches(xp, a, b)
    if b.size == 0 or a.size == 0:
        return xp.zeros(b.shape, b.dtype)
    if xp is np:
        from scipy.linalg.blas import get_blas_funcs

        (trsm,) = get_blas_funcs(("trsm",), (a, b))

        def substitute(matrix: Array, right: Array) -> Array:
            return trsm(1.0, matrix, right, side=not left, lower=not upper, diag=unit)

        return each_matrix(xp, substitute, a, b)
    if not left:
        solved = solve_triangle(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unit)
        return solved.swapaxes(-1, -2)
    if a.ndim == 2:
        return scipy_of(xp, "linalg").solve_triangular(a, b, lower=not upper, unit_diagonal=unit)
    part = (xp.triu if upper else xp.tril)(a)
    if unit:
        part = part * (1 - xp.eye(a.shape[-1], dtype=a.dtype)) + xp.eye(a.shape[-1], dtype=a.dtype)
    return xp.linalg.solve(part, b)


def compact_reflectors(xp: Namespace, a: Array, tau: Array) -> tuple[Array, Array]:
    """(V, T) with ``H1 @ ... @ Hk = I - V @ T @ V^H`` for elementary reflectors as LAPACK packs them.

    The compact WY form of Schreiber and Van Loan (1989), with ``T = (I + D U)^-1 D`` for ``D = diag(tau)`` and U the
    strict upper triangle of ``V^H V``: defined for ``tau = 0``, too.
    """
    k = tau.shape[-1]
    v = xp.tril(a[..., :k], -1) + xp.eye(a.shape[-2], k, dtype=a.dtype)
    inner = xp.triu(xp.matmul(adjoint_of(xp, v), v), 1)
    eye = xp.eye(k, dtype=a.dtype)
    scale = tau[..., :, None]
    return v, solve_triangle(xp, eye + scale * inner, scale * eye, upper=True, unit=True)
