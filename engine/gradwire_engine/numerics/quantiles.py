"""How a sample moves with its parameter while its quantile stays: derivatives of gamma and Beta variates.

With the distribution function F and the density f of a sample z, that is ``-dF/da / f`` at z. For the gamma
distribution dF/da is the integral of ``(log t - digamma(a)) f(t)`` from 0 to z, or of the opposite from z on. On one of
the two sides of z the integrand does not change its sign, so nothing cancels there; that side is integrated, relative
to the density at z so that nothing overflows. The integrands are analytic and change over many orders of magnitude:
the trapezoidal rule over the logarithm of the distance from z converges exponentially for them
[Takahasi and Mori, "Double exponential formulas for numerical integration", 1974].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..runtime.arrays import Array, Namespace
from .scientific import scipy_of

NODES: Final = 112
"""More do not change 8 digits, for concentrations from 1e-3 to 1e8."""

_NEGLIGIBLE: Final = 36.0  # exp(-36) is below the precision of float64
_LEAST: Final = 26.0  # so many powers of e below the scale of the integrand, nothing matters
_TINY: Final = 1e-300


def _trapezoid(xp: Namespace, integrand: Callable[[Array], Array], scale: Array, end: Array) -> Array:
    """The integral over positive s of a function of s, which changes at ``scale`` first and is nothing from ``end``."""
    first = xp.log(scale) - _LEAST
    step = (xp.log(end) + 0.3 - first) / (NODES - 1)
    total = xp.zeros(first.shape)
    for k in range(NODES):  # a pass over the elements for each node: no array is larger than they are
        s = xp.exp(first + k * step)
        total += integrand(s) * s
    return total * step


def _reach(xp: Namespace, far: float, slope: Array, curvature: Array) -> Array:
    """The distance s at which ``slope s + curvature s**2 / 2`` is ``far``."""
    return 2 * far / (slope + xp.sqrt(slope * slope + 2 * far * curvature) + _TINY)


def gamma_shift(xp: Namespace, a: Array, z: Array) -> Array:
    """dz/da of gamma variates ``z`` of concentrations ``a``, at a fixed quantile. Arrays of float64 of one shape."""
    z = xp.maximum(z, _TINY)
    psi = scipy_of(xp, "special").digamma(a + 1)
    middle = psi - 1 / a
    near_zero = z < 0.5
    return xp.where(near_zero, _gamma_series(xp, a, xp.minimum(z, 0.5), psi), _gamma_integral(xp, a, z, middle))


def _gamma_series(xp: Namespace, a: Array, z: Any, psi: Array) -> Array:
    """From the power series of the incomplete gamma function, below 1/2. The terms in 1/a**2 are left out in pairs."""
    lead = xp.log(z) - psi
    total, power = lead / a, 1.0
    for n in range(1, 15):
        power = power * (-z / n)
        total = total + power / (a + n) * (lead + n / (a * (a + n)))
    return -z * xp.exp(z) * total


def _gamma_integral(xp: Namespace, a: Array, z: Array, middle: Array) -> Array:
    z = xp.maximum(z, 0.5)
    log_z = xp.log(z)
    below = log_z < middle
    # Below z the distance is that of logarithms, t = z exp(-s); above it is t = z + s.
    slope = xp.maximum(xp.where(below, a - z, 1 - (a - 1) / z), 0)
    bend = xp.where(below, z, xp.maximum(a - 1, 0) / (z * z))
    scale = xp.minimum(_reach(xp, 1.0, slope, bend), xp.where(below, 1.0, z))
    parabola = 1.8 * _reach(xp, _NEGLIGIBLE, slope, bend)
    line = (z + _NEGLIGIBLE) / a
    end = xp.where(below, xp.where(parabola < 1, xp.minimum(parabola, line), line), parabola + 120)

    def integrand(s: Array) -> Array:
        ratio = xp.log1p(s / z)
        weight = xp.where(below, middle - log_z + s, log_z + ratio - middle)
        return weight * xp.exp(xp.where(below, -a * s - z * xp.expm1(-s), (a - 1) * ratio - s))

    return _trapezoid(xp, integrand, scale, end) * xp.where(below, z, 1.0)


def dirichlet_shift(xp: Namespace, x: Array, a: Array, total: Array) -> Array:
    """dx/da / (1 - x) of components ``x`` of Dirichlet variates, whose marginals are Beta(a, total - a).

    Arrays of float64 of one shape.
    """
    digamma = scipy_of(xp, "special").digamma
    b = total - a
    alone = b <= 0  # a single component is 1, whatever its concentration
    b = xp.where(alone, 1.0, b)
    x = xp.clip(x, _TINY, 1)
    psi = digamma(a + 1) - digamma(a + b)
    log_x = xp.log(x)
    near_zero = x * (b + 1) < 1e-9
    series = -x / a * (log_x - psi)
    shift = xp.where(near_zero, series, _beta_integral(xp, xp.where(near_zero, 0.5, x), a, b, psi - 1 / a))
    return xp.where(alone, 0.0, shift)


def _beta_integral(xp: Namespace, x: Array, a: Array, b: Array, middle: Array) -> Array:
    y = xp.maximum(1 - x, _TINY)
    log_x = xp.log(x)
    below = log_x < middle
    # Below x the distance is that of logarithms of t, above it that of logarithms of 1 - t.
    p, q = xp.where(below, a, b), xp.where(below, b, a) - 1
    odds = xp.where(below, x / y, y / x)
    slope = xp.maximum(p - q * odds, 0)
    bend = xp.maximum(q, 0) * odds * (1 + odds)
    scale = xp.minimum(_reach(xp, 1.0, slope, bend), xp.minimum(1.0, 1 / odds))
    parabola = 2 * _reach(xp, _NEGLIGIBLE, slope, bend)
    line = (_NEGLIGIBLE + xp.maximum(q, 0) * xp.log1p(odds)) / p
    end = xp.where(parabola < xp.minimum(1.0, 1 / odds), parabola, line)

    def integrand(s: Array) -> Array:
        ratio = xp.log1p(-odds * xp.expm1(-s))
        weight = xp.where(below, middle - log_x + s, log_x + ratio - middle)
        return weight * xp.exp(q * ratio - p * s)

    return _trapezoid(xp, integrand, scale, end) * xp.where(below, x / y, 1.0)
