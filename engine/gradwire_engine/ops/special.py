"""Kernels and derivatives of special functions, through SciPy."""

from __future__ import annotations

import math

import numpy as np

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.scientific import scipy_of
from ..runtime.arrays import Array, Namespace
from .bessel import register_bessel
from .pointwise import is_number

_NAMES = {
    "special_entr": "entr", "special_erfcx": "erfcx", "special_ndtr": "ndtr", "special_log_ndtr": "log_ndtr",
    "special_ndtri": "ndtri",
}  # fmt: skip


def _register(name: str, function: str) -> None:
    @kernel(name)
    def run(xp: Namespace, x: Array) -> Array:
        return getattr(scipy_of(xp, "special"), function)(x)


for _name, _function in _NAMES.items():
    _register(_name, _function)
for _name, _function in {"i0": "i0", "special_i0e": "i0e", "special_i1": "i1", "special_i1e": "i1e"}.items():
    register_bessel(_name, _function)


@kernel("xlogy")
def xlogy(xp: Namespace, x: Array | float, y: Array | float) -> Array:
    logarithm = math.log(y) if is_number(y) and y > 0 else xp.log(xp.asarray(y) if is_number(y) else y)
    return xp.where(xp.logical_and(x == 0, y == y), 0, x * logarithm)


@kernel("special_xlog1py")
def xlog1py(xp: Namespace, x: Array | float, y: Array | float) -> Array:
    dtype = (x if hasattr(x, "dtype") else y).dtype
    x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
    if xp is np:
        return scipy_of(xp, "special").xlog1py(x, y)
    return xp.where((x == 0) & (y == y), 0, x * xp.log1p(y))  # CuPy's own takes NaN for a number


def _by_factor(s: Saved, g: Tensor) -> Tensor:
    grown = F.special_xlog1py(g, s.other)
    if isinstance(s.other, Tensor):
        return F.masked_fill(grown, (s.self == 0) & (s.other <= -1), 0)
    return F.masked_fill(grown, s.self == 0, 0) if s.other <= -1 else grown


def _by_xlogy_factor(s: Saved, g: Tensor) -> Tensor:
    grown = F.xlogy(g, s.other)
    if isinstance(s.other, Tensor):
        return F.masked_fill(grown, (s.self == 0) & (s.other <= 0), 0)
    return F.masked_fill(grown, s.self == 0, 0) if s.other <= 0 else grown


def _by_i1(s: Saved, g: Tensor) -> Tensor:
    """``i0(x) - i1(x) / x``, whose limit at 0 is a half."""
    x = s.self
    tiny = F.abs(x) < _TINY[x.dtype.name]
    safe = F.where(tiny, 1, x)
    return g * F.where(tiny, 0.5, F.i0(x) - s.result / safe)


def _by_i1e(s: Saved, g: Tensor) -> Tensor:
    x = s.self
    tiny = F.abs(x) < _TINY[x.dtype.name]
    safe = F.where(tiny, 1, x)
    return g * F.where(tiny, 0.5, F.special_i0e(x) - s.result * (F.sgn(x) + F.reciprocal(safe)))


_TINY = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
_BELL = 1 / math.sqrt(2 * math.pi)

derivative("special_entr", self=("self", lambda s, g: g * (-F.log(s.self) - 1)))
derivative("special_erfcx", self=("self result", lambda s, g: g * (s.self * s.result * 2 - 2 / math.sqrt(math.pi))))
derivative("special_ndtr", self=("self", lambda s, g: g * (F.exp(s.self * s.self * -0.5) * _BELL)))
derivative(
    "special_log_ndtr",
    self=("self", lambda s, g: g / F.special_erfcx(s.self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi)),
)
derivative("special_ndtri", self=("result", lambda s, g: g * (F.exp(s.result * s.result * 0.5) / _BELL)))
derivative("xlogy", self=("self other", _by_xlogy_factor), other=("self other", lambda s, g: g * s.self / s.other))
derivative(
    "special_xlog1py", self=("self other", _by_factor), other=("self other", lambda s, g: g * s.self / (s.other + 1))
)
derivative("i0", self=("self", lambda s, g: g * F.special_i1(s.self)))
derivative("special_i0e", self=("self result", lambda s, g: g * (F.special_i1e(s.self) - F.sgn(s.self) * s.result)))
derivative("special_i1", self=("self result", _by_i1))
derivative("special_i1e", self=("self result", _by_i1e))
