"""Products, powers and norms of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from gradwire_protocol.dtypes import BOOLEAN, FLOATING, OF_PYTHON_TYPES, DType, int64
from gradwire_protocol.errors import ArgumentError, DTypeError, ShapeError
from gradwire_protocol.promotion import join
from gradwire_protocol.shapes import canonical_dim

from ..dispatch.dispatch import call
from ..tensor.tensor import Tensor


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product."""
    return call("matmul", input, other)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of 3-vectors along ``dim``, with broadcasting."""
    return call("cross", input, other, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view."""
    return call("diagonal", A, offset, dim1, dim2)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Dot products of vectors along ``dim``, the first conjugated, with broadcasting.

    Raises:
        DTypeError: for dtypes that are not floating point or complex, or differ.
    """
    if x.dtype.category < FLOATING or x.dtype is not y.dtype:
        raise DTypeError(
            f"vecdot needs two floating point or complex tensors of one dtype, got {x.dtype.name} and {y.dtype.name}"
        )
    return call("sum", call("mul", call("conj", x) if x.is_complex() else x, y), dim)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """``A`` multiplied by itself ``n`` times; for negative ``n``, its inverse."""
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"matrix_power needs square matrices, got shape {list(A.shape)}")
    if n == 0:
        size = A.shape[-1]
        eye = call("eye", size, size, dtype=A.dtype, device=A._form.device)
        return call("clone", A, row_major=True).copy_(eye)
    if n < 0:
        A, n = call("inverse", A), -n
    if n == 1:
        return call("clone", A)
    result: Any = None
    while True:
        n, odd = divmod(n, 2)
        if odd:
            result = A if result is None else call("matmul", result, A)
        if not n:
            return result
        A = call("matmul", A, A)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices in the order that takes least multiplications. The first and the last may be
    vectors.

    Raises:
        ArgumentError: for fewer than two.
        ShapeError: when a tensor is no matrix, or neighbours do not fit.
    """
    chain = list(tensors)
    if len(chain) < 2:
        raise ArgumentError(f"multi_dot takes two matrices or more, got {len(chain)}")
    for i, x in enumerate(chain):
        ends = i in (0, len(chain) - 1)
        if x.ndim != 2 and not (ends and x.ndim == 1):
            raise ShapeError(f"multi_dot: tensor {i} of {len(chain)} has shape {list(x.shape)}, it must be a matrix")
        if x.dtype is not chain[0].dtype:
            raise DTypeError(f"multi_dot: tensor {i} is {x.dtype.name}, the first is {chain[0].dtype.name}")
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    if row:
        chain[0] = call("unsqueeze", chain[0], 0)
    if column:
        chain[-1] = call("unsqueeze", chain[-1], 1)
    extents = [chain[0].shape[0], *[x.shape[1] for x in chain]]
    for i, x in enumerate(chain[1:], 1):
        if x.shape[0] != extents[i]:
            raise ShapeError(f"multi_dot: {extents[i]} columns meet {x.shape[0]} rows at tensor {i}")
    result = _product(chain, cheapest(extents), 0, len(chain) - 1)
    if row and column:
        return call("reshape", result, ())
    return call("squeeze", result, 0) if row else call("squeeze", result, -1) if column else result


