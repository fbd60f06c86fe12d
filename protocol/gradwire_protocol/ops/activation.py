"""Activations: elementwise functions that networks put between their layers."""

from __future__ import annotations

import math

from ..accepts import ORDERED, REAL, require
from ..autocast import GPU_FLOAT32, LOWER
from ..dtypes import BOOLEAN, COMPLEX, FLOATING, bool_, uint8
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..meta import Inference, Meta, meta, new
from ..promotion import Promote
from ..shapes import canonical_dim, common_device, elementwise, elementwise_stride
from ..table import Expanded, Number, Out, Real, Tensor, check_range, gradients, op

NN = ("nn.functional",)


def _floating(name: str, self: Meta) -> Inference:
    require(name, self.dtype, (FLOATING,))
    return elementwise(self)


@op(
    grad_fn="ReluBackward0", inplace=True, exposed=("function", "method", "nn.functional"), elementwise=True,
    inplace_function=True,
)  # fmt: skip
@gradients("threshold_backward(grad, result)")
def relu(self: Tensor) -> Inference:
    """``max(self, 0)``; NaN stays. The gradient at 0 is 0."""
    if self.dtype.category == BOOLEAN:
        raise DTypeError("relu is not defined on bools")
    require("relu", self.dtype, REAL)
    return elementwise(self)


@op(grad_fn="HardtanhBackward0", inplace=True, exposed=NN, elementwise=True)
@gradients("hardtanh_backward(grad, self)")
def relu6(self: Tensor) -> Inference:
    """``self`` cut to the range from 0 to 6. The gradient at either end is 0."""
    if self.dtype.category == BOOLEAN:
        raise DTypeError("relu6 is not defined on bools")
    require("relu6", self.dtype, REAL)
    return elementwise(self)


