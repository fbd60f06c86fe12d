"""Complex numbers: their parts, their angle, and how they are made of two real ones."""

from __future__ import annotations

import math

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, flat_at_zero, forward_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, Namespace


@kernel("conj", "conj_physical")
def conj_physical(xp: Namespace, x: Array) -> Array:
    return xp.conj(x) if x.dtype.kind == "c" else x.copy()


@kernel("angle")
def angle(xp: Namespace, x: Array) -> Array:
    if x.dtype.kind == "c":
        return xp.arctan2(x.imag, x.real)
    return xp.where(x != x, x, xp.where(x < 0, math.pi, 0))


@kernel("complex")
def complex_(xp: Namespace, x: Array, y: Array) -> Array:
    x, y = xp.broadcast_arrays(x, y)
    out = xp.empty(x.shape, "F" if x.dtype.itemsize == 4 else "D")
    out.real = x
    out.imag = y
    return out


@kernel("polar")
def polar(xp: Namespace, size: Array, angle: Array) -> Array:
    return complex_(xp, size * xp.cos(angle), size * xp.sin(angle))


def _by_complex(s: Saved, g: Tensor) -> Tensor:
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
flat_at_zero("angle", of="self")
derivative("complex", real=lambda s, g: g, imag=lambda s, g: F.imag(g))
derivative(
    "polar",
    abs=("result", lambda s, g: g * conj(F.sgn(s.result))),
    angle=("result", lambda s, g: g * conj(s.result * 1j)),
)


def _polar(abs: Tensor, angle: Tensor, abs_t: Tensor, angle_t: Tensor) -> Tensor:
    cos, sin = F.cos(angle), F.sin(angle)
    real, imag = 0, 0
    if abs_t is not None:
        real, imag = abs_t * cos, abs_t * sin
    if angle_t is not None:
        real, imag = real - angle_t * abs * sin, imag + angle_t * abs * cos
    return F.complex(real, imag)


forward_derivative("polar", _polar)
