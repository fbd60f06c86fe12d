"""Elementwise functions that are a spelling of ops of the table."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import DTypeError

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def polygamma(n: int, input: Tensor) -> Any:
    """The ``n``-th derivative of digamma, for ``n >= 0``.

    Raises:
        ArgumentError: for a negative ``n``.
    """
    return call("polygamma", input, n)


def fill(input: Tensor, value: Any) -> Any:
    """A tensor like ``input`` with ``value``, a number or a 0-dim tensor, everywhere. Gradients flow to ``value``."""
    return call("fill_", call("clone", input), value)


def _wide(*operands: Any) -> DType:
    """The dtype of powers: complex128 if any operand is complex, else float64."""
    for operand in operands:
        if (isinstance(operand, Tensor) and operand.is_complex()) or isinstance(operand, complex):
            return dtypes.complex128
    return dtypes.float64


def float_power(input: Any, exponent: Any) -> Any:
    """Powers in float64 (complex128 for complex operands)."""
    wide = _wide(input, exponent)
    base, power = [x.to(wide) if isinstance(x, Tensor) else x for x in (input, exponent)]
    return call("pow", base, power)


def float_power_(self: Tensor, exponent: Any) -> Any:
    """:func:`float_power` in place, of a tensor that is of its dtype already.

    Raises:
        DTypeError: for a tensor of another dtype.
    """
    wide = _wide(self, exponent)
    if self.dtype is not wide:
        raise DTypeError(f"float_power_: powers are {wide.name}, which does not fit into {self.dtype.name}")
    return call("pow_", self, exponent.to(wide) if isinstance(exponent, Tensor) else exponent)


offer(polygamma, method=False)
offer(fill, method=False)
offer(float_power)
setattr(Tensor, float_power_.__name__, float_power_)
