"""Elementwise arithmetic: sums, products, quotients, powers, extremes, selection, complex parts."""

from __future__ import annotations

from typing import Final

from ..accepts import ORDERED, REAL, require
from ..autocast import CPU_FLOAT32, GPU_FLOAT32, GPU_WIDEST
from ..dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL, bool_, complex64, float16, float32, float64, uint8
from ..errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, new, view
from ..promotion import Promote, ScalarKind
from ..shapes import broadcast, common_device, elementwise, elementwise_stride
from ..table import Element, Expanded, Factor, Out, Scalar, Tensor, gradients, op


def _kind(scalar: object) -> ScalarKind:
    """The kind of a number that may be a default, and then is the number itself."""
    kind = scalar if isinstance(scalar, ScalarKind) else ScalarKind.of(scalar)
    assert kind is not None
    return kind


def _check_alpha(name: str, inferred: Inference, alpha: object) -> Inference:
    category, kind = inferred.outs[0].dtype.category, _kind(alpha)
    if kind is ScalarKind.BOOL and category != BOOLEAN:
        raise ArgumentError(f"{name}: a bool alpha needs a bool result, not {inferred.outs[0].dtype.name}")
    if kind.category > max(category, INTEGRAL):
        raise ArgumentError(f"{name}: a {kind.value} alpha does not fit a {inferred.outs[0].dtype.name} result")
    return inferred


def _refuse_bool(name: str, *operands: object) -> None:
    for operand in operands:
        if operand is ScalarKind.BOOL or (isinstance(operand, Meta) and operand.dtype.category == BOOLEAN):
            raise DTypeError(f"{name} is not defined on bools; use ^ or logical_xor, or ~ to invert a mask")


def _defined_on(name: str, inferred: Inference) -> Inference:
    """Refuse an op whose result would be of bools."""
    if inferred.outs[0].dtype.category == BOOLEAN:
        raise Unsupported(f"{name} is not defined on bools; use logical_and and its like, or convert to integers")
    return inferred


def _need_tensor(name: str, *operands: object) -> None:
    if not any(isinstance(operand, Meta) for operand in operands):
        raise ArgumentTypeError(f"{name} needs a tensor among its operands")


@op(grad_fn="AddBackward0", inplace=True, keyword_only=("alpha",), linear=True, elementwise=True, wrapped=("other",))
@gradients(self="grad", other="times_alpha(grad)")
def add(self: Tensor, other: Tensor | Scalar, alpha: Scalar = 1) -> Inference:
    """``self + alpha * other``, with broadcasting and promotion. On bools it is a logical or.

    ``alpha`` may not be of a higher category than the result: no float alpha for integers.
    """
    return _check_alpha("add", elementwise(self, other), alpha)


@op(grad_fn="SubBackward0", inplace=True, keyword_only=("alpha",), linear=True, elementwise=True, wrapped=("other",))
@gradients(self="grad", other="times_alpha(-grad)")
def sub(self: Tensor, other: Tensor | Scalar, alpha: Scalar = 1) -> Inference:
    """``self - alpha * other``, with broadcasting and promotion. Not defined on bools."""
    _refuse_bool("sub", self, other)
    return _check_alpha("sub", elementwise(self, other), alpha)


@op(grad_fn="RsubBackward0", linear=True, elementwise=True)
@gradients(self="times_alpha(-grad)", other="grad")
def rsub(self: Tensor, other: Tensor | Scalar, alpha: Scalar = 1) -> Inference:
    """``other - alpha * self``: subtraction with its operands exchanged. Not defined on bools."""
    _refuse_bool("rsub", self, other)
    inferred = _check_alpha("rsub", elementwise(other, self), alpha)
    return inferred if isinstance(other, Meta) else inferred.named("RsubBackward1")


@op(grad_fn="MulBackward0", inplace=True, multilinear=True, elementwise=True, wrapped=("other",))
@gradients(self="grad * conj(other)", other="grad * conj(self)")
def mul(self: Tensor, other: Tensor | Scalar) -> Inference:
    """Multiply elementwise, with broadcasting and promotion. On bools it is a logical and."""
    return elementwise(self, other)