def cheapest(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each stretch of a chain of products, from the extents between its matrices."""
    count = len(extents) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k) for k in range(i, j)
            ]
            # Of two orders that cost the same, PyTorch multiplies three matrices from the left.
            cost[i, j], split[i, j] = min(costs) if count != 3 else min(costs, key=lambda found: (found[0], -found[1]))
    return split


def _product(chain: list[Tensor], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return chain[i]
    k = split[i, j]
    made: Tensor = call("mm", _product(chain, split, i, k), _product(chain, split, k + 1, j))
    return made


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to ``N - 1`` of each element, in a new last dimension; ``N`` is by default the last extent.

    Raises:
        ArgumentError: when ``N`` is not above 1.
        DTypeError: for bools.
    """
    if x.dtype.category == BOOLEAN:
        raise DTypeError("vander takes numbers, not bools")
    x = call("reshape", x, (1,)) if x.ndim == 0 else x
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise ArgumentError(f"vander: N must be above 1, it is {N}")
    column = call("unsqueeze", x, -1)
    powers = call("cumprod", call("expand", column, (*x.shape, max(count - 1, 0))), -1)
    return call("cat", [call("ones_like", column).to(powers.dtype), powers], -1)


def vector_norm(
    x: Tensor,
    ord: float | str = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """``sum(abs(x) ** ord) ** (1 / ord)`` over ``dim``, by default over all elements.

    ``ord`` may be infinite (largest or smallest magnitude) or 0 (how many elements are not 0).
    """
    dtype = OF_PYTHON_TYPES.get(dtype, dtype)  # type: ignore[call-overload]
    _check_dtype("vector_norm", x, dtype)
    if isinstance(dim, (tuple, list)):
        dim = tuple(dim)
    _check_empty(x, ord, dim)
    return call("norm", x, ord, dim, keepdim, dtype)


def _check_empty(x: Tensor, ord: Any, dim: Any) -> None:
    """Where there is no element, a norm is defined for orders that have a neutral element."""
    if not x._form.known or x.numel() or not (ord < 0 or ord == inf):
        return
    dims = range(x.ndim) if dim is None or dim == () else (dim,) if isinstance(dim, int) else dim
    if dim is None or dim == () or any(x.shape[canonical_dim(d, x.ndim)] == 0 for d in dims):
        raise ShapeError(f"the norm of order {ord} of no elements is not defined; the shape is {list(x.shape)}")


def _check_dtype(name: str, x: Tensor, dtype: DType | None) -> None:
    if x.dtype.category < FLOATING:
        raise DTypeError(f"{name} needs a floating point or complex tensor, got {x.dtype.name}")
    if dtype is None:
        return
    if dtype.category < FLOATING or dtype.is_complex != x.dtype.is_complex:
        raise DTypeError(f"{name}: dtype {dtype.name} does not fit a {x.dtype.name} tensor: both real or both complex")
    if join(x.dtype, dtype) is not dtype:
        raise DTypeError(f"{name}: {x.dtype.name} would be narrowed to dtype {dtype.name}")


def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: int | Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of each matrix in the dimensions ``dim``: "fro", "nuc", or 1, 2, inf and their negatives.

    Raises:
        ArgumentError: for another order.
        ShapeError: for less than two dimensions, or a norm of no elements that is not defined.
        DTypeError: for a dtype that is not floating point or complex.
    """
    _check_dtype("matrix_norm", A, dtype)
    if A.ndim < 2:
        raise ShapeError(f"matrix_norm needs at least 2 dimensions, got shape {list(A.shape)}")
    if isinstance(dim, int) or len(dim) != 2:
        raise ArgumentError(f"matrix_norm: dim names the two dimensions of the matrices, got {dim!r}")
    rows, columns = (canonical_dim(d, A.ndim) for d in dim)
    if rows == columns:
        raise ArgumentError(f"matrix_norm: dim names dimension {rows} twice")
    if isinstance(ord, str):
        if ord == "fro":
            return call("norm", A, 2, (rows, columns), keepdim, dtype)
        if ord != "nuc":
            raise ArgumentError(f"matrix_norm: ord is 'fro', 'nuc', 1, 2, inf or their negatives, not {ord!r}")
        values = _singular_values(A, rows, columns, dtype)
        return _kept(call("sum", values, -1), rows, columns, keepdim)
    size = abs(ord)
    if size not in (1, 2, inf):
        raise ArgumentError(f"matrix_norm: ord is 'fro', 'nuc', 1, 2, inf or their negatives, not {ord!r}")
    extreme = "amax" if ord > 0 else "amin"
    if size == 2:
        values = _singular_values(A, rows, columns, dtype)
        return _kept(call(extreme, values, -1), rows, columns, keepdim)
    if size == inf:
        rows, columns = columns, rows
    sums = call("norm", A, 1, rows, keepdim, dtype)
    return call(extreme, sums, columns if keepdim or columns < rows else columns - 1, keepdim)


def _singular_values(A: Tensor, rows: int, columns: int, dtype: DType | None) -> Tensor:
    if dtype is not None and dtype is not A.dtype:
        A = A.to(dtype)
    if (rows, columns) != (A.ndim - 2, A.ndim - 1):
        A = call("movedim", A, (rows, columns), (-2, -1))
    values: Tensor = call("linalg_svdvals", A)
    return values


def _kept(x: Tensor, rows: int, columns: int, keepdim: bool) -> Tensor:
    if not keepdim:
        return x
    for dim in sorted((rows, columns)):
        x = call("unsqueeze", x, dim)
    return x


def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """:func:`vector_norm` where ``dim`` is one dimension, :func:`matrix_norm` where it is two; without ``dim`` as many
    as the tensor has. Without an ``ord``, the 2-norm of all elements (of those in ``dim``).

    Raises:
        ShapeError: when neither norm can be meant.
    """
    if isinstance(dim, int):
        dim = (dim,)
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is not None and len(dim) not in (1, 2):
        raise ArgumentError(f"norm: with an ord, dim is one dimension or two, not {list(dim)}")
    if dim is None and A.ndim not in (1, 2):
        raise ShapeError(f"norm: without dim, an ord is for vectors or matrices, not for shape {list(A.shape)}")
    if (A.ndim if dim is None else len(dim)) == 2:
        return matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise ArgumentError(f"norm: ord {ord!r} is for matrices")
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number: the quotient of the largest and the smallest singular value for ``p`` None, 2 or -2, the
    product of the norms of order ``p`` of the matrix and its inverse for others. Infinite for singular matrices."""
    if A.ndim < 2:
        raise ShapeError(f"cond needs a matrix or a batch of them, got shape {list(A.shape)}")
    if p is None or p in (2, -2):
        values = call("linalg_svdvals", A)
        if values.shape[-1] == 0:
            return call("zeros", tuple(values.shape[:-1]), dtype=values.dtype, device=values._form.device)
        largest, smallest = call("select", values, -1, 0), call("select", values, -1, -1)
        return call("div", smallest, largest) if p == -2 else call("div", largest, smallest)
    if A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"cond: the order {p!r} needs square matrices, got shape {list(A.shape)}")
    if A.numel() == 0:
        return call("zeros", tuple(A.shape[:-2]), dtype=A.dtype.to_real(), device=A._form.device)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ArgumentError(f"cond: p is 'fro', 'nuc', 1, 2, inf or their negatives, not {p!r}")
    inverse, info = call("linalg_inv_ex", A)
    found = call("mul", matrix_norm(A, p), matrix_norm(inverse, p))
    return call("where", call("ne", info, 0), inf, found)


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """How many singular values (eigenvalues, with ``hermitian``) are larger than ``max(atol, rtol * largest)``.

    ``rtol`` is by default the dtype's epsilon times the larger extent, 0 where an ``atol`` above 0 is given. ``tol`` is
    an older name of ``atol`` with an ``rtol`` of 0. Tensors hold one tolerance per matrix.
    """
    A = A.detach()
    if A.ndim < 2:
        raise ShapeError(f"matrix_rank needs a matrix or a batch of them, got shape {list(A.shape)}")
    for name, tolerance in (("tol", tol), ("atol", atol), ("rtol", rtol)):
        if isinstance(tolerance, Tensor) and tolerance.is_complex():
            raise DTypeError(f"matrix_rank: {name} is real, not {tolerance.dtype.name}")
    if tol is not None:
        atol, rtol = tol, 0.0
    values = call("abs", call("linalg_eigvalsh", A)) if hermitian else call("linalg_svdvals", A)
    if values.numel() == 0:
        return call("zeros", tuple(values.shape[:-1]), dtype=int64, device=values._form.device)
    least: Any = 0.0 if atol is None else atol
    if rtol is None:
        rtol = _EPSILON[values.dtype.name] * max(A.shape[-2:])
        if isinstance(atol, Tensor):
            rtol = call("where", call("gt", atol, 0), 0.0, rtol)
        elif atol is not None and atol > 0:
            rtol = 0.0
    largest = call("amax", values, -1)
    if isinstance(rtol, Tensor) or rtol:
        relative = call("mul", largest, rtol)
        least = relative if not isinstance(least, Tensor) and not least else (
            call("maximum", relative, least) if isinstance(least, Tensor) else call("clamp_min", relative, least)
        )  # fmt: skip
    if isinstance(least, Tensor):
        least = call("unsqueeze", least, -1)
    return call("sum", call("gt", values, least), -1)


_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
