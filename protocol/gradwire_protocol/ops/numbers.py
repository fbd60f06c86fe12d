"""Elementwise operations on what numbers are made of: divisors, mantissas and exponents, neighbours, steps."""

from __future__ import annotations

from ..accepts import require
from ..costs import each
from ..dtypes import FLOATING, INTEGRAL, int32
from ..errors import DTypeError
from ..meta import Inference, several
from ..promotion import Promote
from ..shapes import elementwise, like
from ..table import Out, Tensor, gradients, op


@op(inplace=True, elementwise=True, cost=each(60), inplace_function=True)
def gcd(self: Tensor, other: Tensor) -> Inference:
    """The greatest common divisor, not negative; ``gcd(0, 0)`` is 0. Integers only."""
    inferred = elementwise(self, other)
    require("gcd", inferred.outs[0].dtype, (INTEGRAL,))
    return inferred


@op(inplace=True, elementwise=True, cost=each(60), inplace_function=True)
def lcm(self: Tensor, other: Tensor) -> Inference:
    """The least common multiple, not negative; 0 where either is 0. Integers only."""
    inferred = elementwise(self, other)
    require("lcm", inferred.outs[0].dtype, (INTEGRAL,))
    return inferred


@op(
    grad_fn="NotImplemented", inplace=True,
    underivable="it has no derivative, where(x > 0, 1, 0) has one, which is zero", elementwise=True, out=Out.EXACT,
)  # fmt: skip
def heaviside(self: Tensor, values: Tensor) -> Inference:
    """The unit step: 0 below 0, 1 above, and ``values`` at 0. Both are of one dtype, which is not complex.

    Its result can require grad, but backward through it fails.
    """
    if self.dtype is not values.dtype:
        raise DTypeError(f"heaviside takes two tensors of one dtype, got {self.dtype.name} and {values.dtype.name}")
    if self.dtype.is_complex:
        raise DTypeError("heaviside is not defined on complex numbers")
    return elementwise(self, values)


@op(grad_fn="NextafterBackward0", inplace=True, elementwise=True)
@gradients(self="where(c, grad)", other="c", saves={"self": "self other"})
def nextafter(self: Tensor, other: Tensor) -> Inference:
    """The next floating point number after ``self`` in the direction of ``other``. Floating point only."""
    inferred = elementwise(self, other)
    require("nextafter", inferred.outs[0].dtype, (FLOATING,))
    return inferred


@op(grad_fn="FrexpBackward0", results=2, elementwise=True, out=Out.EXACT)
@gradients("grad / exp2(to(c))", saves="result1")
def frexp(self: Tensor) -> Inference:
    """(mantissa, int32 exponent), where ``self`` is ``mantissa * 2 ** exponent`` and the mantissa's size is from 0.5 to
    1, or 0. Floating point only."""
    if self.dtype.category != FLOATING:
        raise DTypeError(f"frexp takes floating point tensors, not {self.dtype.name}")
    return several(like(self), like(self, dtype=int32))


@op(grad_fn="LdexpBackward0", inplace=True, copied=("other",), elementwise=True, inplace_function=True)
@gradients(self="grad * conj(exp2(other))", other="grad * conj(result) * c")
def ldexp(self: Tensor, other: Tensor) -> Inference:
    """``self * 2 ** other``; integers become floats."""
    return elementwise(self, other, promotion=Promote.INT_TO_FLOAT)
