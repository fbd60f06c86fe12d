"""Elementwise arithmetic: sums, products, quotients, powers, extremes, selection, complex parts."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from gradwire_protocol.errors import GraphError

from .. import division, special
from ..axes import waits
from ..backends import native
from ..functional import F, conj
from ..registry import derivative, joint_derivative, kernel
from ..select import select
from ..tensor import Tensor


def conjugate(value: Any) -> Any:
    """The conjugate of a tensor or of a Python number."""
    return conj(value) if isinstance(value, Tensor) else value.conjugate()


def scaled(gradient: Any, factor: Any) -> Any:
    """A gradient times the conjugate of a Python number."""
    return gradient if factor == 1 else gradient * factor.conjugate()


def is_number(value: Any) -> bool:
    """Whether a kernel was given a Python number where it takes an array or a number."""
    return not hasattr(value, "dtype")


def fitted(number: Any, like: Any) -> Any:
    """A Python integer as an integer array's dtype holds it: beyond its range it wraps around, as in C."""
    if type(number) is int and not is_number(like) and like.dtype.kind in "iu":
        return np.asarray(number).astype(like.dtype)[()]
    return number


# Sums, products, quotients


def _multiple(xp: Any, x: Any, y: Any, alpha: Any) -> Any:
    """``alpha * y``, for ``x``. Two numbers are multiplied as Python does: NumPy's product of integers would wrap."""
    if alpha == 1:
        return y
    return fitted(y * alpha, x) if is_number(y) else xp.multiply(y, fitted(alpha, y))


@kernel("add")
def add(xp: Any, x: Any, y: Any, alpha: Any) -> Any:
    return xp.add(x, _multiple(xp, x, y, alpha))


@kernel("sub")
def sub(xp: Any, x: Any, y: Any, alpha: Any) -> Any:
    return xp.subtract(x, _multiple(xp, x, y, alpha))


@kernel("rsub")
def rsub(xp: Any, x: Any, y: Any, alpha: Any) -> Any:
    return xp.subtract(y, x if alpha == 1 else xp.multiply(x, fitted(alpha, x)))


derivative("add", self=lambda s, g: g, other=lambda s, g: scaled(g, s.alpha))
derivative("sub", self=lambda s, g: g, other=lambda s, g: scaled(-g, s.alpha))
derivative("rsub", self=lambda s, g: scaled(-g, s.alpha), other=lambda s, g: g)


@kernel("mul")
def mul(xp: Any, x: Any, y: Any) -> Any:
    return xp.multiply(x, y)


derivative(
    "mul",
    self=("other", lambda s, g: g * conjugate(s.other)),
    other=("self", lambda s, g: g * conj(s.self)),
)


def _check_divisor(xp: Any, x: Any, y: Any) -> None:
    """Integers have no infinity: dividing them by zero is an error. A GPU would have to be waited for to know."""
    if is_number(y):
        zero = y == 0
    else:
        zero = not waits(xp) and not bool(xp.all(y))
    if zero and (x if is_number(y) else y).dtype.kind in "iu":
        raise ZeroDivisionError


@kernel("div")
def div(xp: Any, x: Any, y: Any, rounding_mode: str | None) -> Any:
    if rounding_mode is None:
        return xp.true_divide(x, y)
    if rounding_mode == "floor":
        return floor_divide(xp, x, y)
    if x.dtype.kind == "f":
        return xp.trunc(xp.true_divide(x, y))
    _check_divisor(xp, x, y)
    quotient = xp.floor_divide(x, y)
    exact = quotient * y == x
    return quotient + (~exact & (quotient < 0))


def _is_float(x: Any, y: Any) -> bool:
    return (y if is_number(x) else x).dtype.kind == "f"


@kernel("floor_divide")
def floor_divide(xp: Any, x: Any, y: Any) -> Any:
    if _is_float(x, y):
        return division.floored(xp, x, y)
    _check_divisor(xp, x, y)
    return xp.floor_divide(x, y)


