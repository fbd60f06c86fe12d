"""Elementwise functions of one number."""

from __future__ import annotations

import math

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics import special
from ..runtime.arrays import Array, Namespace

_ARRAY_FUNCTIONS = {
    "reciprocal": "reciprocal", "exp": "exp", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10",
    "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


def _register(name: str, function: str) -> None:
    @kernel(name)
    def run(xp: Namespace, x: Array) -> Array:
        return getattr(xp, function)(x)


for _name, _function in _ARRAY_FUNCTIONS.items():
    _register(_name, _function)


@kernel("log1p")
def log1p(xp: Namespace, x: Array) -> Array:
    if x.dtype.kind != "c":
        return xp.log1p(x)
    re, im = x.real, x.imag
    small = xp.where(abs(x) < 0.5, x, 0)
    near = 0.5 * xp.log1p(small.real * (2 + small.real) + small.imag * small.imag)  # of the squared modulus, less 1
    found = xp.empty_like(x)
    found.real = xp.where(abs(x) < 0.5, near, xp.log(xp.hypot(re + 1, im)))
    found.imag = xp.arctan2(im, re + 1)
    return found


@kernel("sinc")
def sinc(xp: Namespace, x: Array) -> Array:
    """As NumPy computes it: CuPy's own is 1 at NaN."""
    angle = x * math.pi
    return xp.where(angle == 0, 1, xp.sin(angle) / angle)


@kernel("exp2")
def exp2(xp: Namespace, x: Array) -> Array:
    return xp.exp(x * math.log(2)) if x.dtype.kind == "c" else xp.exp2(x)


@kernel("rsqrt")
def rsqrt(xp: Namespace, x: Array) -> Array:
    return xp.reciprocal(xp.sqrt(x))


@kernel("sigmoid")
def sigmoid(xp: Namespace, x: Array) -> Array:
    return special.blockwise(xp, logistic, x)


def logistic(xp: Namespace, x: Array) -> Array:
    grown = xp.exp(-x)
    grown += 1
    return xp.reciprocal(grown)


@kernel("logit")
def logit(xp: Namespace, x: Array, eps: float | None) -> Array:
    if eps is not None:
        x = xp.where(x < eps, eps, xp.minimum(x, 1 - eps))  # no clip: the lower bound may be the greater one
    return xp.log(x / (1 - x))


@kernel("erf")
def erf(xp: Namespace, x: Array) -> Array:
    return special.erf(xp, x)


@kernel("erfc")
def erfc(xp: Namespace, x: Array) -> Array:
    return special.erfc(xp, x)


@kernel("erfinv")
def erfinv(xp: Namespace, x: Array) -> Array:
    return special.erfinv(xp, x)


@kernel("deg2rad")
def deg2rad(xp: Namespace, x: Array) -> Array:
    return x * (math.pi / 180)


@kernel("rad2deg")
def rad2deg(xp: Namespace, x: Array) -> Array:
    return x * (180 / math.pi)


def _by_sinc(s: Saved, g: Tensor) -> Tensor:
    angle = s.self * math.pi
    squared = angle * s.self  # 0 also where the argument is so small that its square is
    slope = (F.cos(angle) * angle - F.sin(angle)) / squared
    return F.where(squared == 0, 0, g * conj(slope))


def _by_logit(s: Saved, g: Tensor) -> Tensor:
    grown = g / (s.self * (1 - s.self))
    eps = s.eps
    low, high, outside = (0, 1, math.nan) if eps is None or eps < 0 else (eps, 1 - eps, 0)
    return F.where((s.self < low) | (s.self > high), outside, grown)


def _by_acosh(s: Saved, g: Tensor) -> Tensor:
    if s.self.dtype.is_complex:
        return g * conj(F.rsqrt(s.self - 1) * F.rsqrt(s.self + 1))
    return g * F.rsqrt(s.self * s.self - 1)


_ERF_SLOPE = 2 / math.sqrt(math.pi)

derivative("reciprocal", self=("result", lambda s, g: -g * conj(s.result * s.result)))
derivative("exp", self=("result", lambda s, g: g * conj(s.result)))
derivative("exp2", self=("result", lambda s, g: g * conj(s.result) * math.log(2)))
derivative("expm1", self=("result", lambda s, g: g * (conj(s.result) + 1)))
derivative("log", self=("self", lambda s, g: g / conj(s.self)))
derivative("log2", self=("self", lambda s, g: g / (conj(s.self) * math.log(2))))
derivative("log10", self=("self", lambda s, g: g / (conj(s.self) * math.log(10))))
derivative("log1p", self=("self", lambda s, g: g / (conj(s.self) + 1)))
derivative("sqrt", self=("result", lambda s, g: g / (conj(s.result) * 2)))
derivative("rsqrt", self=("result", lambda s, g: g * conj(s.result**3) * -0.5))
derivative("sin", self=("self", lambda s, g: g * conj(F.cos(s.self))))
derivative("cos", self=("self", lambda s, g: g * -conj(F.sin(s.self))))
derivative("tan", self=("result", lambda s, g: g * conj(s.result * s.result + 1)))
derivative("asin", self=("self", lambda s, g: g * conj(F.rsqrt(1 - s.self * s.self))))
derivative("acos", self=("self", lambda s, g: g * -conj(F.rsqrt(1 - s.self * s.self))))
derivative("atan", self=("self", lambda s, g: g / conj(s.self * s.self + 1)))
derivative("sinh", self=("self", lambda s, g: g * conj(F.cosh(s.self))))
derivative("cosh", self=("self", lambda s, g: g * conj(F.sinh(s.self))))
derivative("tanh", self=("result", lambda s, g: F.tanh_backward(g, s.result)))
derivative("asinh", self=("self", lambda s, g: g * conj(F.rsqrt(s.self * s.self + 1))))
derivative("acosh", self=("self", _by_acosh))
derivative("atanh", self=("self", lambda s, g: g / conj(1 - s.self * s.self)))
derivative("sinc", self=("self", _by_sinc))
derivative("sigmoid", self=("result", lambda s, g: F.sigmoid_backward(g, s.result)))
derivative("logit", self=("self", _by_logit))
derivative("erf", self=("self", lambda s, g: g * (F.exp(-s.self * s.self) * _ERF_SLOPE)))
derivative("erfc", self=("self", lambda s, g: g * (F.exp(-s.self * s.self) * -_ERF_SLOPE)))
derivative("erfinv", self=("self", lambda s, g: g * (F.exp(F.square(F.erfinv(s.self))) / _ERF_SLOPE)))
derivative("deg2rad", self=lambda s, g: g * (math.pi / 180))
derivative("rad2deg", self=lambda s, g: g * (180 / math.pi))


# Rounding


@kernel("floor")
def floor(xp: Namespace, x: Array) -> Array:
    return xp.floor(x) if x.dtype.kind == "f" else x.copy()


@kernel("ceil")
def ceil(xp: Namespace, x: Array) -> Array:
    return xp.ceil(x) if x.dtype.kind == "f" else x.copy()


@kernel("trunc")
def trunc(xp: Namespace, x: Array) -> Array:
    return xp.trunc(x) if x.dtype.kind == "f" else x.copy()


@kernel("frac")
def frac(xp: Namespace, x: Array) -> Array:
    return x - xp.trunc(x)


@kernel("round")
def round_(xp: Namespace, x: Array, decimals: int) -> Array:
    if x.dtype.kind != "f":
        return x.copy()
    if decimals == 0:
        return xp.rint(x)
    scale = 10.0 ** abs(decimals)
    return xp.rint(x * scale) / scale if decimals > 0 else xp.rint(x / scale) * scale


derivative("floor", self=lambda s, g: F.zeros_like(g))
derivative("ceil", self=lambda s, g: F.zeros_like(g))
derivative("trunc", self=lambda s, g: F.zeros_like(g))
derivative("round", self=lambda s, g: F.zeros_like(g))
derivative("frac", self=lambda s, g: g)


# The largest finite numbers.
_LARGEST = {
    "float16": 65504.0,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": (2 - 2.0**-52) * 2.0**1023,
}


@kernel("nan_to_num", half=True)
def nan_to_num(xp: Namespace, x: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    kind = x.dtype.kind
    if kind in "iub":
        return x.copy()
    if kind == "c":
        result = x.copy()
        result.real = nan_to_num(xp, x.real, nan, posinf, neginf)
        result.imag = nan_to_num(xp, x.imag, nan, posinf, neginf)
        return result
    top = _LARGEST[x.dtype.name]
    wide = x.astype("f") if x.dtype.itemsize == 2 else x
    result = xp.where(wide != wide, 0.0 if nan is None else nan, wide)
    result = xp.where(wide == math.inf, top if posinf is None else posinf, result)
    return xp.where(wide == -math.inf, -top if neginf is None else neginf, result)


derivative("nan_to_num", self=("self", lambda s, g: g * F.isfinite(s.self)))
