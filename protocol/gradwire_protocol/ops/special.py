"""Special functions with a derivative: entropy, the normal distribution, scaled error and Bessel functions."""

from __future__ import annotations

from ..meta import Inference
from ..table import Scalar, Tensor, op
from .gamma import numbered, smooth

HERE = ("special",)


@op(grad_fn="SpecialEntrBackward0", exposed=HERE)
def special_entr(self: Tensor) -> Inference:
    """``-x * log(x)``: 0 at 0, -inf below; integers become floats."""
    return smooth("entr", self)


@op(grad_fn="SpecialErfcxBackward0", exposed=HERE)
def special_erfcx(self: Tensor) -> Inference:
    """``exp(x ** 2) * erfc(x)``, exact far out; integers become floats."""
    return smooth("erfcx", self)


@op(grad_fn="MulBackward1", exposed=HERE)
def special_ndtr(self: Tensor) -> Inference:
    """The standard normal distribution function, the area under the bell curve up to x; integers become floats."""
    return smooth("ndtr", self)


@op(grad_fn="SpecialLogNdtrBackward0", exposed=HERE)
def special_log_ndtr(self: Tensor) -> Inference:
    """The logarithm of the standard normal distribution function, exact far out; integers become floats."""
    return smooth("log_ndtr", self)


@op(grad_fn="SpecialNdtriBackward0", exposed=HERE)
def special_ndtri(self: Tensor) -> Inference:
    """The quantile of the standard normal distribution: infinite at 0 and 1, NaN outside; integers become floats."""
    return smooth("ndtri", self)


@op(grad_fn="XlogyBackward0", inplace=True)
def xlogy(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """``self * log(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
    return numbered(smooth("xlogy", self, other), "XlogyBackward", self, other)


@op(grad_fn="SpecialXlog1PyBackward0", exposed=HERE)
def special_xlog1py(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """``self * log1p(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
    return numbered(smooth("xlog1py", self, other), "SpecialXlog1PyBackward", self, other)


@op(grad_fn="I0Backward0", inplace=True, exposed=("function", "method", "special"))
def i0(self: Tensor) -> Inference:
    """The modified Bessel function of the first kind, of order 0; integers become floats."""
    return smooth("i0", self)


@op(grad_fn="SpecialI0EBackward0", exposed=HERE)
def special_i0e(self: Tensor) -> Inference:
    """``exp(-|x|) * i0(x)``, which does not overflow; integers become floats."""
    return smooth("i0e", self)


@op(grad_fn="SpecialI1Backward0", exposed=HERE)
def special_i1(self: Tensor) -> Inference:
    """The modified Bessel function of the first kind, of order 1; integers become floats."""
    return smooth("i1", self)


@op(grad_fn="SpecialI1EBackward0", exposed=HERE)
def special_i1e(self: Tensor) -> Inference:
    """``exp(-|x|) * i1(x)``, which does not overflow; integers become floats."""
    return smooth("i1e", self)
