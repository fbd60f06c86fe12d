"""Kernels and derivatives of operations on what numbers are made of."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.errors import GraphError

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, Namespace, Native


@kernel("gcd")
def gcd(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.gcd(x, y)


@kernel("lcm")
def lcm(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.lcm(x, y)


@kernel("heaviside")
def heaviside(xp: Namespace, x: Array, values: Array) -> Array:
    return xp.where(x == 0, values, x > 0)


@kernel("nextafter", half=True)
def nextafter(xp: Namespace, x: Array, y: Array) -> Array:
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
def frexp(xp: Namespace, x: Array) -> tuple[Array | Native, Array | Native]:
    mantissa, exponent = xp.frexp(x)
    return mantissa, exponent


@kernel("ldexp")
def ldexp(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.multiply(x, _power(xp, y))


def _power(xp: Namespace, y: Array) -> Array:
    return xp.exp(y * math.log(2)) if y.dtype.kind == "c" else xp.exp2(y)


def _no_derivative(s: Saved, g: Tensor) -> Any:
    raise GraphError("heaviside has no derivative; where(x > 0, 1, 0) has one, which is zero")


def _by_exponent(s: Saved, g: Tensor) -> Tensor:
    return g * conj(s.result) * math.log(2)


derivative("heaviside", self=_no_derivative, values=_no_derivative)
derivative(
    "nextafter", self=("self other", lambda s, g: F.where(s.self == s.other, 0, g)), other=lambda s, g: F.zeros_like(g)
)
derivative("frexp", self=("result1", lambda s, g, _: g / F.exp2(F.to(s.result1, dtype=g.dtype))))
derivative("ldexp", self=("other", lambda s, g: g * conj(F.exp2(s.other))), other=("result", _by_exponent))