@kernel("remainder")
def remainder(xp: Any, x: Any, y: Any) -> Any:
    if _is_float(x, y):
        return division.remainder(xp, x, y)
    _check_divisor(xp, x, y)
    return xp.remainder(x, y)


@kernel("fmod")
def fmod(xp: Any, x: Any, y: Any) -> Any:
    if _is_float(x, y):
        return division.fmod(xp, x, y)
    _check_divisor(xp, x, y)
    return xp.fmod(x, y)


def _by_dividend(s: Any, g: Any) -> Any:
    return F.zeros_like(g) if s.rounding_mode is not None else g / conjugate(s.other)


def _by_divisor(s: Any, g: Any) -> Any:
    return F.zeros_like(g) if s.rounding_mode is not None else -g * conj(s.self / s.other / s.other)


def _no_derivative(s: Any, g: Any) -> Any:
    raise GraphError('floor_divide has no derivative: use div(..., rounding_mode="floor")')


def _quotient(s: Any, mode: str) -> Any:
    """The rounded quotient, of which ``self`` may be a number."""
    dividend = s.self if isinstance(s.self, Tensor) else F.full_like(s.other, s.self)
    return F.div(dividend, s.other, rounding_mode=mode)


derivative("div", self=("other", _by_dividend), other=("self other", _by_divisor))
derivative("floor_divide", self=_no_derivative, other=_no_derivative)
derivative("remainder", self=lambda s, g: g, other=("self other", lambda s, g: -g * _quotient(s, "floor")))
derivative("fmod", self=lambda s, g: g, other=("self other", lambda s, g: -g * _quotient(s, "trunc")))


@kernel("neg")
def neg(xp: Any, x: Any) -> Any:
    return xp.negative(x)


derivative("neg", self=lambda s, g: -g)
derivative("positive", self=lambda s, g: g)


@kernel("addcmul")
def addcmul(xp: Any, x: Any, first: Any, second: Any, value: Any) -> Any:
    return xp.add(x, xp.multiply(_times(xp, first, value), second))


@kernel("addcdiv")
def addcdiv(xp: Any, x: Any, first: Any, second: Any, value: Any) -> Any:
    return xp.add(x, xp.true_divide(_times(xp, first, value), second))


def _times(xp: Any, x: Any, value: Any) -> Any:
    if value == 1:
        return x
    return xp.multiply(x, int(value) if x.dtype.kind in "iu" else value)


derivative(
    "addcmul",
    self=lambda s, g: g,
    tensor1=("tensor2", lambda s, g: scaled(g * conj(s.tensor2), s.value)),
    tensor2=("tensor1", lambda s, g: scaled(g * conj(s.tensor1), s.value)),
)
derivative(
    "addcdiv",
    self=lambda s, g: g,
    tensor1=("tensor2", lambda s, g: scaled(g / conj(s.tensor2), s.value)),
    tensor2=(
        "tensor1 tensor2", lambda s, g: scaled(-g * conj(s.tensor1 / (s.tensor2 * s.tensor2)), s.value)
    ),
)  # fmt: skip


@kernel("lerp")
def lerp(xp: Any, x: Any, end: Any, weight: Any) -> Any:
    """From the nearer end, so that neither end is missed by rounding."""
    way = end - x
    if is_number(weight):
        return x + way * weight if abs(weight) < 0.5 else end - way * (1 - weight)
    return xp.where(xp.abs(weight) < 0.5, x + way * weight, end - way * (1 - weight))


derivative(
    "lerp",
    self=("weight", lambda s, g: g * conjugate(1 - s.weight)),
    end=("weight", lambda s, g: g * conjugate(s.weight)),
    weight=("self end", lambda s, g: g * conj(s.end - s.self)),
)


# Powers

_LONGEST_CHAIN = 32


@kernel("pow")
def pow(xp: Any, base: Any, exponent: Any) -> Any:
    if is_number(exponent):
        return _to_number(xp, base, exponent)
    if exponent.dtype.kind == "b":
        return xp.logical_or(base, xp.logical_not(exponent))
    if exponent.dtype.kind in "iu":
        power = xp.power(base, xp.maximum(exponent, 0))
        odd = 1 - 2 * (exponent & 1)
        return xp.where(exponent < 0, (base == 1) + (base == -1) * odd, power)
    return xp.power(base, exponent)


