"""Elementwise questions: comparisons, tests of a number, logic, operations on bits."""

from __future__ import annotations

from typing import Any

from ..accepts import ORDERED, WHOLE, require
from ..dtypes import INTEGRAL
from ..errors import ArgumentError, ArgumentTypeError, DTypeError
from ..meta import Inference, Meta
from ..promotion import Promote, ScalarKind
from ..shapes import elementwise
from ..table import Float, Out, Scalar, Tensor, op


def _truth(*operands: Meta | ScalarKind) -> Inference:
    return elementwise(*operands, promotion=Promote.ALWAYS_BOOL)


def _compared(name: str, self: Meta, other: Meta | ScalarKind) -> Inference:
    """The name is that of the in-place form's node, whose gradients are zero."""
    inferred = _truth(self, other)
    return inferred.named(f"{name.capitalize()}Backward1") if isinstance(other, Meta) else inferred


def _order(name: str, self: Meta, other: Meta | ScalarKind) -> Inference:
    inferred = _compared(name, self, other)
    if inferred.compute is not None:
        require(name, inferred.compute, ORDERED)
    return inferred


@op(inplace="EqBackward0", elementwise=True)
def eq(self: Tensor, other: Tensor | Scalar) -> Inference:
    """Whether two elements are equal, after promotion. NaN equals nothing."""
    return _compared("eq", self, other)


@op(inplace="NeBackward0", elementwise=True)
def ne(self: Tensor, other: Tensor | Scalar) -> Inference:
    """Whether two elements differ, after promotion. NaN differs from everything."""
    return _compared("ne", self, other)


@op(inplace="LtBackward0", elementwise=True)
def lt(self: Tensor, other: Tensor | Scalar) -> Inference:
    """``self < other``, after promotion. Complex numbers have no order."""
    return _order("lt", self, other)


@op(inplace="LeBackward0", elementwise=True)
def le(self: Tensor, other: Tensor | Scalar) -> Inference:
    """``self <= other``, after promotion. Complex numbers have no order."""
    return _order("le", self, other)


@op(inplace="GtBackward0", elementwise=True)
def gt(self: Tensor, other: Tensor | Scalar) -> Inference:
    """``self > other``, after promotion. Complex numbers have no order."""
    return _order("gt", self, other)


@op(inplace="GeBackward0", elementwise=True)
def ge(self: Tensor, other: Tensor | Scalar) -> Inference:
    """``self >= other``, after promotion. Complex numbers have no order."""
    return _order("ge", self, other)


@op(elementwise=True)
def isclose(
    self: Tensor, other: Tensor, rtol: Float = 1e-05, atol: Float = 1e-08, equal_nan: bool = False
) -> Inference:
    """Whether ``|self - other| <= atol + rtol * |other|``, or both are the same infinity. The dtypes are the same.

    NaN is close to NaN only with ``equal_nan``.
    """
    if self.dtype is not other.dtype:
        raise DTypeError(f"isclose compares tensors of one dtype, got {self.dtype.name} and {other.dtype.name}")
    return _truth(self, other).checking(_check_tolerances)


def _check_tolerances(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> None:
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise ArgumentError(f"isclose: {name} is {value}; it must be 0 or more")


@op(elementwise=True)
def isnan(self: Tensor) -> Inference:
    """Whether an element is NaN; of a complex number, whether either part is."""
    return _truth(self)


@op(elementwise=True)
def isinf(self: Tensor) -> Inference:
    """Whether an element is infinite; of a complex number, whether either part is."""
    return _truth(self)


@op(elementwise=True)
def isfinite(self: Tensor) -> Inference:
    """Whether an element is neither NaN nor infinite."""
    return _truth(self)


@op(elementwise=True, out=Out.EXACT)
def isposinf(self: Tensor) -> Inference:
    """Whether an element is positive infinity. Not defined on complex numbers."""
    if self.dtype.is_complex:
        raise DTypeError("isposinf is not defined on complex numbers")
    return _truth(self)


@op(elementwise=True, out=Out.EXACT)
def isneginf(self: Tensor) -> Inference:
    """Whether an element is negative infinity. Not defined on complex numbers."""
    if self.dtype.is_complex:
        raise DTypeError("isneginf is not defined on complex numbers")
    return _truth(self)


@op(elementwise=True)
def isreal(self: Tensor) -> Inference:
    """Whether the imaginary part is 0, which it is for every real number."""
    return _truth(self)


@op(elementwise=True, out=Out.EXACT)
def signbit(self: Tensor) -> Inference:
    """Whether the sign is negative, which that of ``-0.0`` is. Not defined on complex numbers."""
    require("signbit", self.dtype, ORDERED)
    return _truth(self)


@op(inplace=True, elementwise=True)
def logical_and(self: Tensor, other: Tensor) -> Inference:
    """Whether both elements are nonzero."""
    return _truth(self, other)


@op(inplace=True, elementwise=True)
def logical_or(self: Tensor, other: Tensor) -> Inference:
    """Whether at least one element is nonzero."""
    return _truth(self, other)


@op(inplace=True, elementwise=True)
def logical_xor(self: Tensor, other: Tensor) -> Inference:
    """Whether exactly one element is nonzero."""
    return _truth(self, other)


@op(inplace=True, elementwise=True)
def logical_not(self: Tensor) -> Inference:
    """Whether an element is zero."""
    return _truth(self)


def _bits(name: str, *operands: Meta | ScalarKind) -> Inference:
    if not any(isinstance(operand, Meta) for operand in operands):
        raise ArgumentTypeError(f"{name} needs a tensor among its operands")
    inferred = elementwise(*operands)
    require(name, inferred.outs[0].dtype, WHOLE)
    return inferred


def _shift(name: str, *operands: Meta | ScalarKind) -> Inference:
    inferred = _bits(name, *operands)
    require(name, inferred.outs[0].dtype, (INTEGRAL,))
    return inferred


@op(inplace=True, elementwise=True, out=Out.EXACT)
def bitwise_not(self: Tensor) -> Inference:
    """Every bit inverted; on bools the logical not."""
    return _bits("bitwise_not", self)


@op(inplace=True, elementwise=True)
def bitwise_and(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """The bits set in both; on bools the logical and."""
    return _bits("bitwise_and", self, other)


@op(inplace=True, elementwise=True)
def bitwise_or(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """The bits set in either; on bools the logical or."""
    return _bits("bitwise_or", self, other)


@op(inplace=True, elementwise=True)
def bitwise_xor(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """The bits set in one of the two; on bools the logical xor."""
    return _bits("bitwise_xor", self, other)


@op(inplace=True, elementwise=True)
def bitwise_left_shift(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """Bits moved up by ``other``; 0 if that is negative or beyond the width."""
    return _shift("bitwise_left_shift", self, other)


@op(inplace=True, elementwise=True)
def bitwise_right_shift(self: Tensor | Scalar, other: Tensor | Scalar) -> Inference:
    """Bits moved down by ``other``, keeping the sign; all of them if that is negative or beyond the width."""
    return _shift("bitwise_right_shift", self, other)
