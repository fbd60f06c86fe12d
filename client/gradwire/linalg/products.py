"""Products and powers of matrices, and what is close to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.dtypes import BOOLEAN, FLOATING
from gradwire_protocol.errors import ArgumentError, DTypeError, ShapeError

from ..dispatch import call
from ..tensor import Tensor


def matmul(input: Tensor, other: Tensor) -> Any:
    """The matrix product."""
    return call("matmul", input, other)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """The cross product of 3-vectors along ``dim``, with broadcasting."""
    return call("cross", input, other, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices, as a view."""
    return call("diagonal", A, offset, dim1, dim2)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    """Dot products of vectors along ``dim``, the first conjugated, with broadcasting.

    Raises:
        DTypeError: for dtypes that are not floating point or complex, or differ.
    """
    if x.dtype.category < FLOATING or x.dtype is not y.dtype:
        raise DTypeError(
            f"vecdot needs two floating point or complex tensors of one dtype, got {x.dtype.name} and {y.dtype.name}"
        )
    return call("sum", call("mul", call("conj", x) if x.is_complex() else x, y), dim)


def matrix_power(A: Tensor, n: int) -> Any:
    """``A`` multiplied by itself ``n`` times; for negative ``n``, its inverse."""
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"matrix_power needs square matrices, got shape {list(A.shape)}")
    if n == 0:
        size = A.shape[-1]
        eye = call("eye", size, size, dtype=A.dtype, device=A._meta.device)
        return call("clone", A).copy_(eye)
    if n < 0:
        A, n = call("inverse", A), -n
    if n == 1:
        return call("clone", A)
    result = None
    while True:
        n, odd = divmod(n, 2)
        if odd:
            result = A if result is None else call("matmul", result, A)
        if not n:
            return result
        A = call("matmul", A, A)


def multi_dot(tensors: Sequence[Tensor]) -> Any:
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


def vander(x: Tensor, *, N: int | None = None) -> Any:
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