@kernel("square")
def square(xp: Any, x: Any) -> Any:
    return xp.multiply(x, x)


def _to_number(xp: Any, x: Any, n: Any) -> Any:
    """``x ** n``. Multiplying beats ``power`` up to 500 times where x has negative elements."""
    kind = x.dtype.kind
    if kind == "b":
        return xp.logical_or(x, not n)
    if kind in "iu":
        return _chain(xp, x, n) if n <= 3 else xp.power(x, n)
    if isinstance(n, complex):
        if n.imag:
            return xp.power(x, n)
        n = n.real
    if n == 0.5:
        return xp.sqrt(x)
    if n == -0.5:
        return xp.reciprocal(xp.sqrt(x))
    whole = float(n).is_integer()
    if whole:
        if 0 <= n <= _LONGEST_CHAIN:
            return _chain(xp, x, int(n))
        if -_LONGEST_CHAIN <= n < 0:
            return xp.reciprocal(_chain(xp, x, -int(n)))
    if kind == "c" or n != n:
        return xp.power(x, n)
    power = xp.power(xp.absolute(x), n)
    if whole or math.isinf(n):
        return xp.copysign(power, x) if n % 2 == 1 else power
    return select(xp, (x < 0) & (x > -math.inf), math.nan, power)


def _chain(xp: Any, x: Any, n: int) -> Any:
    """``x ** n`` for a whole n, not negative, by squaring."""
    if n == 0:
        return xp.ones_like(x)
    result = None
    while True:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if not n:
            return result.copy() if result is x else result
        x = x * x


def _by_base(s: Any, g: Any) -> Any:
    n = s.exponent
    if not isinstance(n, Tensor):
        return F.zeros_like(g) if n == 0 else g * conj(s.self ** (n - 1) * n)
    return F.where(n == 0, 0, g * conj(s.self ** (n - 1) * n))


def _by_exponent(s: Any, g: Any) -> Any:
    base, n, result = s.self, s.exponent, s.result
    from_zero = (F.real(n) if n.dtype.is_complex else n) >= 0
    if isinstance(base, Tensor):
        if result.dtype.is_complex and not base.dtype.is_complex:
            base = F.to(base, dtype=result.dtype)
        return F.where((base == 0) & from_zero, 0, g * conj(result * F.log(base)))
    if base == 0:
        return F.where(from_zero, 0, g * conj(result * -math.inf))
    if isinstance(base, complex) or result.dtype.is_complex:
        return g * conj(result * cmath.log(base))
    return g * (result * (math.log(base) if base > 0 else math.nan))


derivative("pow", self=("self exponent", _by_base), exponent=("self exponent result", _by_exponent))
derivative("square", self=("self", lambda s, g: g * conj(s.self * 2)))


# Magnitude and sign


@kernel("abs")
def abs_(xp: Any, x: Any) -> Any:
    return xp.absolute(x)


@kernel("sign", "sgn")
def sign(xp: Any, x: Any) -> Any:
    if x.dtype.kind == "b":
        return x.copy()
    if x.dtype.kind != "c":
        return (x > 0).astype(x.dtype) - (x < 0)  # 0 for NaN, as in PyTorch
    size = xp.absolute(x)
    return xp.where(size == 0, 0, x / size)


def _by_direction(s: Any, g: Any) -> Any:
    """Only what is across the direction turns it: the gradient less its part along the direction, over the size."""
    if not s.self.dtype.is_complex:
        return F.zeros_like(g)
    size = F.abs(s.self)
    along = F.real(g * conj(s.result)) * s.result
    return F.where(size == 0, 0, (g - along) / size)


derivative("abs", self=("self", lambda s, g: g * F.sgn(s.self)))
derivative("sign", self=lambda s, g: F.zeros_like(g))
derivative("sgn", self=("self result", _by_direction))


