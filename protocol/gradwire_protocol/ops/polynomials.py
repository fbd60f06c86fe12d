"""Orthogonal polynomials. The degree ``n`` may differ by element: its fraction is dropped; below 0 the value is 0."""

from __future__ import annotations

from ..meta import Inference
from ..table import Scalar, Tensor, op
from .gamma import smooth

HERE = ("special",)
HIGHEST = 1_000_000
"""The highest degree: the time that an element takes grows with its degree."""


@op(exposed=HERE, elementwise=True, total=False)
def special_chebyshev_polynomial_t(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the first kind, ``cos(n * acos(x))``. It has no derivative here."""
    return smooth("chebyshev_polynomial_t", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_chebyshev_polynomial_u(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the second kind. It has no derivative here."""
    return smooth("chebyshev_polynomial_u", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_chebyshev_polynomial_v(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the third kind. It has no derivative here."""
    return smooth("chebyshev_polynomial_v", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_chebyshev_polynomial_w(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the fourth kind. It has no derivative here."""
    return smooth("chebyshev_polynomial_w", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_shifted_chebyshev_polynomial_t(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the first kind at ``2 * x - 1``. It has no derivative here."""
    return smooth("shifted_chebyshev_polynomial_t", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_shifted_chebyshev_polynomial_u(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the second kind at ``2 * x - 1``. It has no derivative here."""
    return smooth("shifted_chebyshev_polynomial_u", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_shifted_chebyshev_polynomial_v(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the third kind at ``2 * x - 1``. It has no derivative here."""
    return smooth("shifted_chebyshev_polynomial_v", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_shifted_chebyshev_polynomial_w(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Chebyshev's polynomial of the fourth kind at ``2 * x - 1``. It has no derivative here."""
    return smooth("shifted_chebyshev_polynomial_w", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_hermite_polynomial_h(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """The physicist's Hermite polynomial; NaN where it overflows. It has no derivative here."""
    return smooth("hermite_polynomial_h", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_hermite_polynomial_he(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """The probabilist's Hermite polynomial; NaN where it overflows. It has no derivative here."""
    return smooth("hermite_polynomial_he", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_laguerre_polynomial_l(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Laguerre's polynomial. It has no derivative here."""
    return smooth("laguerre_polynomial_l", x, n)


@op(exposed=HERE, elementwise=True, total=False)
def special_legendre_polynomial_p(x: Tensor | Scalar, n: Tensor | Scalar) -> Inference:
    """Legendre's polynomial. It has no derivative here."""
    return smooth("legendre_polynomial_p", x, n)
