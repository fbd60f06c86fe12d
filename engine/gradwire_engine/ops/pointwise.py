"""Elementwise arithmetic: sums, products, quotients, powers, extremes, selection."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from gradwire_protocol.errors import GraphError
from gradwire_protocol.meta import Meta

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, flat_at_zero, forward_derivative, joint_derivative, kernel, passes_on
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics import division, special
from ..numerics.axes import waits
from ..numerics.select import select
from ..runtime.arrays import Array, Namespace, native


def conjugate(value: Any) -> Any:
    """The conjugate of a tensor or of a Python number."""
    return conj(value) if isinstance(value, Tensor) else value.conjugate()


def scaled(gradient: Tensor, factor: complex) -> Tensor:
    """A gradient times the conjugate of a Python number."""
    return gradient if factor == 1 else gradient * factor.conjugate()


def is_number(value: Array | complex | None) -> bool:
    """Whether a kernel was given a Python number where it takes an array or a number."""
    return not hasattr(value, "dtype")


def fitted(number: complex, like: Array) -> Array | complex:
    """A Python integer as an integer array's dtype holds it: beyond its range it wraps around, as in C."""
    if type(number) is int and not is_number(like) and like.dtype.kind in "iu":
        return np.asarray(number).astype(like.dtype)[()]
    return number


# Sums, products, quotients


def _multiple(xp: Namespace, x: Array, y: Any, alpha: complex) -> Any:
    """``alpha * y``, for ``x``. Two numbers are multiplied as Python does: NumPy's product of integers would wrap."""
    if alpha == 1:
        return y
    return fitted(y * alpha, x) if is_number(y) else xp.multiply(y, fitted(alpha, y))


@kernel("add")
def add(xp: Namespace, x: Array, y: Array | float, alpha: complex) -> Array:
    return xp.add(x, _multiple(xp, x, y, alpha))


@kernel("sub")
def sub(xp: Namespace, x: Array, y: Array | float, alpha: complex) -> Array:
    return xp.subtract(x, _multiple(xp, x, y, alpha))


@kernel("rsub")
def rsub(xp: Namespace, x: Array, y: Array | float, alpha: complex) -> Array:
    return xp.subtract(y, x if alpha == 1 else xp.multiply(x, fitted(alpha, x)))


derivative("add", self=lambda s, g: g, other=lambda s, g: scaled(g, s.alpha))
derivative("sub", self=lambda s, g: g, other=lambda s, g: scaled(-g, s.alpha))
derivative("rsub", self=lambda s, g: scaled(-g, s.alpha), other=lambda s, g: g)


@kernel("mul")
def mul(xp: Namespace, x: Array, y: Array | complex) -> Array:
    return xp.multiply(x, y)


derivative("mul", self=("other", lambda s, g: g * conjugate(s.other)), other=("self", lambda s, g: g * conj(s.self)))
passes_on("mul", "other")


def _check_divisor(xp: Namespace, x: Array, y: Any) -> None:
    """Integers have no infinity: dividing them by zero is an error. A GPU would have to be waited for to know."""
    if is_number(y):
        zero = y == 0
    else:
        zero = not waits(xp) and not bool(xp.all(y))
    if zero and (x if is_number(y) else y).dtype.kind in "iu":
        raise ZeroDivisionError


@kernel("div")
def div(xp: Namespace, x: Array, y: Any, rounding_mode: str | None) -> Array:
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
def floor_divide(xp: Namespace, x: Array, y: Any) -> Array:
    if _is_float(x, y):
        return division.floored(xp, x, y)
    _check_divisor(xp, x, y)
    return xp.floor_divide(x, y)


@kernel("remainder")
def remainder(xp: Namespace, x: Array, y: Any) -> Array:
    if _is_float(x, y):
        return division.remainder(xp, x, y)
    _check_divisor(xp, x, y)
    return xp.remainder(x, y)


@kernel("fmod")
def fmod(xp: Namespace, x: Array, y: Any) -> Array:
    if _is_float(x, y):
        return division.fmod(xp, x, y)
    _check_divisor(xp, x, y)
    return xp.fmod(x, y)


