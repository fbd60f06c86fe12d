"""Special functions with a derivative: entropy, the normal distribution, scaled error and Bessel functions."""

from __future__ import annotations

from ..meta import Inference
from ..table import Out, Scalar, Tensor, gradients, op
from .gamma import numbered, smooth

HERE = ("special",)


@op(grad_fn="SpecialEntrBackward0", exposed=HERE, elementwise=True)
@gradients("grad * (-log(self) - 1)")
def special_entr(self: Tensor) -> Inference:
    """``-x * log(x)``: 0 at 0, -inf below; integers become floats."""
    return smooth("entr", self)


@op(grad_fn="SpecialErfcxBackward0", exposed=HERE, elementwise=True)
@gradients("grad * (self * result * c - c)")
def special_erfcx(self: Tensor) -> Inference:
    """``exp(x ** 2) * erfc(x)``, exact far out; integers become floats."""
    return smooth("erfcx", self)


@op(grad_fn="MulBackward1", exposed=HERE, elementwise=True, out=Out.OVERLAPPING)
@gradients("grad * (exp(self * self * c) * c)")
def special_ndtr(self: Tensor) -> Inference:
    """The standard normal distribution function, the area under the bell curve up to x; integers become floats."""
    return smooth("ndtr", self)


@op(grad_fn="SpecialLogNdtrBackward0", exposed=HERE, elementwise=True)
@gradients("grad / special_erfcx(self * c) * c")
def special_log_ndtr(self: Tensor) -> Inference:
    """The logarithm of the standard normal distribution function, exact far out; integers become floats."""
    return smooth("log_ndtr", self)


@op(grad_fn="SpecialNdtriBackward0", exposed=HERE, elementwise=True)
@gradients("grad * (exp(result * result * c) / c)")
def special_ndtri(self: Tensor) -> Inference:
    """The quantile of the standard normal distribution: infinite at 0 and 1, NaN outside; integers become floats."""
    return smooth("ndtri", self)


@op(grad_fn="XlogyBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients(
    self=(
        "(masked_fill((s := xlogy.XlogyBackward2(grad, c)), c) if other == 0 else s) if is_number(other)"
        " else masked_fill(xlogy(grad, other), c)"
    ),
    other="grad * self / other",
    saves={"self": "self other", "other": "self other"},
)
def xlogy(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """``self * log(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
    return numbered(smooth("xlogy", self, other), "XlogyBackward", self, other)


@op(grad_fn="SpecialXlog1PyBackward0", exposed=HERE, elementwise=True)
@gradients(
    self=(
        "special_xlog1py.SpecialXlog1PyBackward2(grad, c) if is_number(other)"
        " else masked_fill(special_xlog1py(grad, other), c)"
    ),
    other="grad * self / (other + 1)",
    saves={"self": "self other", "other": "self other"},
)
def special_xlog1py(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """``self * log1p(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
    return numbered(smooth("xlog1py", self, other), "SpecialXlog1PyBackward", self, other)


@op(
    grad_fn="I0Backward0",
    inplace=True,
    exposed=("function", "method", "special"),
    elementwise=True,
    inplace_function=True,
)
@gradients("grad * special_i1(self)")
def i0(self: Tensor) -> Inference:
    """The modified Bessel function of the first kind, of order 0; integers become floats."""
    return smooth("i0", self)


@op(grad_fn="SpecialI0EBackward0", exposed=HERE, elementwise=True)
@gradients("grad * (special_i1e(self) - sgn(self) * result)")
def special_i0e(self: Tensor) -> Inference:
    """``exp(-|x|) * i0(x)``, which does not overflow; integers become floats."""
    return smooth("i0e", self)


@op(grad_fn="SpecialI1Backward0", exposed=HERE, elementwise=True)
@gradients("grad * where(c, i0(self) - result / where(c, self))")
def special_i1(self: Tensor) -> Inference:
    """The modified Bessel function of the first kind, of order 1; integers become floats."""
    return smooth("i1", self)


@op(grad_fn="SpecialI1EBackward0", exposed=HERE, elementwise=True)
@gradients("grad * where(c, special_i0e(self) - result * (sgn(self) + reciprocal(where(c, self))))")
def special_i1e(self: Tensor) -> Inference:
    """``exp(-|x|) * i1(x)``, which does not overflow; integers become floats."""
    return smooth("i1e", self)
