"""exp, tanh, erf and log for kernels: polynomials without branches, so that loops over them become vector code.

The float32 ones are within 3e-7 of the true value, relative to it or to 1; float64 takes the C library's, which no loop
makes vectors of, so kernels that need them are for float32 mostly. NaN gives NaN; beyond what float32 holds, exp gives
0 and infinity. Imports Numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, overload

from .emitter import Context
from .native import Element, inline

F = np.float32

_LOG2_E = F(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = F(0.693359375), F(-2.12194440e-4)
_LEAST, _MOST = F(-86.98), F(88.72283)
_ROUNDING = F(12582912.0)
"""1.5 * 2**23: what is added to it keeps no fraction, and its integer is in the low bits."""


@intrinsic
def _as_bits(context: Context, x: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), emit


@intrinsic
def _as_float(context: Context, x: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), emit


_bits: Any = _as_bits
_float: Any = _as_float


@inline
def bits_of(x: np.float32) -> np.int32:
    """The 32 bits of a float32, as an integer."""
    return _bits(x)


@inline
def float_of(x: np.int32) -> np.float32:
    """The float32 with these 32 bits."""
    return _float(np.int32(x))


@inline
def _exp32(x: Element) -> Element:
    # After Cephes: 2**n times a polynomial of what is left.
    turned = x * _LOG2_E + _ROUNDING
    n = turned - _ROUNDING
    r = x - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    p = p * (r * r) + r + F(1)
    # Two factors: 2**128 alone is more than float32 holds. What is left of _LEAST would be too small for the first.
    half = _float((_bits(turned) << np.int32(23)) + np.int32(0x3F000000))
    y = p * half * F(2)
    y = F(0) if x < _LEAST else y
    return F(np.inf) if x > _MOST else y


@inline
def _tanh32(x: Element) -> Element:
    x = F(-9) if x < F(-9) else x
    x = F(9) if x > F(9) else x
    s = x * x
    p = F(-2.76076847742355e-16)
    p = p * s + F(2.00018790482477e-13)
    p = p * s + F(-8.60467152213735e-11)
    p = p * s + F(5.12229709037114e-08)
    p = p * s + F(1.48572235717979e-05)
    p = p * s + F(6.37261928875436e-04)
    p = p * s + F(4.89352455891786e-03)
    q = F(1.19825839466702e-06)
    q = q * s + F(1.18534705686654e-04)
    q = q * s + F(2.26843463243900e-03)
    q = q * s + F(4.89352518554385e-03)
    y = x * p / q
    y = F(-1) if y < F(-1) else y
    return F(1) if y > F(1) else y


@inline
def _erf32(x: Element) -> Element:
    x = F(-3.92) if x < F(-3.92) else x
    x = F(3.92) if x > F(3.92) else x
    s = x * x
    p = F(-2.72614225801306e-10)
    p = p * s + F(2.77068142495902e-08)
    p = p * s + F(-2.10102402082508e-06)
    p = p * s + F(-5.69250639462346e-05)
    p = p * s + F(-7.34990630326855e-04)
    p = p * s + F(-2.95459980854025e-03)
    p = p * s + F(-1.60960333262415e-02)
    q = F(-1.45660718464996e-05)
    q = q * s + F(-2.13374055278905e-04)
    q = q * s + F(-1.68282697438203e-03)
    q = q * s + F(-7.37332916720468e-03)
    q = q * s + F(-1.42647390514189e-02)
    y = x * p / q
    # It ends at 1 exactly: 1 - erf(x) is multiplied with a large number elsewhere.
    y = F(-1) if x <= F(-3.92) else y
    y = F(1) if x >= F(3.92) else y
    y = F(-1) if y < F(-1) else y
    return F(1) if y > F(1) else y


@inline
def _exp64(x: Element) -> Element:
    return math.exp(x)


@inline
def _tanh64(x: Element) -> Element:
    return math.tanh(x)


@inline
def _erf64(x: Element) -> Element:
    return math.erf(x)


def exp(x: Element) -> Element:
    """e to the power of x."""
    raise TypeError("for compiled code only")


def tanh(x: Element) -> Element:
    """The hyperbolic tangent."""
    raise TypeError("for compiled code only")


def erf(x: Element) -> Element:
    """The error function."""
    raise TypeError("for compiled code only")


Elementwise = Callable[[Element], Element]


def _by_dtype(name: Elementwise, single: Elementwise, double: Elementwise) -> None:
    @overload(name, jit_options={"forceinline": True, "error_model": "numpy"})
    def choose(x: Any) -> Any:  # its spelling of the parameters is compared, annotations and all
        function = single if x == types.float32 else double

        def run(x: Any) -> Any:
            return function(x)

        return run


_by_dtype(exp, _exp32, _exp64)
_by_dtype(tanh, _tanh32, _tanh64)
_by_dtype(erf, _erf32, _erf64)
