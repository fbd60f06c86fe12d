"""Norms, distances and powers in wide precision."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The vector norm of all elements or along dimensions; ``"fro"`` is the norm of order 2."""
    if p == "nuc":
        from ..linalg.norms import matrix_norm

        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return call("norm", input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Any:
    """The norm of the difference."""
    return call("norm", call("sub", input, other), p)


def frobenius_norm(input: Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The norm of order 2, of all elements or over the dimensions of matrices."""
    return call("norm", input, 2, dim, keepdim)


def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """The sum of the singular values of matrices."""
    return norm(input, "nuc", dim, keepdim)


def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Any:
    """The norms of the slices along ``dim``, of all for -1; other dimensions are kept with extent 1."""
    if dim == -1:
        return call("norm", v, pow)
    return call("norm", v, pow, tuple(i for i in range(v.ndim) if i != dim % v.ndim), True)


for _function in (
    norm,
    dist,
):
    offer(_function)
offer(frobenius_norm, method=False)
offer(nuclear_norm, method=False)
offer(norm_except_dim, method=False)
