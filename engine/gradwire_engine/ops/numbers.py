"""Kernels and derivatives of operations on what numbers are made of."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.errors import GraphError

from ..functional import F, conj
from ..registry import derivative, kernel


@kernel("gcd")
def gcd(xp: Any, x: Any, y: Any) -> Any:
    return xp.gcd(x, y)


@kernel("lcm")
def lcm(xp: Any, x: Any, y: Any) -> Any:
    return xp.lcm(x, y)


@kernel("heaviside")
def heaviside(xp: Any, x: Any, values: Any) -> Any:
    return xp.where(x == 0, values, x > 0)


@kernel("nextafter", half=True)
def nextafter(xp: Any, x: Any, y: Any) -> Any:
    if x.dtype.itemsize > 2:
        return xp.nextafter(x, y)
    # The bits of floats are ordered as integers are, their sign aside; the library's own knows no bfloat16.
    wide, target = x.astype("f"), y.astype("f")
    bits = x.view(xp.int16)
    size = bits & 0x7FFF
    away = (target > wide) == (wide > 0)
    moved = xp.where(size == 0, xp.where(target < 0, -0x7FFF, 1), xp.where(away, bits + 1, bits - 1))
    moved = xp.where(wide == target, y.view(xp.int16), moved)
    found = moved.astype(xp.int16).view(x.dtype)
    return xp.where((wide != wide) | (target != target), math.nan, found.astype("f"))


@kernel("frexp")
def frexp(xp: Any, x: Any) -> Any:
    mantissa, exponent = xp.frexp(x)
    return mantissa, exponent


@kernel("ldexp")
def ldexp(xp: Any, x: Any, y: Any) -> Any:
    return xp.multiply(x, _power(xp, y))


def _power(xp: Any, y: Any) -> Any:
    return xp.exp(y * math.log(2)) if y.dtype.kind == "c" else xp.exp2(y)


def _no_derivative(s: Any, g: Any) -> Any:
    raise GraphError("heaviside has no derivative: where(x > 0, 1, 0) has one, which is zero")


def _by_exponent(s: Any, g: Any) -> Any:
    return g * conj(s.result) * math.log(2)


derivative("heaviside", self=_no_derivative, values=_no_derivative)
derivative(
    "nextafter",
    self=("self other", lambda s, g: F.where(s.self == s.other, 0, g)),
    other=lambda s, g: F.zeros_like(g),
)
derivative("frexp", self=("result1", lambda s, g, _: g / F.exp2(F.to(s.result1, dtype=g.dtype))))
derivative(
    "ldexp",
    self=("other", lambda s, g: g * conj(F.exp2(s.other))),
    other=("result", _by_exponent),
)