@op(grad_fn="DivBackward0", inplace=True, keyword_only=("rounding_mode",), elementwise=True, wrapped=("other",))
@gradients(
    self="grad / conj(other) if rounding_mode is None else c",
    other="-grad * conj(self / other / other) if rounding_mode is None else c",
)
def div(self: Tensor, other: Tensor | Scalar, rounding_mode: str | None = None) -> Inference:
    """Divide elementwise.

    Without ``rounding_mode`` integers become floats. ``"trunc"`` drops the fraction of the quotient and
    ``"floor"`` rounds it down; both keep integers, and then an integer division by zero is an error.
    """
    if rounding_mode is None:
        return elementwise(self, other, promotion=Promote.INT_TO_FLOAT)
    if rounding_mode not in ("trunc", "floor"):
        raise ArgumentError(f"div: rounding_mode must be None, 'trunc' or 'floor', not {rounding_mode!r}")
    inferred = elementwise(self, other, grad_fn="DivBackward2")
    require(f"div with rounding_mode={rounding_mode!r}", inferred.outs[0].dtype, REAL)
    return inferred


@op(
    grad_fn="NotImplemented", inplace=True, underivable='it has no derivative, div(..., rounding_mode="floor") has one',
    elementwise=True,
)  # fmt: skip
def floor_divide(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """The quotient rounded down, as ``//`` in Python. It keeps integers; dividing one by zero is an error.

    Its result can require grad, but backward through it fails: use ``div(..., rounding_mode="floor")``.
    """
    _need_tensor("floor_divide", self, other)
    inferred = elementwise(self, other)
    require("floor_divide", inferred.outs[0].dtype, REAL)
    return inferred


@op(grad_fn="RemainderBackward1", inplace=True, elementwise=True, wrapped=("self",))
@gradients(self="grad", other="-grad * div.DivBackward2(self, other)")
def remainder(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """What is left by :func:`floor_divide`, as ``%`` in Python: it has the sign of the divisor."""
    _need_tensor("remainder", self, other)
    inferred = elementwise(self, other)
    require("remainder", inferred.outs[0].dtype, REAL)
    return inferred if isinstance(other, Meta) else inferred.named("RemainderBackward0")


@op(grad_fn="FmodBackward1", inplace=True, elementwise=True)
@gradients(self="grad", other="-grad * div.DivBackward2(self, other)")
def fmod(self: Tensor, other: Tensor | Scalar) -> Inference:
    """What is left of a division truncated towards zero: it has the sign of the dividend."""
    inferred = elementwise(self, other)
    require("fmod", inferred.outs[0].dtype, REAL)
    return inferred if isinstance(other, Meta) else inferred.named("FmodBackward0")


def _check_exponent(self: object, exponent: int) -> None:
    if exponent < 0:
        raise ArgumentError(f"pow: an integer tensor cannot be raised to a negative integer power, {exponent}")
    if exponent >= 1 << 63:
        raise ArgumentError(f"pow: the exponent is {exponent}, which no integer dtype holds")


@op(grad_fn="PowBackward1", inplace=True, elementwise=True, autocast=GPU_FLOAT32)
@gradients(
    self=(
        "(c if exponent == 0 else grad * conj(self ** c * c)) if is_number(exponent)"
        " else where(c, grad * conj(pow(self, exponent - 1) * exponent))"
    ),
    exponent="grad * conj(result * c) if is_number(self) and self != 0 else where(c, grad * conj(result * log(self)))",
    saves={"self": "self exponent", "exponent": "self exponent result"},
)
def pow(self: Tensor | Scalar, exponent: Tensor | Element) -> Inference:
    """``self`` to the power of ``exponent``; one of them may be a number.

    Integers stay integers: a negative number as exponent is an error then, negative entries of an exponent
    tensor give 0 (or 1 and -1, where the base is).
    """
    _need_tensor("pow", self, exponent)
    inferred = elementwise(self, exponent, wrapped=not isinstance(self, Meta))
    if isinstance(exponent, Meta):
        _defined_on("pow", inferred)
    if not isinstance(exponent, Meta):
        named = inferred.named("PowBackward0")
        whole = inferred.outs[0].dtype.category == INTEGRAL
        return named.checking(_check_exponent) if whole and exponent is ScalarKind.INT else named
    return inferred if isinstance(self, Meta) else inferred.named("PowBackward2")


@op(grad_fn="PowBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("grad * conj(self * 2)")
def square(self: Tensor) -> Inference:
    """``self * self``; bools become int64."""
    return elementwise(self, ScalarKind.INT)


@op(grad_fn="NegBackward0", inplace=True, linear=True, elementwise=True, inplace_function=True, out=Out.EXACT)
@gradients("-grad")
def neg(self: Tensor) -> Inference:
    """``-self``. Not defined on bools; unsigned integers wrap around."""
    if self.dtype.category == BOOLEAN:
        raise DTypeError("neg is not defined on bools; use ~ or logical_not to invert a mask")
    return elementwise(self)


@op(grad_fn="AliasBackward0", linear=True, elementwise=True, view=True)
@gradients("grad")
def positive(self: Tensor) -> Inference:
    """``+self``: the tensor as it is. Not defined on bools."""
    if self.dtype.category == BOOLEAN:
        raise DTypeError("positive is not defined on bools")
    return view(self, self.shape, self.stride)


@op(grad_fn="AbsBackward0", inplace=True, elementwise=True, inplace_function=True, out=Out.EXACT)
@gradients("grad * sgn(self)")
def abs(self: Tensor) -> Inference:
    """The absolute value; of a complex number its magnitude, which is real. Not defined on bools."""
    return _defined_on("abs", elementwise(self, promotion=Promote.COMPLEX_TO_FLOAT))


@op(grad_fn="SignBackward0", inplace=True, elementwise=True, out=Out.EXACT)
@gradients("c")
def sign(self: Tensor) -> Inference:
    """-1, 0 or 1; NaN stays. For complex numbers see :func:`sgn`."""
    require("sign", self.dtype, ORDERED)
    return elementwise(self)


@op(grad_fn="SgnBackward0", inplace=True, elementwise=True, out=Out.EXACT)
@gradients("where(c, (grad - real(grad * conj.ConjBackward0(result)) * result) / abs(self)) if is_complex(self) else c")
def sgn(self: Tensor) -> Inference:
    """The sign; of a complex number the number of magnitude 1 in its direction, 0 for 0."""
    return elementwise(self)


def _extreme(name: str, self: Meta, other: Meta) -> Inference:
    inferred = elementwise(self, other)
    if inferred.outs[0].dtype.is_complex:
        raise DTypeError(f"{name} is not defined on complex numbers, which have no order")
    return inferred


@op(grad_fn="MaximumBackward0", elementwise=True)
@gradients("where(grad / 2, where(c, grad))", saves={"self": "self other", "other": "self other"})
def maximum(self: Tensor, other: Tensor) -> Inference:
    """The larger of two elements, NaN if either is. The gradient of a tie is split in halves."""
    return _extreme("maximum", self, other)


@op(grad_fn="MinimumBackward0", elementwise=True)
@gradients("where(grad / 2, where(c, grad))", saves={"self": "self other", "other": "self other"})
def minimum(self: Tensor, other: Tensor) -> Inference:
    """The smaller of two elements, NaN if either is. The gradient of a tie is split in halves."""
    return _extreme("minimum", self, other)


@op(grad_fn="FmaxBackward0", elementwise=True)
@gradients(self="where(grad, c)", other="where(c, grad)", saves={"self": "self other", "other": "self other"})
def fmax(self: Tensor, other: Tensor) -> Inference:
    """The larger of two elements; a NaN loses against a number. ``self`` gets the gradient of a tie."""
    return _extreme("fmax", self, other)


@op(grad_fn="FminBackward0", elementwise=True)
@gradients(self="where(grad, c)", other="where(c, grad)", saves={"self": "self other", "other": "self other"})
def fmin(self: Tensor, other: Tensor) -> Inference:
    """The smaller of two elements; a NaN loses against a number. ``self`` gets the gradient of a tie."""
    return _extreme("fmin", self, other)


_OF_CATEGORY: Final = {kind.category: kind for kind in ScalarKind}


@op(grad_fn="ClampBackward1", inplace=True, elementwise=True, inplace_function=True)
@gradients("where(grad, c)", saves={"self": "self min max", "min": "self min max", "max": "self min max"})
def clamp(self: Tensor, min: Tensor | Element | None = None, max: Tensor | Element | None = None) -> Inference:
    """Cut the values to the range from ``min`` to ``max``; either may be left out, not both.

    The bounds are both tensors or both numbers; beside a number, a tensor without dimensions counts as one. Where
    ``min`` is above ``max`` the result is ``max``. NaN stays.
    """
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds:
        raise ArgumentError("clamp needs min, max or both")
    if self.dtype.category == FLOATING and ScalarKind.COMPLEX in bounds:
        raise ArgumentError(f"clamp: a {self.dtype.name} tensor has real bounds, not complex ones")
    tensors = [bound for bound in bounds if isinstance(bound, Meta)]
    if 0 < len(tensors) < len(bounds):
        if tensors[0].shape:
            raise ArgumentTypeError(
                "clamp takes two tensors or two numbers as min and max, not a number and a tensor of shape "
                f"{list(tensors[0].shape)}"
            )
        bounds = [_OF_CATEGORY[bound.dtype.category] if isinstance(bound, Meta) else bound for bound in bounds]
        tensors = []
    inferred = elementwise(self, *bounds, grad_fn="ClampBackward0" if tensors else None, wrapped=False)
    require("clamp", inferred.outs[0].dtype, ORDERED)
    return inferred


@op(grad_fn="ClampMinBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("where(grad, c)", saves={"self": "self min", "min": "self min"})
def clamp_min(self: Tensor, min: Tensor | Element) -> Inference:
    """Raise values below ``min`` to it."""
    inferred = elementwise(self, min, wrapped=False)
    require("clamp_min", inferred.outs[0].dtype, ORDERED)
    return inferred.named("ClampMinBackward1") if isinstance(min, Meta) else inferred


@op(grad_fn="ClampMaxBackward0", inplace=True, elementwise=True, inplace_function=True)
@gradients("where(grad, c)", saves={"self": "self max", "max": "self max"})
def clamp_max(self: Tensor, max: Tensor | Element) -> Inference:
    """Lower values above ``max`` to it."""
    inferred = elementwise(self, max, wrapped=False)
    require("clamp_max", inferred.outs[0].dtype, ORDERED)
    return inferred.named("ClampMaxBackward1") if isinstance(max, Meta) else inferred


@op(
    grad_fn="WhereBackward0", differentiable=("self", "other"), exposed=("function",), elementwise=True,
    wrapped=("self", "other"), out=Out.EXACT,
)  # fmt: skip
@gradients(self="where(grad, c)", other="where(c, grad)", saves={"self": "condition", "other": "condition"})
def where(condition: Tensor, self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """``self`` where the condition holds, else ``other``; all three broadcast, the two values promote.

    The condition is bool or uint8. The side that is not taken gets a gradient of zero.
    """
    if condition.dtype not in (bool_, uint8):
        raise DTypeError(f"where: the condition is a bool tensor, not {condition.dtype.name}")
    tensors = [value for value in (self, other) if isinstance(value, Meta)]
    promoted = _result_of(self, other)
    operands = [condition, *tensors]
    shape = broadcast(*[operand.shape for operand in operands])
    return new(shape, promoted.outs[0].dtype, common_device(*operands), stride=elementwise_stride(shape, operands))


def _result_of(self: object, other: object) -> Inference:
    """A stand-in whose dtype is what two values promote to, either of which may be a number."""
    from ..promotion import result_type

    given = [(v.dtype, len(v.shape)) if isinstance(v, Meta) else _kind(v) for v in (self, other)]
    return new((), result_type(given), "cpu")


@op(
    grad_fn="MaskedFillBackward0", differentiable=("self", "value"), inplace=True, copied=("value",),
    expanded=Expanded.WARNED, elementwise=True,
)  # fmt: skip
@gradients(self="masked_fill(grad, c)", value="where(grad, c)", saves={"self": "mask", "value": "mask"})
def masked_fill(self: Tensor, mask: Tensor, value: Tensor | Element) -> Inference:
    """``self`` with ``value``, a number or a 0-dim tensor, where the bool ``mask`` holds.

    The mask broadcasts; the dtype stays that of ``self``.
    """
    if mask.dtype is not bool_:
        raise DTypeError(f"masked_fill: the mask is a bool tensor, not {mask.dtype.name}")
    if isinstance(value, Meta):
        if value.shape:
            raise ShapeError(f"masked_fill: value is a number or a 0-dim tensor, not one of shape {list(value.shape)}")
        category, grad_fn = value.dtype.category, "MaskedFillBackward1"
    else:
        category, grad_fn = _kind(value).category, "MaskedFillBackward0"
    if category == COMPLEX and FLOATING >= self.dtype.category > BOOLEAN:
        raise DTypeError(f"masked_fill: a complex value does not fit into a {self.dtype.name} tensor")
    shape = broadcast(self.shape, mask.shape)
    device = common_device(self, mask, value if isinstance(value, Meta) else None)
    return new(shape, self.dtype, device, grad_fn=grad_fn)


@op(grad_fn="LerpBackward0", inplace=True, elementwise=True, out=Out.EXACT)
@gradients(self="grad * conj(1 - weight)", end="grad * conj(weight)", weight="grad * conj(end - self)")
def lerp(self: Tensor, end: Tensor, weight: Tensor | Scalar) -> Inference:
    """``self + weight * (end - self)``. The dtypes do not promote: they must be the same."""
    weighted = isinstance(weight, Meta)
    if end.dtype is not self.dtype:
        raise DTypeError(f"lerp: end is {end.dtype.name}; it must be {self.dtype.name} as self is")
    if weighted and weight.shape and weight.dtype is not self.dtype:
        raise DTypeError(f"lerp: weight is {weight.dtype.name}; it must be {self.dtype.name} as self is")
    require("lerp", self.dtype, (FLOATING, COMPLEX))
    if not weighted and _kind(weight).category > self.dtype.category:
        raise DTypeError(f"lerp: a {_kind(weight).value} weight does not fit {self.dtype.name} tensors")
    operands = (self, end, weight) if weighted else (self, end)
    return elementwise(*operands, grad_fn="LerpBackward1" if weighted else None)


@op(grad_fn="AddcmulBackward0", inplace=True, keyword_only=("value",), elementwise=True, autocast=GPU_WIDEST)
@gradients(self="grad", tensor1="times_value(grad * conj(tensor2))", tensor2="times_value(grad * conj(tensor1))")
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Factor = 1) -> Inference:
    """``self + value * tensor1 * tensor2``, with broadcasting and promotion. Not defined on bools alone."""
    return _defined_on("addcmul", elementwise(self, tensor1, tensor2))


@op(grad_fn="AddcdivBackward0", inplace=True, keyword_only=("value",), elementwise=True, autocast=GPU_WIDEST)
@gradients(
    self="grad",
    tensor1="times_value(grad / conj(tensor2))",
    tensor2="times_value(-grad * conj(tensor1 / (tensor2 * tensor2)))",
)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Factor = 1) -> Inference:
    """``self + value * tensor1 / tensor2``, with broadcasting and promotion; not for a quotient of integers."""
    if tensor1.dtype.category <= INTEGRAL and tensor2.dtype.category <= INTEGRAL:
        raise DTypeError(
            f"addcdiv does not divide integers ({tensor1.dtype.name} by {tensor2.dtype.name}): "
            "use self + value * div(tensor1, tensor2, rounding_mode=...)"
        )
    return elementwise(self, tensor1, tensor2)


@op(grad_fn="Atan2Backward0", inplace=True, elementwise=True, autocast=GPU_WIDEST)
@gradients(
    self="(s := grad * where(c, reciprocal(self * self + other * other))) * other",
    other="s * -self",
    saves="self other",
)
def atan2(self: Tensor, other: Tensor) -> Inference:
    """The angle of the point with abscissa ``other`` and ordinate ``self``, from -pi to pi."""
    inferred = elementwise(self, other, promotion=Promote.INT_TO_FLOAT)
    require("atan2", inferred.outs[0].dtype, (FLOATING,))
    return inferred


@op(grad_fn="HypotBackward0", inplace=True, elementwise=True)
@gradients(self="grad * (self / result)", other="grad * (other / result)")
def hypot(self: Tensor, other: Tensor) -> Inference:
    """``sqrt(self**2 + other**2)`` without overflow on the way. Floating point only."""
    inferred = elementwise(self, other)
    require("hypot", inferred.outs[0].dtype, (FLOATING,))
    return inferred


@op(grad_fn="LogaddexpBackward0", elementwise=True)
@gradients(self="grad / conj(exp(other - self) + 1)", other="grad / conj(exp(self - other) + 1)")
def logaddexp(self: Tensor, other: Tensor) -> Inference:
    """``log(exp(self) + exp(other))`` without overflow on the way. Floating point and complex only."""
    inferred = elementwise(self, other)
    require("logaddexp", inferred.outs[0].dtype, (FLOATING, COMPLEX))
    return inferred


@op(grad_fn="Logaddexp2Backward0", elementwise=True)
@gradients(self="grad / (exp2(other - self) + 1)", other="grad / (exp2(self - other) + 1)")
def logaddexp2(self: Tensor, other: Tensor) -> Inference:
    """``log2(2**self + 2**other)`` without overflow on the way. Floating point only."""
    inferred = elementwise(self, other)
    require("logaddexp2", inferred.outs[0].dtype, (FLOATING,))
    return inferred


@op(grad_fn="CopysignBackward0", inplace=True, elementwise=True)
@gradients(self="grad * where(c, result / self)", other="c")
def copysign(self: Tensor, other: Tensor | Scalar) -> Inference:
    """The magnitude of ``self`` with the sign of ``other``, a negative zero's too. Integers become floats."""
    inferred = elementwise(self, other, promotion=Promote.INT_TO_FLOAT)
    require("copysign", inferred.outs[0].dtype, (FLOATING,))
    return inferred if isinstance(other, Meta) else inferred.named("CopysignBackward1")


@op(grad_fn="SelectBackward0", linear=True, elementwise=True, view=True)
@gradients("grad")
def real(self: Tensor) -> Inference:
    """The real parts, as a view; a real tensor as it is."""
    if not self.dtype.is_complex:
        return view(self, self.shape, self.stride).named("AliasBackward0")
    return _part(self, 0)


@op(grad_fn="SelectBackward0", linear=True, elementwise=True, view=True)
@gradients("grad * c")
def imag(self: Tensor) -> Inference:
    """The imaginary parts of a complex tensor, as a view."""
    if not self.dtype.is_complex:
        raise DTypeError(f"imag is not defined for {self.dtype.name} tensors, only for complex ones")
    return _part(self, 1)


def _part(self: Meta, offset: int) -> Inference:
    """A view of one half of each complex number. Its offset counts real numbers."""
    out = Meta(self.shape, tuple(2 * s for s in self.stride), self.dtype.to_real(), self.device)
    return Inference((out,), None, (offset,))


@op(grad_fn="ViewAsRealBackward0", exposed=("function",), linear=True, batched=True, view=True)
@gradients("view_as_complex(contiguous.AliasBackward0(grad))")
def view_as_real(self: Tensor) -> Inference:
    """A view of complex numbers as pairs: a last dimension of extent 2 with the real and the imaginary part."""
    if not self.dtype.is_complex:
        raise DTypeError(f"view_as_real is not defined for {self.dtype.name} tensors, only for complex ones")
    stride = (*[2 * s for s in self.stride], 1)
    return Inference((Meta((*self.shape, 2), stride, self.dtype.to_real(), self.device),), None, (0,))


@op(grad_fn="ViewAsComplexBackward0", exposed=("function",), linear=True, batched=True, view=True, autocast=CPU_FLOAT32)
@gradients("view_as_real(grad)")
def view_as_complex(self: Tensor) -> Inference:
    """A view of pairs as complex numbers: the last dimension has extent 2, and its elements are adjacent."""
    if self.dtype not in (float32, float64):
        raise DTypeError(f"view_as_complex takes float32 and float64 tensors, not {self.dtype.name}")
    if not self.shape or self.shape[-1] != 2:
        raise ShapeError(f"view_as_complex takes a last dimension of extent 2; the shape is {list(self.shape)}")
    if self.stride[-1] != 1 or any(s % 2 for s, n in zip(self.stride, self.shape[:-1]) if n != 1):
        raise ShapeError(
            "view_as_complex needs the last stride to be 1 and the others to be even, "
            f"they are {list(self.stride)}; call contiguous() first"
        )
    stride = tuple(s // 2 for s in self.stride[:-1])
    return Inference((Meta(self.shape[:-1], stride, self.dtype.to_complex(), self.device),), None, (0,))


@op(grad_fn="ConjBackward0", linear=True, elementwise=True)
@gradients("conj.ConjBackward0(grad)")
def conj(self: Tensor) -> Inference:
    """The complex conjugates, in new memory; real numbers as they are."""
    return elementwise(self)


@op(
    grad_fn="ConjPhysicalBackward0", inplace="ConjPhysicalBackward1", linear=True, elementwise=True,
    inplace_function=True, out=Out.EXACT,
)  # fmt: skip
@gradients("conj.ConjBackward0(grad)")
def conj_physical(self: Tensor) -> Inference:
    """The complex conjugates, in new memory; real numbers as they are."""
    return elementwise(self)


@op(grad_fn="AngleBackward0", elementwise=True)
@gradients("where(c, grad * (self * c / (abs(self) * abs(self)))) if is_complex(self) else c")
def angle(self: Tensor) -> Inference:
    """The argument of complex numbers, from -pi to pi; of real numbers 0, or pi if negative."""
    if self.dtype.is_complex:
        return new(self.shape, self.dtype.to_real(), self.device)
    return elementwise(self, promotion=Promote.INT_TO_FLOAT)


def _complex_from(name: str, first: Meta, second: Meta) -> Inference:
    if first.dtype not in (float32, float64, float16):
        raise DTypeError(f"{name} takes float32 and float64 tensors, not {first.dtype.name}")
    if first.dtype is not second.dtype:
        raise DTypeError(f"{name} takes two tensors of one dtype, got {first.dtype.name} and {second.dtype.name}")
    inferred = elementwise(first, second)
    out = inferred.outs[0]
    dtype = complex64 if first.dtype is float16 else first.dtype.to_complex()
    return new(out.shape, dtype, out.device, compute=first.dtype, stride=out.stride)


@op(grad_fn="ComplexBackward0", name="complex", exposed=("function",), elementwise=True, out=Out.EXACT)
@gradients(real="grad", imag="imag(grad)")
def complex_(real: Tensor, imag: Tensor) -> Inference:
    """Complex numbers from their parts, which broadcast and have one dtype."""
    return _complex_from("complex", real, imag)


@op(grad_fn="PolarBackward0", exposed=("function",), elementwise=True, out=Out.EXACT, autocast=CPU_FLOAT32)
@gradients(abs="grad * conj.ConjBackward0(sgn(result))", angle="grad * conj.ConjBackward0(result * c)")
def polar(abs: Tensor, angle: Tensor) -> Inference:
    """Complex numbers from magnitude and angle, which broadcast and have one dtype."""
    return _complex_from("polar", abs, angle)
