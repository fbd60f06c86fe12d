"""PyTorch's type promotion in pure Python, independent of NumPy's rules.

Operands have one of three ranks: dimensioned tensors outrank 0-dim tensors, which outrank Python scalars. A lower rank
changes the result only if its *category* (bool < integer < float < complex) is higher than that of every rank above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from enum import Enum
from typing import Final

from . import dtypes
from .dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL, DType
from .errors import DTypeError


class ScalarKind(Enum):
    """The kind of a Python number. It is part of a frame's structure; the number is not."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    COMPLEX = "complex"

    __hash__ = object.__hash__  # Enum's own is Python code, and every op uses kinds as keys

    @property
    def category(self) -> int:
        return _KIND_CATEGORY[self]

    @staticmethod
    def of(value: object) -> ScalarKind | None:
        """The kind of ``value``, or ``None`` if it is not a Python number."""
        return _KIND_OF_TYPE.get(type(value)) or _kind_of_subclass(value)


_KIND_CATEGORY: Final = {
    ScalarKind.BOOL: BOOLEAN, ScalarKind.INT: INTEGRAL, ScalarKind.FLOAT: FLOATING, ScalarKind.COMPLEX: COMPLEX,
}  # fmt: skip
_KIND_OF_TYPE: Final[dict[type, ScalarKind]] = {
    bool: ScalarKind.BOOL, int: ScalarKind.INT, float: ScalarKind.FLOAT, complex: ScalarKind.COMPLEX,
}  # fmt: skip


def fits(value: int) -> bool:
    """Whether an op can take this int: it must fit into 64 bits, signed or unsigned."""
    return -(1 << 63) <= value < 1 << 64


def _kind_of_subclass(value: object) -> ScalarKind | None:
    for base, kind in _KIND_OF_TYPE.items():
        if isinstance(value, base):
            return kind
    return None


class Promote(Enum):
    """How PyTorch's elementwise ops choose the dtypes of computation and result."""

    DEFAULT = "default"
    NO_OPMATH = "no_opmath"
    INT_TO_FLOAT = "int_to_float"
    ALWAYS_BOOL = "always_bool"
    COMPLEX_TO_FLOAT = "complex_to_float"


def _lattice() -> dict[tuple[DType, DType], DType]:
    table: dict[tuple[DType, DType], DType] = {}
    signed = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
    for a in dtypes.COMPUTED:
        for b in dtypes.COMPUTED:
            low, high = sorted((a, b), key=lambda d: (d.category, d.itemsize, d.index))
            if low is high or low.category == BOOLEAN:
                joined = high
            elif high.category == INTEGRAL:
                # uint8 with int8 needs a wider type than either.
                joined = dtypes.int16 if dtypes.uint8 in (low, high) and high.itemsize == 1 else high
                assert joined in signed
            elif low.category == INTEGRAL:
                joined = high
            elif high.category == FLOATING:
                both_half = low.itemsize == 2 and high.itemsize == 2
                joined = dtypes.float32 if both_half else high
            else:
                joined = dtypes.complex128 if low is dtypes.float64 else high
            table[a, b] = joined
    for stored in dtypes.STORED:
        table[stored, stored] = stored
        if stored.category == INTEGRAL:
            for real in dtypes.COMPUTED:
                if real.category == FLOATING:
                    table[stored, real] = table[real, stored] = real
    return table


_JOIN: Final = _lattice()


def join(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both, by PyTorch's lattice (``torch.promote_types``).

    Raises:
        DTypeError: when there is none; a dtype for storage has a common one with few others.
    """
    joined = _JOIN.get((a, b))
    if joined is None:
        raise DTypeError(f"{a.name} and {b.name} are not promoted to a common dtype: convert one of them")
    return joined


DEFAULT_FLOAT: ContextVar[DType] = ContextVar("DEFAULT_FLOAT", default=dtypes.float32)
"""``torch.get_default_dtype()`` for the current rule."""


def default_of(category: int) -> DType:
    """The dtype of a Python number of this category."""
    default = DEFAULT_FLOAT.get()
    if category == BOOLEAN:
        return dtypes.bool_
    if category == INTEGRAL:
        return dtypes.int64
    return default if category == FLOATING else default.to_complex()


def result_type(operands: Iterable[tuple[DType, int] | ScalarKind]) -> DType:
    """The common dtype of tensors, given as (dtype, ndim), and of Python scalars, given as kinds.

    Like ``torch.result_type``, for any number of operands.
    """
    dimensioned: DType | None = None
    zero_dim: DType | None = None
    number: DType | None = None
    for operand in operands:
        if isinstance(operand, ScalarKind):
            dtype = default_of(operand.category)
            number = dtype if number is None else join(number, dtype)
        elif operand[1] > 0:
            dimensioned = operand[0] if dimensioned is None else join(dimensioned, operand[0])
        else:
            zero_dim = operand[0] if zero_dim is None else join(zero_dim, operand[0])
    return _combine(_combine(dimensioned, zero_dim), number) or DEFAULT_FLOAT.get()


def _combine(upper: DType | None, lower: DType | None) -> DType | None:
    """Use ``lower`` only if its category is above that of ``upper``."""
    if upper is None:
        return lower
    if lower is None or lower.category <= upper.category:
        return upper
    if lower.category == COMPLEX and upper.category == FLOATING:
        # The lower rank gives the category, the upper rank the precision.
        return upper.to_complex() if upper is not dtypes.float16 else dtypes.complex64
    if (lower.for_storage or upper.for_storage) and lower.category != COMPLEX:
        return join(upper, lower)
    return lower


def promote(kind: Promote, operands: Iterable[tuple[DType, int] | ScalarKind]) -> tuple[DType, DType]:
    """The dtypes of computation and result of an elementwise op.

    The wider accumulation dtype of half precision is the engine's concern.
    """
    common = result_type(operands)
    if kind is Promote.DEFAULT or kind is Promote.NO_OPMATH:
        return common, common
    if kind is Promote.INT_TO_FLOAT:
        computed = DEFAULT_FLOAT.get() if common.category <= INTEGRAL else common
        return computed, computed
    if kind is Promote.ALWAYS_BOOL:
        return common, dtypes.bool_
    return common, common.to_real()  # COMPLEX_TO_FLOAT


def can_cast(source: DType, target: DType) -> bool:
    """Whether an in-place op may write ``source`` values into a ``target`` tensor."""
    return source.category <= target.category
