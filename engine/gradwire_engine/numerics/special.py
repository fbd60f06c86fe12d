"""Special functions that array libraries lack, computed from polynomials fitted for this file, or that CuPy computes
with other values than SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..runtime.arrays import Array, Namespace
from .scientific import scipy_of

BLOCK: Final = 8_192
"""Elements that NumPy works on at a time: temporaries of this size stay in the cache."""

# erf(x) / x for |x| <= 1, in powers of 2 x**2 - 1; within 2.3e-16.
_CENTRE: Final = (
    0.9654687386698673,
    -0.1405360890227171,
    0.019852496688984218,
    -0.0022854855611440855,
    0.00021751715603563488,
    -1.75371694412802e-05,
    1.2233827638093572e-06,
    -7.51156925108609e-08,
    4.115751500265885e-09,
    -2.035231956483527e-10,
    9.21125018742823e-12,
    -3.80659122412214e-13,
)

# erfc(x) exp(x**2) (1 + 2 x) for 1 <= x <= 28, in powers of a linear map of (x - 3) / (x + 3); within 2.3e-16.
_TAIL: Final = (
    1.2315168442604394,
    -0.09315327640320487,
    -0.001068196529363911,
    0.019769490813514576,
    -0.013642858657235543,
    0.005712114430714746,
    -0.0015584286278035335,
    0.0002112596281516513,
    2.5712912522185253e-05,
    -1.696328045823301e-05,
    1.3179740398882638e-06,
    9.153071197647388e-07,
    -1.8680825317393677e-07,
    -5.202790765053966e-08,
    1.6995513133595528e-08,
    3.4904589862939875e-09,
    -1.3901454514631243e-09,
    -2.1199266862478753e-10,
    8.410436645279285e-11,
)
_SCALE: Final = 1.5308641975308641
_SHIFT: Final = -0.2345679012345679

# atanh(erf(x)) / x for |x| <= 4.2, in powers of x**2: erf is a hyperbolic tangent of nearly a line. Within 3e-7 when
# computed in float32.
_BEND: Final = (
    1.128379225730896,
    0.10276905447244644,
    -0.0001918267080327496,
    -0.000619789760094136,
    8.763992809690535e-05,
    -5.669036909239367e-06,
    1.4189419061949593e-07,
)

_FAR: Final = 30.0
"""From here on the asymptotic series of scaled Bessel functions are exact in float64."""


def _series(order: int) -> tuple[float, ...]:
    """The asymptotic series of ``k{order}e(x) / sqrt(pi / 2 / x)`` in powers of 1 / x (Hankel's expansion)."""
    found = [1.0]
    for k in range(1, 16):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return tuple(found)


_UNDEFINED_AT_INFINITY: Final = frozenset({"i0", "i1", "j0", "j1", "y0", "y1"})
_SCALED: Final = {f"{kind}{order}e": _series(order) for kind in "ik" for order in (0, 1)}


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    result = x * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        result *= x
        result += coefficient
    return result


def blockwise(xp: Namespace, function: Callable[..., Any], x: Array, *others: Array) -> Array:
    """``function(xp, x, *others)`` of arrays, on NumPy in blocks that fit the cache.

    The function is elementwise and keeps the dtype of ``x``.
    """
    arrays = (x, *others)
    if xp is not np or x.size <= 2 * BLOCK or not all(a.shape == x.shape and a.flags.c_contiguous for a in arrays):
        return function(xp, *arrays)
    flat = [a.reshape(-1) for a in arrays]
    out = np.empty_like(flat[0])
    for start in range(0, x.size, BLOCK):
        out[start : start + BLOCK] = function(np, *[a[start : start + BLOCK] for a in flat])
    return out.reshape(x.shape)


def _native(xp: Namespace, name: str) -> Callable[[Array], Array] | None:
    """CuPy's own function, where ``xp`` is CuPy."""
    if not hasattr(xp, "RawKernel"):
        return None
    import cupyx.scipy.special

    return getattr(cupyx.scipy.special, name)


def erf(xp: Namespace, x: Array) -> Array:
    """The error function of a float32 or float64 array."""
    native = _native(xp, "erf")
    if native is not None:
        return native(x)
    return blockwise(xp, _erf32 if x.dtype == np.float32 else _erf64, x)


def erfc(xp: Namespace, x: Array) -> Array:
    """``1 - erf(x)``, to full relative precision in the tail."""
    native = _native(xp, "erfc")
    if native is not None:
        return native(x)
    return blockwise(xp, _erfc, x)


def erfinv(xp: Namespace, y: Array) -> Array:
    """The inverse of :func:`erf`."""
    native = _native(xp, "erfinv")
    if native is not None:
        return native(y)
    return blockwise(xp, _erfinv, y)


def logaddexp(xp: Namespace, x: Array, y: Array) -> Array:
    """The logarithm of the sum of two complex exponentials, from the larger of them."""
    larger = x.real >= y.real
    big, small = xp.where(larger, x, y), xp.where(larger, y, x)
    ratio = xp.where(xp.isneginf(small.real), 0, xp.exp(small - big))
    return big + xp.log(1 + ratio)


def bessel(xp: Namespace, name: str, x: Array) -> Array:
    """The Bessel function that SciPy calls ``name``, with SciPy's values where CuPy has others: NaN at infinity for the
    functions that are not scaled, and scaled ones that do not fail where CuPy's exponential factor overflows."""
    function = getattr(scipy_of(xp, "special"), name)
    if xp is np:
        return function(x)
    if name in _UNDEFINED_AT_INFINITY:
        return xp.where(xp.isinf(x), np.nan, function(x))
    if name not in _SCALED:
        return function(x)
    grows = name[0] == "i"
    size = xp.abs(x) if grows else x
    far = size > _FAR
    size = xp.where(far, size, _FAR)
    inverse = (-1 if grows else 1) / size
    tail = _polynomial(_SCALED[name], inverse) * xp.sqrt((0.5 / math.pi if grows else math.pi / 2) / size)
    if name == "i1e":
        tail = xp.copysign(tail, x)
    return xp.where(far, tail, function(xp.where(far, 1, x)))


def _erf32(xp: Namespace, x: Array) -> Array:
    x = xp.clip(x, -4.2, 4.2)
    return xp.tanh(_polynomial(_BEND, x * x) * x)


def _centre(xp: Namespace, x: Array) -> Array:
    """erf for |x| <= 1."""
    return x * _polynomial(_CENTRE, 2 * x * x - 1)


def _tail(xp: Namespace, x: Array) -> Array:
    """erfc for x >= 1."""
    x = xp.clip(x, 1, 28)
    s = (x - 3) / (x + 3) * _SCALE + _SHIFT
    # The square is rounded; an exponential makes that error 700 times larger. The head's square is exact.
    head = xp.floor(x * 1_048_576) * 2.0**-20
    return xp.exp(-head * head) * xp.exp((head - x) * (head + x)) * _polynomial(_TAIL, s) / (1 + 2 * x)


def _erf64(xp: Namespace, x: Array) -> Array:
    size = xp.abs(x)
    outer = xp.copysign(1 - _tail(xp, size), x)
    return xp.where(size <= 1, _centre(xp, x), xp.where(x != x, x, outer))


def _erfc(xp: Namespace, x: Array) -> Array:
    wide = x.astype(np.float64)
    tail = _tail(xp, xp.abs(wide))
    outer = xp.where(wide > 0, tail, 2 - tail)
    result = xp.where(xp.abs(wide) <= 1, 1 - _centre(xp, wide), xp.where(wide != wide, wide, outer))
    return result.astype(x.dtype)


def _erfinv(xp: Namespace, y: Array) -> Array:
    """A guess within 0.4 % [Winitzki, 2008], then twice Halley's method on whichever of erf and erfc is small."""
    size = xp.abs(y.astype(np.float64))
    rest = 1 - size
    logarithm = xp.log(rest * (1 + size))
    half = 4.330746750799873 + logarithm / 2
    x = xp.sqrt(xp.sqrt(half * half - logarithm / 0.147) - half)
    for _ in range(2):
        error = xp.where(size < 0.5, _centre(xp, xp.minimum(x, 1)) - size, rest - _erfc(xp, x))
        step = error * xp.exp(x * x) * 0.886226925452758
        x = x - step / (1 + x * step)
    x = xp.where(size < 1, x, xp.where(size == 1, np.inf, np.nan))
    return xp.copysign(x, y).astype(y.dtype)
