"""Elementwise functions, and other names of functions."""

from __future__ import annotations

from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import DTypeError
from gradwire_protocol.out import Out

from ..dispatch.dispatch import call
from ..surface.methods import FUNCTIONS, offer
from ..tensor.tensor import Tensor


def polygamma(n: int, input: Tensor) -> Tensor:
    """The ``n``-th derivative of digamma, for ``n >= 0``.

    Raises:
        ArgumentError: for a negative ``n``.
    """
    return call("polygamma", input, n)


def fill(input: Tensor, value: Tensor | complex) -> Tensor:
    """A tensor like ``input`` with ``value``, a number or a 0-dim tensor, everywhere. Gradients flow to ``value``."""
    return call("fill_", call("clone", input), value)


def _wide(*operands: Any) -> DType:
    """The dtype of powers: complex128 if any operand is complex, else float64."""
    for operand in operands:
        if (isinstance(operand, Tensor) and operand.is_complex()) or isinstance(operand, complex):
            return dtypes.complex128
    return dtypes.float64


def float_power(input: Tensor | complex, exponent: Tensor | complex) -> Tensor:
    """Powers in float64 (complex128 for complex operands)."""
    wide = _wide(input, exponent)
    base, power = [x.to(wide) if isinstance(x, Tensor) else x for x in (input, exponent)]
    return call("pow", base, power)


def float_power_(self: Tensor, exponent: Tensor | complex) -> Tensor:
    """:func:`float_power` in place, of a tensor that is of its dtype already.

    Raises:
        DTypeError: for a tensor of another dtype.
    """
    wide = _wide(self, exponent)
    if self.dtype is not wide:
        raise DTypeError(f"float_power_: powers are {wide.name}, which does not fit into {self.dtype.name}")
    return call("pow_", self, exponent.to(wide) if isinstance(exponent, Tensor) else exponent)


offer(polygamma, method=False, out=Out.PLAIN)
offer(fill, method=False)
offer(float_power, out=Out.EXACT)
setattr(Tensor, float_power_.__name__, float_power_)


ALIASES: Final = {
    "absolute": "abs", "negative": "neg", "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "clip": "clamp",
    "swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim", "concat": "cat", "concatenate": "cat",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "fix": "trunc", "ger": "outer", "row_stack": "vstack",
}  # fmt: skip


def offer_aliases() -> None:
    """Offer what is known by the other names, too; called when all functions are there."""
    for alias, name in ALIASES.items():
        for suffix in ("", "_"):
            if name + suffix in FUNCTIONS:
                FUNCTIONS.setdefault(alias + suffix, FUNCTIONS[name + suffix])
            if hasattr(Tensor, name + suffix) and not hasattr(Tensor, alias + suffix):
                setattr(Tensor, alias + suffix, getattr(Tensor, name + suffix))
