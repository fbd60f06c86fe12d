"""Quotients of floats rounded to whole numbers, and what they leave.

``x / y`` may round up to a whole number that the exact quotient does not reach, so the remainder comes first:
``fmod`` is exact. It also is the slowest of NumPy's loops. Float64 tells a quotient of float32 numbers from every
whole number below 2**28, in a tenth of the time; and above, float32 cannot tell whole numbers apart itself.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ..runtime.arrays import Array, Namespace
from .select import select

_EXACT_BELOW: Final = float(1 << 28)


def _wide(xp: Namespace, x: Array | float, y: Array | float, below: float) -> tuple[Array, Array, Array] | None:
    """Both operands and their quotient in float64, where they are finite and it is ``below``; else ``None``. A Python
    number is rounded to float32 first, as that is the dtype of the operation."""
    if xp is not np or any(hasattr(v, "dtype") and v.dtype.char != "f" for v in (x, y)):
        return None
    x, y = (np.asarray(v, np.float32).astype(np.float64) for v in (x, y))
    quotient = x / y
    settled = np.isfinite(y).all() and (np.abs(quotient) < below).all()
    return (x, y, quotient) if settled else None


def floored(xp: Namespace, x: Array | float, y: Array | float) -> Array:
    """The quotient rounded down."""
    wide = _wide(xp, x, y, math.inf)
    if wide is not None:
        return np.floor(wide[2]).astype(np.float32)
    rest = xp.fmod(x, y)
    quotient = (x - rest) / y
    quotient = quotient - _is_off(rest, y)
    whole = xp.floor(quotient)
    whole = whole + (quotient - whole > 0.5)
    plain = xp.true_divide(x, y)
    whole = xp.copysign(whole, plain)
    if not hasattr(y, "dtype"):  # a number: CuPy's where takes no bool for a mask
        return plain if y == 0 else whole
    return xp.where(y == 0, plain, whole)


def remainder(xp: Namespace, x: Array | float, y: Array | float) -> Array:
    """What is left of ``x``, with the sign of ``y``."""
    wide = _wide(xp, x, y, _EXACT_BELOW)
    if wide is not None:
        return (wide[0] - np.floor(wide[2]) * wide[1]).astype(np.float32)
    rest = xp.fmod(x, y)
    return select(xp, _is_off(rest, y), rest + y, rest)


def fmod(xp: Namespace, x: Array, y: Array | float) -> Array:
    """What is left of ``x``, with its sign."""
    wide = _wide(xp, x, y, _EXACT_BELOW)
    if wide is not None:
        return (wide[0] - np.trunc(wide[2]) * wide[1]).astype(np.float32)
    return xp.fmod(x, y)


def _is_off(rest: Array, divisor: Array | float) -> Array:
    """Where what ``fmod`` left, which has the dividend's sign, does not have the divisor's."""
    return (rest != 0) & ((rest < 0) != (divisor < 0))
