"""Kernels and derivatives of the gamma function's family, through SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import Unsupported

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.scientific import scipy_of
from ..numerics.select import select
from ..runtime.arrays import Array, Namespace


@kernel("lgamma")
def lgamma(xp: Namespace, x: Array) -> Array:
    return select(xp, x == -math.inf, math.inf, scipy_of(xp, "special").gammaln(x))


@kernel("digamma")
def digamma(xp: Namespace, x: Array) -> Array:
    return scipy_of(xp, "special").digamma(x)


@kernel("polygamma")
def polygamma(xp: Namespace, x: Array, n: int) -> Array:
    special = scipy_of(xp, "special")
    if n == 0:
        return special.digamma(x)
    if n == 1:
        # Reflected at a half, as PyTorch's: at negative integers the rounded sine is tiny and not 0.
        right = special.zeta(xp.asarray(2, x.dtype), xp.where(x < 0.5, 1 - x, x))
        return xp.where(x < 0.5, math.pi**2 / xp.sin(x * xp.asarray(math.pi, x.dtype)) ** 2 - right, right)
    factorial = math.exp(math.lgamma(n + 1.0)) if n < 171 else math.inf
    return zeta(xp, n + 1.0, x) * (factorial if n % 2 else -factorial)


def _arguments(xp: Namespace, x: Array, p: int) -> Array:
    """The arguments of the factors of a multivariate gamma function, along a last axis."""
    return x[..., None] - xp.arange(p, dtype=x.dtype) / 2


@kernel("mvlgamma")
def mvlgamma(xp: Namespace, x: Array, p: int) -> Array:
    factors = lgamma(xp, _arguments(xp, x, p))
    return factors.sum(axis=-1) + p * (p - 1) / 4 * math.log(math.pi)


@kernel("igamma")
def igamma(xp: Namespace, order: Array, x: Array) -> Array:
    return scipy_of(xp, "special").gammainc(order, x)


@kernel("igammac")
def igammac(xp: Namespace, order: Array, x: Array) -> Array:
    return scipy_of(xp, "special").gammaincc(order, x)


@kernel("special_zeta")
def zeta(xp: Namespace, x: Array, q: Any) -> Array:
    dtype = (x if hasattr(x, "dtype") else q).dtype
    x, q = xp.asarray(x, dtype), xp.asarray(q, dtype)
    return select(xp, q == math.inf, math.nan, scipy_of(xp, "special").zeta(x, q))


def _by_multivariate(s: Saved, g: Tensor) -> Tensor:
    steps = g.engine.call("arange", s.p, dtype=g.dtype, device=g.device) / 2
    return g * F.sum(F.digamma(F.unsqueeze(s.self, -1) - steps), -1)


def _density(s: Saved, g: Tensor) -> Tensor:
    """The integrand of the incomplete gamma function: the density of the gamma distribution."""
    return g * F.exp((s.self - 1) * F.log(s.other) - s.other - F.lgamma(s.self))


def _lacking(name: str, operand: str) -> Callable[..., Any]:
    def refuse(s: Saved, g: Any) -> Any:
        raise Unsupported(f"{name} has no derivative by {operand}, its first argument; detach it")

    return refuse


derivative("lgamma", self=("self", lambda s, g: g * F.digamma(s.self)))
derivative("digamma", self=("self", lambda s, g: g * F.polygamma(s.self, 1)))
derivative("polygamma", self=("self", lambda s, g: g * F.polygamma(s.self, s.n + 1)))
derivative("mvlgamma", self=("self", _by_multivariate))
derivative("igamma", self=_lacking("igamma", "the order"), other=("self other", _density))
derivative("igammac", self=_lacking("igammac", "the order"), other=("self other", lambda s, g: -_density(s, g)))
derivative(
    "special_zeta",
    self=_lacking("zeta", "the exponent"),
    other=("self other", lambda s, g: g * -s.self * F.special_zeta(s.self + 1, s.other)),
)