def _by_dividend(s: Saved, g: Tensor) -> Tensor:
    return F.zeros_like(g) if s.rounding_mode is not None else g / conjugate(s.other)


def _by_divisor(s: Saved, g: Tensor) -> Tensor:
    return F.zeros_like(g) if s.rounding_mode is not None else -g * conj(s.self / s.other / s.other)


def _no_derivative(s: Saved, g: Tensor) -> Any:
    raise GraphError('floor_divide has no derivative; use div(..., rounding_mode="floor")')


def _quotient(s: Saved, mode: str) -> Tensor:
    """The rounded quotient, of which ``self`` may be a number."""
    dividend = s.self if isinstance(s.self, Tensor) else F.full_like(s.other, s.self)
    return F.div(dividend, s.other, rounding_mode=mode)


derivative("div", self=("other", _by_dividend), other=("self other", _by_divisor))
passes_on("div", "other")
derivative("floor_divide", self=_no_derivative, other=_no_derivative)
derivative("remainder", self=lambda s, g: g, other=("self other", lambda s, g: -g * _quotient(s, "floor")))
derivative("fmod", self=lambda s, g: g, other=("self other", lambda s, g: -g * _quotient(s, "trunc")))


@kernel("neg")
def neg(xp: Namespace, x: Array) -> Array:
    return xp.negative(x)


derivative("neg", self=lambda s, g: -g)
derivative("positive", self=lambda s, g: g)


@kernel("addcmul")
def addcmul(xp: Namespace, x: Array, first: Array, second: Array, value: float) -> Array:
    return xp.add(x, xp.multiply(_times(xp, first, value), second))


@kernel("addcdiv")
def addcdiv(xp: Namespace, x: Array, first: Array, second: Array, value: float) -> Array:
    return xp.add(x, xp.true_divide(_times(xp, first, value), second))


def _times(xp: Namespace, x: Array, value: float) -> Array:
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
def lerp(xp: Namespace, x: Array, end: Array, weight: Any) -> Array:
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
def pow(xp: Namespace, base: Any, exponent: Any) -> Array:
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
def square(xp: Namespace, x: Array) -> Array:
    return xp.multiply(x, x)


def _to_number(xp: Namespace, x: Array, n: Any) -> Array:
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


def _chain(xp: Namespace, x: Array, n: int) -> Any:
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


def _by_base(s: Saved, g: Tensor) -> Tensor:
    n = s.exponent
    if not isinstance(n, Tensor):
        return F.zeros_like(g) if n == 0 else g * conj(s.self ** (n - 1) * n)
    return F.where(n == 0, 0, g * conj(s.self ** (n - 1) * n))


def _by_exponent(s: Saved, g: Tensor) -> Tensor:
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
def abs_(xp: Namespace, x: Array) -> Array:
    return xp.absolute(x)


@kernel("sign", "sgn")
def sign(xp: Namespace, x: Array) -> Array:
    if x.dtype.kind == "b":
        return x.copy()
    if x.dtype.kind != "c":
        return (x > 0).astype(x.dtype) - (x < 0)  # 0 for NaN, as in PyTorch
    size = xp.absolute(x)
    return xp.where(size == 0, 0, x / size)


def _by_direction(s: Saved, g: Tensor) -> Tensor:
    """Only what is across the direction turns it: the gradient less its part along the direction, over the size."""
    if not s.self.dtype.is_complex:
        return F.zeros_like(g)
    size = F.abs(s.self)
    along = F.real(g * conj(s.result)) * s.result
    return F.where(size == 0, 0, (g - along) / size)


derivative("abs", self=("self", lambda s, g: g * F.sgn(s.self)))
derivative("sign", self=lambda s, g: F.zeros_like(g))
derivative("sgn", self=("self result", _by_direction))
flat_at_zero("sgn")


@kernel("copysign")
def copysign(xp: Namespace, x: Array, y: Array | float) -> Array:
    return xp.copysign(x, y)


derivative(
    "copysign",
    self=("self result", lambda s, g: g * F.where(s.self == 0, 0, s.result / s.self)),
    other=lambda s, g: F.zeros_like(g),
)


# Extremes and selection


