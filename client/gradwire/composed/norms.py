"""Norms, distances and powers in wide precision."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes

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


def float_power(input: Any, exponent: Any) -> Any:
    """Powers in float64 (complex128 for complex operands)."""
    operands = [input, exponent]
    wide = dtypes.float64
    for operand in operands:
        if (isinstance(operand, Tensor) and operand.is_complex()) or isinstance(operand, complex):
            wide = dtypes.complex128
    base, power = [x.to(wide) if isinstance(x, Tensor) else x for x in operands]
    return call("pow", base, power)


for _function in (
    norm,
    dist,
    float_power,
):
    offer(_function)
