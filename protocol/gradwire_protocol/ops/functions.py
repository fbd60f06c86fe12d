"""Elementwise functions of one number: exponentials, logarithms, trigonometry, the error function, rounding."""

from __future__ import annotations

from ..accepts import REAL, require
from ..autocast import GPU_FLOAT32
from ..dtypes import FLOATING
from ..errors import ArgumentError
from ..meta import Inference, Meta
from ..promotion import Promote
from ..shapes import elementwise
from ..table import Float, Out, Tensor, gradients, op


def _smooth(self: Meta) -> Inference:
    """The rule of functions with values between the integers: integers become the default float dtype."""
    return elementwise(self, promotion=Promote.INT_TO_FLOAT)


def _smooth_real(name: str, self: Meta) -> Inference:
    inferred = _smooth(self)
    require(name, inferred.outs[0].dtype, (FLOATING,))
    return inferred


@op(grad_fn="ReciprocalBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("-grad * conj(result * result)")
def reciprocal(self: Tensor) -> Inference:
    """``1 / self``; integers become floats."""
    return _smooth(self)


@op(grad_fn="ExpBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * conj(result)")
def exp(self: Tensor) -> Inference:
    """e to the power of ``self``; integers become floats."""
    return _smooth(self)


@op(grad_fn="Exp2Backward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad * conj(result) * c")
def exp2(self: Tensor) -> Inference:
    """2 to the power of ``self``; integers become floats."""
    return _smooth(self)


@op(grad_fn="Expm1Backward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * (conj(result) + 1)")
def expm1(self: Tensor) -> Inference:
    """``exp(self) - 1``, exact near 0; integers become floats."""
    return _smooth(self)


@op(grad_fn="LogBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad / conj(self)")
def log(self: Tensor) -> Inference:
    """The natural logarithm: -inf at 0, NaN below; integers become floats."""
    return _smooth(self)


@op(grad_fn="Log2Backward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad / (conj(self) * c)")
def log2(self: Tensor) -> Inference:
    """The logarithm to base 2; integers become floats."""
    return _smooth(self)


@op(grad_fn="Log10Backward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad / (conj(self) * c)")
def log10(self: Tensor) -> Inference:
    """The logarithm to base 10; integers become floats."""
    return _smooth(self)


@op(grad_fn="Log1PBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad / (conj(self) + 1)")
def log1p(self: Tensor) -> Inference:
    """``log(1 + self)``, exact near 0; integers become floats."""
    return _smooth(self)


@op(grad_fn="SqrtBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad / (conj(result) * 2)")
def sqrt(self: Tensor) -> Inference:
    """The square root: NaN below 0, an infinite gradient at 0; integers become floats."""
    return _smooth(self)


@op(grad_fn="RsqrtBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * conj(result ** 3) * -0.5")
def rsqrt(self: Tensor) -> Inference:
    """``1 / sqrt(self)``; integers become floats."""
    return _smooth(self)


@op(grad_fn="SinBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad * conj(cos(self))")
def sin(self: Tensor) -> Inference:
    """Sine of an angle in radians; integers become floats."""
    return _smooth(self)


@op(grad_fn="CosBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad * -conj(sin(self))")
def cos(self: Tensor) -> Inference:
    """Cosine of an angle in radians; integers become floats."""
    return _smooth(self)


@op(grad_fn="TanBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * conj(result * result + 1)")
def tan(self: Tensor) -> Inference:
    """Tangent of an angle in radians; integers become floats."""
    return _smooth(self)


@op(grad_fn="AsinBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * conj(rsqrt(1 - self * self))")
def asin(self: Tensor) -> Inference:
    """The angle whose sine is ``self``: NaN outside -1 to 1; integers become floats."""
    return _smooth(self)


@op(grad_fn="AcosBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * -conj(rsqrt(1 - self * self))")
def acos(self: Tensor) -> Inference:
    """The angle whose cosine is ``self``: NaN outside -1 to 1; integers become floats."""
    return _smooth(self)


@op(grad_fn="AtanBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad / conj(self * self + 1)")
def atan(self: Tensor) -> Inference:
    """The angle whose tangent is ``self``; integers become floats."""
    return _smooth(self)


@op(grad_fn="SinhBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * conj(cosh(self))")
def sinh(self: Tensor) -> Inference:
    """Hyperbolic sine; integers become floats."""
    return _smooth(self)


@op(grad_fn="CoshBackward0", inplace=True, elementwise=True, inplace_function=True, autocast=GPU_FLOAT32)
@gradients("grad * conj(sinh(self))")
def cosh(self: Tensor) -> Inference:
    """Hyperbolic cosine; integers become floats."""
    return _smooth(self)


@op(grad_fn="TanhBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("tanh_backward(grad, result)")
def tanh(self: Tensor) -> Inference:
    """Hyperbolic tangent; integers become floats."""
    return _smooth(self)


@op(grad_fn="AsinhBackward0", inplace="AsinhBackward1", elementwise=True, inplace_function=True)
@gradients("grad * conj(rsqrt(self * self + 1))")
def asinh(self: Tensor) -> Inference:
    """Inverse hyperbolic sine; integers become floats."""
    return _smooth(self)


@op(grad_fn="AcoshBackward0", inplace="AcoshBackward1", elementwise=True, inplace_function=True)
@gradients(
    "grad * (conj.ConjBackward0(rsqrt(self - 1) * rsqrt(self + 1)) if is_complex(self) else rsqrt(self * self - 1))"
)
def acosh(self: Tensor) -> Inference:
    """Inverse hyperbolic cosine: NaN below 1; integers become floats."""
    return _smooth(self)


@op(grad_fn="AtanhBackward0", inplace="AtanhBackward1", elementwise=True, inplace_function=True)
@gradients("grad / conj(1 - self * self)")
def atanh(self: Tensor) -> Inference:
    """Inverse hyperbolic tangent: NaN outside -1 to 1; integers become floats."""
    return _smooth(self)


@op(grad_fn="SigmoidBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("sigmoid_backward(grad, result)")
def sigmoid(self: Tensor) -> Inference:
    """``1 / (1 + exp(-self))``; integers become floats."""
    return _smooth(self)


@op(grad_fn="LogitBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("where(c, grad / (self * (1 - self)))")
def logit(self: Tensor, eps: Float | None = None) -> Inference:
    """``log(x / (1 - x))``; with ``eps``, x is first cut to the range from ``eps`` to ``1 - eps``."""
    return _smooth_real("logit", self)


@op(grad_fn="ErfBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad * (exp(-self * self) * c)")
def erf(self: Tensor) -> Inference:
    """The error function of real numbers; integers become floats."""
    return _smooth_real("erf", self)


@op(grad_fn="ErfcBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad * (exp(-self * self) * c)")
def erfc(self: Tensor) -> Inference:
    """``1 - erf(self)``, exact far out; integers become floats."""
    return _smooth_real("erfc", self)


@op(grad_fn="ErfinvBackward0", inplace=True, elementwise=True, autocast=GPU_FLOAT32)
@gradients("grad * (exp(square(erfinv(self))) / c)")
def erfinv(self: Tensor) -> Inference:
    """The inverse of :func:`erf`: infinite at -1 and 1, NaN outside; integers become floats."""
    return _smooth_real("erfinv", self)


@op(grad_fn="SincBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("where(c, grad * conj((cos(self * c) * (self * c) - sin(self * c)) / (self * c * self)))")
def sinc(self: Tensor) -> Inference:
    """``sin(pi * x) / (pi * x)``, 1 at 0; integers become floats."""
    return _smooth(self)


@op(grad_fn="Deg2RadBackward0", inplace=True, linear=True, elementwise=True, inplace_function=True)
@gradients("grad * c")
def deg2rad(self: Tensor) -> Inference:
    """Degrees to radians; integers become floats."""
    return _smooth_real("deg2rad", self)


@op(grad_fn="Rad2DegBackward0", inplace=True, linear=True, elementwise=True, inplace_function=True)
@gradients("grad * c")
def rad2deg(self: Tensor) -> Inference:
    """Radians to degrees; integers become floats."""
    return _smooth_real("rad2deg", self)


def _rounding(name: str, self: Meta) -> Inference:
    require(name, self.dtype, REAL)
    return elementwise(self)


@op(grad_fn="FloorBackward0", inplace=True, elementwise=True, inplace_function=True, out=Out.EXACT)
@gradients("c")
def floor(self: Tensor) -> Inference:
    """Round down; integers stay as they are. The gradient is zero."""
    return _rounding("floor", self)


@op(grad_fn="CeilBackward0", inplace=True, elementwise=True, inplace_function=True, out=Out.EXACT)
@gradients("c")
def ceil(self: Tensor) -> Inference:
    """Round up; integers stay as they are. The gradient is zero."""
    return _rounding("ceil", self)


@op(grad_fn="TruncBackward0", inplace=True, elementwise=True, inplace_function=True, out=Out.EXACT)
@gradients("c")
def trunc(self: Tensor) -> Inference:
    """Round towards zero; integers stay as they are. The gradient is zero."""
    return _rounding("trunc", self)


@op(
    grad_fn="RoundBackward0", inplace=True, keyword_only=("decimals",), elementwise=True, inplace_function=True,
    out=Out.EXACT,
)  # fmt: skip
@gradients("c")
def round(self: Tensor, decimals: int = 0) -> Inference:
    """Round to ``decimals`` places, halves to the even neighbour. The gradient is zero.

    Integers stay as they are, and take no ``decimals``.
    """
    if not decimals:
        return _rounding("round", self)
    require("round with decimals", self.dtype, (FLOATING,))
    if not -400 < decimals < 400:
        raise ArgumentError(f"round: decimals={decimals} exceeds the range of floats")
    return elementwise(self, grad_fn="RoundBackward1")


@op(grad_fn="FracBackward0", inplace=True, elementwise=True, inplace_function=True, out=Out.EXACT)
@gradients("grad")
def frac(self: Tensor) -> Inference:
    """What :func:`trunc` drops: ``self - trunc(self)``. Floating point only."""
    require("frac", self.dtype, (FLOATING,))
    return elementwise(self)


@op(grad_fn="NanToNumBackward0", inplace=True, elementwise=True, inplace_function=True, out=Out.EXACT)
@gradients("grad * c", saves="self")
def nan_to_num(
    self: Tensor, nan: Float | None = None, posinf: Float | None = None, neginf: Float | None = None
) -> Inference:
    """Replace NaN by ``nan`` (0) and infinities by ``posinf`` and ``neginf`` (the dtype's extremes)."""
    return elementwise(self)