@kernel("copysign")
def copysign(xp: Any, x: Any, y: Any) -> Any:
    return xp.copysign(x, y)


derivative(
    "copysign",
    self=("self result", lambda s, g: g * F.where(s.self == 0, 0, s.result / s.self)),
    other=lambda s, g: F.zeros_like(g),
)


# Extremes and selection


@kernel("maximum")
def maximum(xp: Any, x: Any, y: Any) -> Any:
    return xp.maximum(x, y)


@kernel("minimum")
def minimum(xp: Any, x: Any, y: Any) -> Any:
    return xp.minimum(x, y)


@kernel("fmax")
def fmax(xp: Any, x: Any, y: Any) -> Any:
    return xp.fmax(x, y)


@kernel("fmin")
def fmin(xp: Any, x: Any, y: Any) -> Any:
    return xp.fmin(x, y)


def _shared(g: Any, tie: Any, lost: Any) -> Any:
    return F.where(tie, g / 2, F.where(lost, 0, g))


derivative(
    "maximum",
    self=("self other", lambda s, g: _shared(g, s.self == s.other, s.self < s.other)),
    other=("self other", lambda s, g: _shared(g, s.self == s.other, s.self > s.other)),
)
derivative(
    "minimum",
    self=("self other", lambda s, g: _shared(g, s.self == s.other, s.self > s.other)),
    other=("self other", lambda s, g: _shared(g, s.self == s.other, s.self < s.other)),
)
derivative(
    "fmax",
    self=("self other", lambda s, g: F.where((s.self >= s.other) | F.isnan(s.other), g, 0)),
    other=("self other", lambda s, g: F.where((s.self >= s.other) | F.isnan(s.other), 0, g)),
)
derivative(
    "fmin",
    self=("self other", lambda s, g: F.where((s.self <= s.other) | F.isnan(s.other), g, 0)),
    other=("self other", lambda s, g: F.where((s.self <= s.other) | F.isnan(s.other), 0, g)),
)


@kernel("clamp")
def clamp(xp: Any, x: Any, low: Any, high: Any) -> Any:
    if is_number(low) and is_number(high) and low is not None and high is not None:
        return xp.clip(x, low, high)
    if low is not None:
        x = xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


@kernel("clamp_min")
def clamp_min(xp: Any, x: Any, low: Any) -> Any:
    return xp.maximum(x, low)


@kernel("clamp_max")
def clamp_max(xp: Any, x: Any, high: Any) -> Any:
    return xp.minimum(x, high)


def _within(s: Any, g: Any) -> Any:
    if s.max is None:
        return F.where(s.self >= s.min, g, 0)
    if s.min is None:
        return F.where(s.self <= s.max, g, 0)
    return F.where((s.self >= s.min) & (s.self <= s.max), g, 0)


def _by_min(s: Any, g: Any) -> Any:
    below = s.self < s.min
    return F.where(below if s.max is None else below & (s.min < s.max), g, 0)


def _by_max(s: Any, g: Any) -> Any:
    above = s.self > s.max
    return F.where(above if s.min is None else above | (s.max < s.min), g, 0)


derivative(
    "clamp",
    self=("self min max", _within),
    min=("self min max", _by_min),
    max=("self min max", _by_max),
)
derivative(
    "clamp_min",
    self=("self min", lambda s, g: F.where(s.self >= s.min, g, 0)),
    min=("self min", lambda s, g: F.where(s.self < s.min, g, 0)),
)
derivative(
    "clamp_max",
    self=("self max", lambda s, g: F.where(s.self <= s.max, g, 0)),
    max=("self max", lambda s, g: F.where(s.self > s.max, g, 0)),
)


@kernel("where", announced=True)
def where(xp: Any, out: Any, condition: Any, x: Any, y: Any) -> Any:
    dtype = native(out.dtype)
    sides = [v if is_number(v) or v.dtype == dtype else v.astype(dtype) for v in (x, y)]
    return select(xp, condition if condition.dtype.kind == "b" else condition != 0, *sides)


