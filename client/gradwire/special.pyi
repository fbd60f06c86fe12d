# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from collections.abc import Sequence
from gradwire._core.tensor.tensor import Tensor
from gradwire_protocol.dtypes import DType

def airy_ai(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Airy function Ai; integers become floats. It has no derivative here."""
def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind, of order 0; integers become floats. It has no derivative here."""
def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind, of order 1; integers become floats. It has no derivative here."""
def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind, of order 0: -inf at 0, NaN below. It has no derivative here."""
def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind, of order 1: -inf at 0, NaN below. It has no derivative here."""
def chebyshev_polynomial_t(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind, ``cos(n * acos(x))``. It has no derivative here."""
def chebyshev_polynomial_u(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind. It has no derivative here."""
def chebyshev_polynomial_v(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind. It has no derivative here."""
def chebyshev_polynomial_w(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind. It has no derivative here."""
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of :func:`lgamma`: infinite at 0, NaN at negative integers; integers become floats."""
def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-x * log(x)``: 0 at 0, -inf below; integers become floats."""
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function of real numbers; integers become floats."""
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(self)``, exact far out; integers become floats."""
def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(x ** 2) * erfc(x)``, exact far out; integers become floats."""
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`erf`: infinite at -1 and 1, NaN outside; integers become floats."""
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of ``self``; integers become floats."""
def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-self))``; integers become floats."""
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(self) - 1``, exact near 0; integers become floats."""
def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The lower incomplete gamma function of order ``self`` at ``other``, over the gamma function: from 0 to 1."""
def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - igamma(self, other)``, exact where it is small. Floating point only."""
def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of the gamma function's absolute value; integers become floats."""
def hermite_polynomial_h(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """The physicist's Hermite polynomial; NaN where it overflows. It has no derivative here."""
def hermite_polynomial_he(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """The probabilist's Hermite polynomial; NaN where it overflows. It has no derivative here."""
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0; integers become floats."""
def i0_(input: Tensor) -> Tensor:
    """In-place form of :func:`i0`: writes the result into ``self``."""
def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|x|) * i0(x)``, which does not overflow; integers become floats."""
def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 1; integers become floats."""
def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|x|) * i1(x)``, which does not overflow; integers become floats."""
def laguerre_polynomial_l(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Laguerre's polynomial. It has no derivative here."""
def legendre_polynomial_p(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Legendre's polynomial. It has no derivative here."""
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + self)``, exact near 0; integers become floats."""
def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the standard normal distribution function, exact far out; integers become floats."""
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of :func:`softmax`, computed without its rounding."""
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(x / (1 - x))``; with ``eps``, x is first cut to the range from ``eps`` to ``1 - eps``."""
def logsumexp(input: Tensor, dim: Sequence[int] | int | None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the sum of exponentials over ``dim``, without overflow. Integers become the default float."""
def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0, without derivative: :func:`i0` has one."""
def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 1, without derivative: :func:`special_i1` has one."""
def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, of order 0: infinite at 0, NaN below. No derivative here."""
def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, of order 1: infinite at 0, NaN below. No derivative here."""
def multigammaln(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``p``, for elements above ``(p - 1) / 2``."""
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The standard normal distribution function, the area under the bell curve up to x; integers become floats."""
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The quantile of the standard normal distribution: infinite at 0 and 1, NaN outside; integers become floats."""
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The ``n``-th derivative of digamma, for ``n >= 0``."""
def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of :func:`lgamma`: infinite at 0, NaN at negative integers; integers become floats."""
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Round to ``decimals`` places, halves to the even neighbour. The gradient is zero."""
def scaled_modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(x)`` times the modified Bessel function of the second kind, of order 0. It has no derivative here."""
def scaled_modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(x)`` times the modified Bessel function of the second kind, of order 1. It has no derivative here."""
def shifted_chebyshev_polynomial_t(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind at ``2 * x - 1``. It has no derivative here."""
def shifted_chebyshev_polynomial_u(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind at ``2 * x - 1``. It has no derivative here."""
def shifted_chebyshev_polynomial_v(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind at ``2 * x - 1``. It has no derivative here."""
def shifted_chebyshev_polynomial_w(x: Tensor | complex, n: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind at ``2 * x - 1``. It has no derivative here."""
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi * x) / (pi * x)``, 1 at 0; integers become floats."""
def softmax(input: Tensor, dim: int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """Exponentials along ``dim``, divided by their sum. NaN where all are -inf. ``dtype`` converts first."""
def spherical_bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind, of order 0: ``sin(x) / x``. It has no derivative here."""
def xlog1py(input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """``self * log1p(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
def xlogy(input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """``self * log(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
def zeta(input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz' zeta function, the sum of ``(k + other) ** -self`` over all k from 0; integers become floats."""
__all__ = ['airy_ai', 'bessel_j0', 'bessel_j1', 'bessel_y0', 'bessel_y1', 'chebyshev_polynomial_t', 'chebyshev_polynomial_u', 'chebyshev_polynomial_v', 'chebyshev_polynomial_w', 'digamma', 'entr', 'erf', 'erfc', 'erfcx', 'erfinv', 'exp2', 'expit', 'expm1', 'gammainc', 'gammaincc', 'gammaln', 'hermite_polynomial_h', 'hermite_polynomial_he', 'i0', 'i0_', 'i0e', 'i1', 'i1e', 'laguerre_polynomial_l', 'legendre_polynomial_p', 'log1p', 'log_ndtr', 'log_softmax', 'logit', 'logsumexp', 'modified_bessel_i0', 'modified_bessel_i1', 'modified_bessel_k0', 'modified_bessel_k1', 'multigammaln', 'ndtr', 'ndtri', 'polygamma', 'psi', 'round', 'scaled_modified_bessel_k0', 'scaled_modified_bessel_k1', 'shifted_chebyshev_polynomial_t', 'shifted_chebyshev_polynomial_u', 'shifted_chebyshev_polynomial_v', 'shifted_chebyshev_polynomial_w', 'sinc', 'softmax', 'spherical_bessel_j0', 'xlog1py', 'xlogy', 'zeta']
