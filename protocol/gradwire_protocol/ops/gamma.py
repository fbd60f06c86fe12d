"""The gamma function's family: its logarithm, the derivatives of that, incomplete gamma functions, Hurwitz' zeta."""

from __future__ import annotations

from typing import Final

from ..accepts import require
from ..costs import each
from ..dtypes import FLOATING
from ..errors import ArgumentError, ArgumentTypeError
from ..meta import Inference, Meta, new
from ..promotion import Promote, ScalarKind
from ..shapes import elementwise
from ..table import Out, Scalar, Tensor, gradients, op

ORDER = "there is no derivative by its first argument: detach that"
MOST_DIMENSIONS = 10_000
"""The largest ``p`` of a multivariate gamma function: its time and memory grow with it."""


def smooth(name: str, *operands: Meta | ScalarKind) -> Inference:
    """The rule of real functions with values between the integers: integers become the default float dtype.

    Raises:
        ArgumentTypeError: when no operand is a tensor.
        Unsupported: for complex operands.
    """
    if not any(isinstance(operand, Meta) for operand in operands):
        raise ArgumentTypeError(f"{name} needs a tensor among its operands")
    inferred = elementwise(*operands, promotion=Promote.INT_TO_FLOAT)
    require(name, inferred.outs[0].dtype, (FLOATING,))
    return inferred


def numbered(inferred: Inference, node: str, first: object, second: object) -> Inference:
    """The node's name of a function of two numbers: 1 at its end if the first is no tensor, 2 if the second is not."""
    if not isinstance(first, Meta):
        return inferred.named(f"{node}1")
    return inferred if isinstance(second, Meta) else inferred.named(f"{node}2")


_DENSITY: Final = "exp((self - 1) * log(other) - other - lgamma(self))"
"""The integrand of the incomplete gamma function."""


@op(grad_fn="LgammaBackward0", inplace=True, elementwise=True)
@gradients("grad * digamma(self)")
def lgamma(self: Tensor) -> Inference:
    """The natural logarithm of the gamma function's absolute value; integers become floats."""
    return smooth("lgamma", self)


@op(grad_fn="DigammaBackward0", inplace=True, elementwise=True)
@gradients("grad * polygamma(self)")
def digamma(self: Tensor) -> Inference:
    """The derivative of :func:`lgamma`: infinite at 0, NaN at negative integers; integers become floats."""
    return smooth("digamma", self)


@op(grad_fn="PolygammaBackward0", inplace="PolygammaBackward1", exposed=("method",), elementwise=True, cost=each(100))
@gradients("grad * polygamma(self)")
def polygamma(self: Tensor, n: int) -> Inference:
    """The ``n``-th derivative of :func:`digamma`, for ``n >= 0``; integers become floats."""
    if n < 0:
        raise ArgumentError(f"polygamma: n is at least 0, not {n}")
    return smooth("polygamma", self)


@op(grad_fn="MvlgammaBackward0", inplace=True, elementwise=True, out=Out.OVERLAPPING)
@gradients("grad * sum_dim(digamma(unsqueeze(self) - c))")
def mvlgamma(self: Tensor, p: int) -> Inference:
    """The logarithm of the multivariate gamma function of dimension ``p``, for elements above ``(p - 1) / 2``.

    Integers become floats.
    """
    if not 1 <= p <= MOST_DIMENSIONS:
        raise ArgumentError(f"mvlgamma: p must be from 1 to {MOST_DIMENSIONS}, not {p}")
    out = smooth("mvlgamma", self).outs[0]
    return new(out.shape, out.dtype, out.device, compute=out.dtype)


def _incomplete(name: str, self: Meta, other: Meta) -> Inference:
    inferred = elementwise(self, other)
    require(name, inferred.outs[0].dtype, (FLOATING,))
    return inferred


@op(grad_fn="IgammaBackward0", inplace=True, elementwise=True, cost=each(100))
@gradients(self="opaque", other=f"grad * {_DENSITY}", saves={"other": "self other"})
def igamma(self: Tensor, other: Tensor) -> Inference:
    """The lower incomplete gamma function of order ``self`` at ``other``, over the gamma function: from 0 to 1.

    NaN where either is negative. Floating point only. Its derivative by the order is not implemented.
    """
    return _incomplete("igamma", self, other).without_derivative(ORDER, "self")


@op(grad_fn="IgammacBackward0", inplace=True, elementwise=True, cost=each(100))
@gradients(self="opaque", other=f"-(grad * {_DENSITY})", saves={"other": "self other"})
def igammac(self: Tensor, other: Tensor) -> Inference:
    """``1 - igamma(self, other)``, exact where it is small. Floating point only.

    Its derivative by the order is not implemented.
    """
    return _incomplete("igammac", self, other).without_derivative(ORDER, "self")


@op(grad_fn="SpecialZetaBackward0", exposed=("special",), elementwise=True, cost=each(100))
@gradients(
    self="opaque",
    other=(
        "grad * c * special_zeta.SpecialZetaBackward1(c, other) if is_number(self)"
        " else grad * -self * special_zeta(self + 1, other)"
    ),
    saves={"other": "self other"},
)
def special_zeta(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """Hurwitz' zeta function, the sum of ``(k + other) ** -self`` over all k from 0; integers become floats.

    Its derivative by ``self`` is not implemented.
    """
    found = numbered(smooth("zeta", self, other), "SpecialZetaBackward", self, other)
    return found.without_derivative(ORDER, "self")