@op(grad_fn="HardtanhBackward0", inplace=True, exposed=NN, elementwise=True)
@gradients("hardtanh_backward(grad, self)")
def hardtanh(self: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Inference:
    """``self`` cut to the range from ``min_val`` to ``max_val``. The gradient at either end is 0."""
    if self.dtype.category == BOOLEAN:
        raise DTypeError("hardtanh is not defined on bools")
    require("hardtanh", self.dtype, REAL)
    if isinstance(min_val, complex) or isinstance(max_val, complex):
        raise ArgumentError("hardtanh: the bounds are real numbers")
    if min_val > max_val:
        raise ArgumentValueError(f"hardtanh: min_val is {min_val}, which is above max_val, {max_val}")
    for name, bound in (("min_val", min_val), ("max_val", max_val)):
        check_range("hardtanh", name, bound, self.dtype)
    if self.dtype is uint8 and min_val < 0:
        raise DTypeError(f"hardtanh: an unsigned tensor cannot be cut at {min_val}")
    return elementwise(self)


@op(grad_fn="LeakyReluBackward0", inplace="LeakyReluBackward1", exposed=NN, elementwise=True)
@gradients("leaky_relu_backward(grad, self)")
def leaky_relu(self: Tensor, negative_slope: Real = 0.01) -> Inference:
    """``self`` where positive, else ``negative_slope * self``."""
    return _floating("leaky_relu", self)


@op(grad_fn="PreluKernelBackward0", exposed=("function", "method", "nn.functional"), autocast=LOWER)
@gradients(
    self="where(grad, grad * reshape(weight))",
    weight="reshape(sum_to_size.SumBackward0((s := where(c, grad * self))) if self.ndim == 0 else sum_to_size(s))",
    saves={"self": "self weight", "weight": "self"},
)
def prelu(self: Tensor, weight: Tensor) -> Inference:
    """``self`` where positive, else ``weight * self``.

    The weight is one number, or one per channel: per entry of the second dimension. Its dtype is that of ``self``.
    """
    require("prelu", self.dtype, (FLOATING,))
    if weight.dtype is not self.dtype:
        raise DTypeError(f"prelu: the weight is {weight.dtype.name}; it must be {self.dtype.name} as self is")
    if weight.ndim > 1:
        raise ShapeError(f"prelu: the weight has at most one dimension; its shape is {list(weight.shape)}")
    channels = self.shape[1] if self.ndim >= 2 else 1
    if weight.numel != 1 and weight.numel != channels:
        raise ShapeError(f"prelu: {weight.numel} weights do not fit {channels} channels, of shape {list(self.shape)}")
    if weight.numel != 1 and not self.ndim:
        raise ShapeError("prelu: a 0-dim tensor takes one weight")
    common_device(self, weight)
    return elementwise(self)


@op(grad_fn="EluBackward0", inplace="EluBackward1", exposed=NN, elementwise=True)
@gradients("where(grad * (exp(where(self, c) * c) * c), grad)")
def elu(self: Tensor, alpha: Real = 1.0) -> Inference:
    """``self`` where positive, else ``alpha * (exp(self) - 1)``."""
    return _floating("elu", self)


@op(
    grad_fn="EluBackward0", inplace="EluBackward1", exposed=("function", "nn.functional"), elementwise=True,
    inplace_function=True,
)  # fmt: skip
@gradients("where(grad * (exp(where(self, c) * c) * c), grad * c)")
def selu(self: Tensor) -> Inference:
    """:func:`elu` with the constants that keep mean 0 and variance 1 from layer to layer."""
    return _floating("selu", self)


@op(
    grad_fn="CeluBackward0", inplace="CeluBackward1", exposed=("function", "nn.functional"), elementwise=True,
    inplace_function=True,
)  # fmt: skip
@gradients("where(grad * (exp(where(self, c) * c) * c), grad)")
def celu(self: Tensor, alpha: Real = 1.0) -> Inference:
    """``self`` where positive, else ``alpha * (exp(self / alpha) - 1)``: smooth at 0 for every alpha but 0."""
    return _floating("celu", self).checking(_check_divisor)


def _check_divisor(self: object, alpha: float) -> None:
    if alpha == 0:
        raise ArgumentError("celu: alpha must not be 0")


@op(grad_fn="GeluBackward0", exposed=NN, elementwise=True, out=Out.EXACT)
@gradients("gelu_backward(grad, self)")
def gelu(self: Tensor, approximate: str = "none") -> Inference:
    """``self`` times the normal distribution's probability of a smaller value.

    ``approximate="tanh"`` replaces the error function by a hyperbolic tangent.
    """
    _need_approximate("gelu", approximate)
    return _floating("gelu", self)


def _need_approximate(name: str, approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"{name}: approximate must be 'none' or 'tanh', not {approximate!r}")


@op(grad_fn="SiluBackward0", inplace=True, exposed=NN, elementwise=True)
@gradients("silu_backward(grad, self)")
def silu(self: Tensor) -> Inference:
    """``self * sigmoid(self)``."""
    require("silu", self.dtype, (FLOATING, COMPLEX))
    return elementwise(self)


@op(grad_fn="MishBackward0", inplace=True, exposed=NN, elementwise=True)
@gradients("grad * ((s := tanh(softplus(self))) + self * sigmoid(self) * (1 - s * s))")
def mish(self: Tensor) -> Inference:
    """``self * tanh(softplus(self))``."""
    return _floating("mish", self)


@op(grad_fn="SoftplusBackward0", exposed=NN, elementwise=True, out=Out.EXACT, autocast=GPU_FLOAT32)
@gradients("where(grad, grad * sigmoid(self * c))")
def softplus(self: Tensor, beta: Real = 1.0, threshold: Real = 20.0) -> Inference:
    """``log(1 + exp(beta * self)) / beta``; ``self`` itself where ``beta * self`` is above ``threshold``."""
    return _floating("softplus", self)


@op(grad_fn="LogSigmoidBackward0", exposed=NN, elementwise=True, out=Out.EXACT | Out.SILENT)
@gradients("grad * sigmoid(-self)")
def logsigmoid(self: Tensor) -> Inference:
    """``log(sigmoid(self))`` without underflow on the way."""
    require("logsigmoid", self.dtype, (FLOATING,))
    return new(self.shape, self.dtype, self.device, compute=self.dtype)


@op(grad_fn="DivBackward0", exposed=NN, elementwise=True)
@gradients(
    "(t := grad / (s := abs(self) + 1)) - real(grad * conj.ConjBackward0(self)) / (s * s) * sgn(self)"
    " if is_complex(self) else t + -grad * (self / s / s) * sgn(self)"
)
def softsign(self: Tensor) -> Inference:
    """``self / (1 + |self|)``; integers become floats."""
    return elementwise(self, promotion=Promote.INT_TO_FLOAT)


@op(grad_fn="SubBackward0", exposed=NN, elementwise=True)
@gradients("grad * conj(tanh(self) * tanh(self))")
def tanhshrink(self: Tensor) -> Inference:
    """``self - tanh(self)``; integers become floats."""
    if self.dtype.category == BOOLEAN:
        raise DTypeError("tanhshrink is not defined on bools")
    return elementwise(self, promotion=Promote.INT_TO_FLOAT)


@op(grad_fn="HardshrinkBackward0", exposed=("function", "method", "nn.functional"), elementwise=True, out=Out.EXACT)
@gradients("where(c, grad)", saves="self")
def hardshrink(self: Tensor, lambd: Real = 0.5) -> Inference:
    """0 from ``-lambd`` to ``lambd``, elsewhere ``self``."""
    return _floating("hardshrink", self)


@op(grad_fn="SoftshrinkBackward0", exposed=NN, elementwise=True, out=Out.EXACT)
@gradients("where(c, grad)", saves="self")
def softshrink(self: Tensor, lambd: Real = 0.5) -> Inference:
    """``self`` moved towards 0 by ``lambd``, which is not negative, and no further than 0."""
    return _floating("softshrink", self).checking(_check_width)


def _check_width(self: object, lambd: float) -> None:
    if not 0 <= lambd < math.inf:
        raise ArgumentError(f"softshrink: lambd is {lambd}; it must be finite and not negative")


@op(grad_fn="HardsigmoidBackward0", inplace=True, exposed=NN, elementwise=True)
@gradients("where(grad / 6, c)", saves="self")
def hardsigmoid(self: Tensor) -> Inference:
    """``relu6(self + 3) / 6``. The gradient at -3 and 3 is 0."""
    return _floating("hardsigmoid", self)


@op(grad_fn="HardswishBackward0", inplace=True, exposed=NN, elementwise=True)
@gradients("where(c, where(grad * (self / 3 + 0.5), grad))")
def hardswish(self: Tensor) -> Inference:
    """``self * relu6(self + 3) / 6``."""
    return _floating("hardswish", self)


@op(
    grad_fn="ThresholdBackward0", inplace="ThresholdBackward1", exposed=("function", "nn.functional"),
    expanded=Expanded.NUMBERS, elementwise=True, inplace_function=True,
)  # fmt: skip
@gradients("threshold_backward(grad, self)")
def threshold(self: Tensor, threshold: Real, value: Real) -> Inference:
    """``self`` where above ``threshold``, else ``value``."""
    require("threshold", self.dtype, ORDERED[1:])
    return elementwise(self)


@op(grad_fn="GluBackward0", exposed=(), along=True)
@gradients("cat(grad * (s := sigmoid(narrow(self))), grad * narrow(self) * s * (1 - s))")
def glu(self: Tensor, dim: int = -1) -> Inference:
    """The first half of a dimension times the sigmoid of the second (Dauphin et al., 2016)."""
    if not self.ndim:
        raise ShapeError("glu halves a dimension, a number has none")
    at = canonical_dim(dim, self.ndim)
    if self.shape[at] % 2:
        raise ShapeError(f"glu: dimension {dim} of {list(self.shape)} cannot be halved")
    require("glu", self.dtype, (FLOATING,))
    shape = (*self.shape[:at], self.shape[at] // 2, *self.shape[at + 1 :])
    half = meta(shape, self.dtype, self.device, self.stride)
    stride = elementwise_stride(shape, [half, half])
    return new(shape, self.dtype, self.device, compute=self.dtype, stride=stride)


def check_dropout(name: str, self: Meta, p: float) -> None:
    """Check a dropout probability and what it is applied to."""
    if not 0.0 <= p <= 1.0:
        raise ArgumentValueError(f"{name}: p must be a probability, from 0 to 1, not {p}")
    if self.dtype.category < FLOATING:
        raise DTypeError(f"{name} takes floating point and complex tensors, not {self.dtype.name}")


@op(grad_fn="MulBackward0", results=2, random=True, exposed=(), elementwise=True)
@gradients("grad * c * c", saves="result1")
def dropout(self: Tensor, p: float = 0.5, training: bool = True) -> Inference:
    """Zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    Returns the result and the bool mask of what was kept. Without ``training`` everything is kept as it is.
    """
    check_dropout("dropout", self, p)
    stride = elementwise_stride(self.shape, [self])
    return _dropped(self, meta(self.shape, bool_, self.device, stride))


@op(grad_fn="MulBackward0", results=2, random=True, exposed=())
@gradients("grad * c * c", saves="result1")
def feature_dropout(self: Tensor, p: float = 0.5, training: bool = True) -> Inference:
    """Zero whole channels (the second dimension) of each sample with probability ``p``, scale the others.

    Returns the result and the bool mask of the channels that were kept, which broadcasts with ``self``.
    """
    check_dropout("feature_dropout", self, p)
    if self.ndim < 2:
        raise ShapeError(f"feature_dropout takes at least 2 dimensions; the shape is {list(self.shape)}")
    return _dropped(self, meta((*self.shape[:2], *[1] * (self.ndim - 2)), bool_, self.device))


def _dropped(self: Meta, mask: Meta) -> Inference:
    out = elementwise(self)
    return Inference((out.outs[0], mask), out.compute)


# What the derivatives of the hottest activations compute, as one operation each. Clients offer none of them by name.


def _gradient(name: str, grad: Meta, operand: Meta, kinds: tuple[int, ...] = (FLOATING,)) -> Inference:
    require(name, grad.dtype, kinds)
    require(name, operand.dtype, kinds)
    return elementwise(grad, operand)


@op(grad_fn="ThresholdBackwardBackward0", exposed=(), elementwise=True)
@gradients(grad="threshold_backward(grad0, self)", self="c")
def threshold_backward(grad: Tensor, self: Tensor, threshold: Real) -> Inference:
    """``grad`` where ``self`` is above ``threshold`` or NaN, else 0."""
    return _gradient("threshold_backward", grad, self)


@op(grad_fn="HardtanhBackwardBackward0", exposed=(), elementwise=True)
@gradients(grad="hardtanh_backward(grad0, self)", self="c")
def hardtanh_backward(grad: Tensor, self: Tensor, min_val: Real, max_val: Real) -> Inference:
    """``grad`` where ``self`` is between ``min_val`` and ``max_val`` or NaN, else 0."""
    return _gradient("hardtanh_backward", grad, self)


@op(grad_fn="LeakyReluBackwardBackward0", exposed=(), elementwise=True)
@gradients(grad="leaky_relu_backward(grad0, self)", self="c")
def leaky_relu_backward(grad: Tensor, self: Tensor, negative_slope: Real) -> Inference:
    """``grad`` where ``self`` is positive, else ``negative_slope * grad``."""
    return _gradient("leaky_relu_backward", grad, self)


@op(grad_fn="SigmoidBackwardBackward0", exposed=(), elementwise=True)
@gradients(grad="grad0 * (output * (1 - output))", output="conj(grad0) * grad * conj(1 - output * 2)")
def sigmoid_backward(grad: Tensor, output: Tensor) -> Inference:
    """``grad * output * (1 - output)`` (conjugated): the gradient of a sigmoid that gave ``output``."""
    return _gradient("sigmoid_backward", grad, output, (FLOATING, COMPLEX))


@op(grad_fn="TanhBackwardBackward0", exposed=(), elementwise=True)
@gradients(grad="grad0 * (1 - output * output)", output="conj(grad0) * grad * conj(output * -2)")
def tanh_backward(grad: Tensor, output: Tensor) -> Inference:
    """``grad * (1 - output**2)`` (conjugated): the gradient of a hyperbolic tangent that gave ``output``."""
    return _gradient("tanh_backward", grad, output, (FLOATING, COMPLEX))


@op(grad_fn="GeluBackwardBackward0", exposed=(), elementwise=True)
@gradients(
    grad="gelu_backward(grad0, self)",
    self=(
        "grad0 * grad * (exp(self * self * c) * (c - self * self) * c) if approximate == 'none'"
        " else mul(grad, grad0, self)"
    ),
)
def gelu_backward(grad: Tensor, self: Tensor, approximate: str = "none") -> Inference:
    """The gradient of :func:`gelu` at ``self``."""
    _need_approximate("gelu_backward", approximate)
    return _gradient("gelu_backward", grad, self)


@op(grad_fn="SiluBackwardBackward0", exposed=(), elementwise=True)
@gradients(
    grad="grad0 * (s := sigmoid(self)) * (self * sigmoid(-self) + 1)",
    self="grad0 * grad * (s * (t := 1 - s) * (self * (t - s) + 1))",
)
def silu_backward(grad: Tensor, self: Tensor) -> Inference:
    """The gradient of :func:`silu` at ``self``."""
    return _gradient("silu_backward", grad, self, (FLOATING, COMPLEX))