derivative(
    "where",
    self=("condition", lambda s, g: F.where(s.condition, g, 0)),
    other=("condition", lambda s, g: F.where(s.condition, 0, g)),
)


@kernel("masked_fill")
def masked_fill(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    if not is_number(value):
        value = value.astype(x.dtype)
    elif x.dtype.kind in "iub":
        value = bool(value) if x.dtype.kind == "b" else int(value)
    return select(xp, mask, value, x)


derivative(
    "masked_fill",
    self=("mask", lambda s, g: F.masked_fill(g, s.mask, 0)),
    value=("mask", lambda s, g: F.where(s.mask, g, 0)),
)


# Functions of two numbers


@kernel("atan2")
def atan2(xp: Any, x: Any, y: Any) -> Any:
    return xp.arctan2(x, y)


@joint_derivative("atan2", "self other")
def _(s: Any, g: Any) -> Any:
    norm = s.self * s.self + s.other * s.other
    g = g * F.where(norm == 0, 0, F.reciprocal(norm))
    return g * s.other, g * -s.self


@kernel("hypot")
def hypot(xp: Any, x: Any, y: Any) -> Any:
    return xp.hypot(x, y)


derivative(
    "hypot",
    self=("self result", lambda s, g: g * (s.self / s.result)),
    other=("other result", lambda s, g: g * (s.other / s.result)),
)


@kernel("logaddexp")
def logaddexp(xp: Any, x: Any, y: Any) -> Any:
    return special.logaddexp(xp, x, y) if x.dtype.kind == "c" else xp.logaddexp(x, y)


@kernel("logaddexp2")
def logaddexp2(xp: Any, x: Any, y: Any) -> Any:
    return xp.logaddexp2(x, y)


derivative(
    "logaddexp",
    self=("self other", lambda s, g: g / conj(F.exp(s.other - s.self) + 1)),
    other=("self other", lambda s, g: g / conj(F.exp(s.self - s.other) + 1)),
)
derivative(
    "logaddexp2",
    self=("self other", lambda s, g: g / (F.exp2(s.other - s.self) + 1)),
    other=("self other", lambda s, g: g / (F.exp2(s.self - s.other) + 1)),
)


# Complex numbers


@kernel("conj", "conj_physical")
def conj_physical(xp: Any, x: Any) -> Any:
    return xp.conj(x) if x.dtype.kind == "c" else x.copy()


@kernel("angle")
def angle(xp: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return xp.arctan2(x.imag, x.real)
    return xp.where(x != x, x, xp.where(x < 0, math.pi, 0))


@kernel("complex")
def complex_(xp: Any, x: Any, y: Any) -> Any:
    x, y = xp.broadcast_arrays(x, y)
    out = xp.empty(x.shape, "F" if x.dtype.itemsize == 4 else "D")
    out.real = x
    out.imag = y
    return out


@kernel("polar")
def polar(xp: Any, size: Any, angle: Any) -> Any:
    return complex_(xp, size * xp.cos(angle), size * xp.sin(angle))


def _by_complex(s: Any, g: Any) -> Any:
    """The direction across: a step along it changes the angle and not the size."""
    if not s.self.dtype.is_complex:
        return F.zeros_like(g)
    size = F.abs(s.self)
    return F.where(size == 0, 0, g * (s.self * 1j / (size * size)))


derivative("conj", self=lambda s, g: conj(g))
derivative("conj_physical", self=lambda s, g: conj(g))
derivative("real", self=lambda s, g: g)
derivative("imag", self=lambda s, g: g * 1j)
derivative("view_as_real", self=lambda s, g: F.view_as_complex(F.contiguous(g)))
derivative("view_as_complex", self=lambda s, g: F.view_as_real(g))
derivative("angle", self=("self", _by_complex))
derivative("complex", real=lambda s, g: g, imag=lambda s, g: F.imag(g))
derivative(
    "polar",
    abs=("result", lambda s, g: g * conj(F.sgn(s.result))),
    angle=("result", lambda s, g: g * conj(s.result * 1j)),
)