@kernel("maximum")
def maximum(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.maximum(x, y)


@kernel("minimum")
def minimum(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.minimum(x, y)


@kernel("fmax")
def fmax(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.fmax(x, y)


@kernel("fmin")
def fmin(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.fmin(x, y)


def _shared(g: Tensor, tie: Tensor, lost: Tensor) -> Tensor:
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


def _picking(first: Tensor, self_t: Tensor, other_t: Tensor | None) -> Tensor:
    """``self_t`` to the extent ``first``, else ``other_t``."""
    if self_t is None:
        return other_t - first * other_t
    if other_t is None:
        return first * self_t
    return other_t + first * (self_t - other_t)


def _half_at_ties(x: Tensor, y: Tensor, above: Tensor) -> Tensor:
    return F.where(x == y, 0.5, F.to(above, dtype=x.dtype if x.ndim or not y.ndim else y.dtype))


forward_derivative("maximum", lambda x, y, x_t, y_t: _picking(_half_at_ties(x, y, x > y), x_t, y_t))
forward_derivative("minimum", lambda x, y, x_t, y_t: _picking(_half_at_ties(x, y, x < y), x_t, y_t))
forward_derivative("fmax", lambda x, y, x_t, y_t: _picking((x > y) | F.isnan(y), x_t, y_t))


@kernel("clamp")
def clamp(xp: Namespace, x: Array, low: Array | float | None, high: Array | float | None) -> Array:
    if is_number(low) and is_number(high) and low is not None and high is not None:
        return xp.clip(x, low, high)
    if low is not None:
        x = xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


@kernel("clamp_min")
def clamp_min(xp: Namespace, x: Array, low: Array | float) -> Array:
    return xp.maximum(x, low)


@kernel("clamp_max")
def clamp_max(xp: Namespace, x: Array, high: Array | float) -> Array:
    return xp.minimum(x, high)


def _within(s: Saved, g: Tensor) -> Tensor:
    if s.max is None:
        return F.where(s.self >= s.min, g, 0)
    if s.min is None:
        return F.where(s.self <= s.max, g, 0)
    return F.where((s.self >= s.min) & (s.self <= s.max), g, 0)


def _by_min(s: Saved, g: Tensor) -> Tensor:
    below = s.self < s.min
    return F.where(below if s.max is None else below & (s.min < s.max), g, 0)


def _by_max(s: Saved, g: Tensor) -> Tensor:
    above = s.self > s.max
    return F.where(above if s.min is None else above | (s.max < s.min), g, 0)


derivative("clamp", self=("self min max", _within), min=("self min max", _by_min), max=("self min max", _by_max))
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
def where(xp: Namespace, out: Meta, condition: Array, x: Any, y: Any) -> Array:
    dtype = native(out.dtype)
    sides = [v if is_number(v) or v.dtype == dtype else v.astype(dtype) for v in (x, y)]
    return select(xp, condition if condition.dtype.kind == "b" else condition != 0, *sides)


derivative(
    "where",
    self=("condition", lambda s, g: F.where(s.condition, g, 0)),
    other=("condition", lambda s, g: F.where(s.condition, 0, g)),
)


@kernel("masked_fill")
def masked_fill(xp: Namespace, x: Array, mask: Array, value: Any) -> Array:
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
def atan2(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.arctan2(x, y)


@joint_derivative("atan2", "self other")
def _(s: Saved, g: Tensor) -> tuple[Tensor, Tensor]:
    norm = s.self * s.self + s.other * s.other
    g = g * F.where(norm == 0, 0, F.reciprocal(norm))
    return g * s.other, g * -s.self


@kernel("hypot")
def hypot(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.hypot(x, y)


derivative(
    "hypot",
    self=("self result", lambda s, g: g * (s.self / s.result)),
    other=("other result", lambda s, g: g * (s.other / s.result)),
)


@kernel("logaddexp")
def logaddexp(xp: Namespace, x: Array, y: Array) -> Array:
    return special.logaddexp(xp, x, y) if x.dtype.kind == "c" else xp.logaddexp(x, y)


@kernel("logaddexp2")
def logaddexp2(xp: Namespace, x: Array, y: Array) -> Array:
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
