"""Bessel and Airy functions, which PyTorch has no derivative of."""

from __future__ import annotations

from ..meta import Inference
from ..table import Tensor, op
from .gamma import smooth

HERE = ("special",)


@op(exposed=HERE, elementwise=True)
def special_airy_ai(x: Tensor) -> Inference:
    """The Airy function Ai; integers become floats. It has no derivative here."""
    return smooth("airy_ai", x)


@op(exposed=HERE, elementwise=True)
def special_bessel_j0(self: Tensor) -> Inference:
    """The Bessel function of the first kind, of order 0; integers become floats. It has no derivative here."""
    return smooth("bessel_j0", self)


@op(exposed=HERE, elementwise=True)
def special_bessel_j1(self: Tensor) -> Inference:
    """The Bessel function of the first kind, of order 1; integers become floats. It has no derivative here."""
    return smooth("bessel_j1", self)


@op(exposed=HERE, elementwise=True)
def special_bessel_y0(self: Tensor) -> Inference:
    """The Bessel function of the second kind, of order 0: -inf at 0, NaN below. It has no derivative here."""
    return smooth("bessel_y0", self)


@op(exposed=HERE, elementwise=True)
def special_bessel_y1(self: Tensor) -> Inference:
    """The Bessel function of the second kind, of order 1: -inf at 0, NaN below. It has no derivative here."""
    return smooth("bessel_y1", self)


@op(exposed=HERE, elementwise=True)
def special_modified_bessel_i0(self: Tensor) -> Inference:
    """The modified Bessel function of the first kind, of order 0, without derivative: :func:`i0` has one."""
    return smooth("modified_bessel_i0", self)


@op(exposed=HERE, elementwise=True)
def special_modified_bessel_i1(self: Tensor) -> Inference:
    """The modified Bessel function of the first kind, of order 1, without derivative: :func:`special_i1` has one."""
    return smooth("modified_bessel_i1", self)


@op(exposed=HERE, elementwise=True)
def special_modified_bessel_k0(self: Tensor) -> Inference:
    """The modified Bessel function of the second kind, of order 0: infinite at 0, NaN below. No derivative here."""
    return smooth("modified_bessel_k0", self)


@op(exposed=HERE, elementwise=True)
def special_modified_bessel_k1(self: Tensor) -> Inference:
    """The modified Bessel function of the second kind, of order 1: infinite at 0, NaN below. No derivative here."""
    return smooth("modified_bessel_k1", self)


@op(exposed=HERE, elementwise=True)
def special_scaled_modified_bessel_k0(x: Tensor) -> Inference:
    """``exp(x)`` times the modified Bessel function of the second kind, of order 0. It has no derivative here."""
    return smooth("scaled_modified_bessel_k0", x)


@op(exposed=HERE, elementwise=True)
def special_scaled_modified_bessel_k1(x: Tensor) -> Inference:
    """``exp(x)`` times the modified Bessel function of the second kind, of order 1. It has no derivative here."""
    return smooth("scaled_modified_bessel_k1", x)


@op(exposed=HERE, elementwise=True)
def special_spherical_bessel_j0(x: Tensor) -> Inference:
    """The spherical Bessel function of the first kind, of order 0: ``sin(x) / x``. It has no derivative here."""
    return smooth("spherical_bessel_j0", x)
