"""Tensors made from nothing but their description, or from bytes."""

from __future__ import annotations

from math import ceil, isfinite

from ..accepts import ORDERED, REAL, require
from ..dtypes import BOOLEAN, COMPLEX, FLOATING, DType, int64
from ..errors import ArgumentError, ArgumentValueError, DTypeError
from ..meta import Inference, Meta, new
from ..promotion import DEFAULT_FLOAT, ScalarKind, default_of
from ..shapes import channels_last_order, check_size, copied_stride
from ..table import Element, Float, Number, Out, Payload, Tensor, op

FUNCTION = ("function",)
LIKE = ("dtype", "device", "row_major", "channels_last")
"""The keyword-only parameters of what makes a tensor like another."""


def fresh(size: tuple[int, ...], dtype: DType | None, device: str, channels_last: bool = False) -> Inference:
    """A new tensor of a size that the user gave; of the default float dtype unless another is named."""
    shape = check_size(size)
    stride = channels_last_order(shape) if channels_last else None
    return new(shape, dtype or DEFAULT_FLOAT.get(), device, stride=stride)


def resembling(self: Meta, dtype: DType | None, device: str | None, row_major: bool, channels_last: bool) -> Inference:
    """A new tensor with the shape, and unless another is asked for (where it is dense) the memory order, of another."""
    stride = copied_stride(self, row_major, channels_last)
    return new(self.shape, dtype or self.dtype, device or self.device, stride=stride)


def kind_of(number: object) -> ScalarKind:
    """The kind of a number that may be a default, and then is the number itself."""
    kind = number if isinstance(number, ScalarKind) else ScalarKind.of(number)
    assert kind is not None
    return kind


@op(exposed=())
def upload(data: Payload, dtype: DType, size: tuple[int, ...], device: str = "cpu") -> Inference:
    """A tensor with the values of a payload: raw little-endian elements in row-major order."""
    return new(check_size(size), dtype, device)


@op(exposed=FUNCTION, variadic="size", total=True, out=Out.MADE | Out.SILENT)
def zeros(size: tuple[int, ...], dtype: DType | None = None, device: str = "cpu") -> Inference:
    """A tensor of zeros."""
    return fresh(size, dtype, device)


@op(exposed=FUNCTION, variadic="size", total=True, out=Out.MADE | Out.SILENT)
def ones(size: tuple[int, ...], dtype: DType | None = None, device: str = "cpu") -> Inference:
    """A tensor of ones."""
    return fresh(size, dtype, device)


@op(exposed=FUNCTION, variadic="size", out=Out.MADE | Out.SILENT)
def empty(
    size: tuple[int, ...], dtype: DType | None = None, device: str = "cpu", channels_last: bool = False
) -> Inference:
    """A tensor of values that do not matter. They are zeros: memory of the past is shown to nobody."""
    return fresh(size, dtype, device, channels_last)


@op(exposed=FUNCTION, keyword_only=("dtype", "device"), out=Out.MADE | Out.SILENT)
def full(size: tuple[int, ...], fill_value: Element, dtype: DType | None = None, device: str = "cpu") -> Inference:
    """A tensor of one value, whose kind decides the dtype unless one is named."""
    kind = kind_of(fill_value)
    if dtype is not None and kind is ScalarKind.COMPLEX and FLOATING >= dtype.category > BOOLEAN:
        raise DTypeError(f"full: a complex value does not fit into a {dtype.name} tensor")
    return new(check_size(size), dtype or default_of(kind.category), device)


@op(exposed=FUNCTION, keyword_only=LIKE, elementwise=True)
def zeros_like(
    self: Tensor, dtype: DType | None = None, device: str | None = None, row_major: bool = False,
    channels_last: bool = False,
) -> Inference:  # fmt: skip
    """Zeros in the shape, dtype and memory order of ``self``."""
    return resembling(self, dtype, device, row_major, channels_last)


@op(exposed=FUNCTION, keyword_only=LIKE, elementwise=True)
def ones_like(
    self: Tensor, dtype: DType | None = None, device: str | None = None, row_major: bool = False,
    channels_last: bool = False,
) -> Inference:  # fmt: skip
    """Ones in the shape, dtype and memory order of ``self``."""
    return resembling(self, dtype, device, row_major, channels_last)


@op(exposed=FUNCTION, keyword_only=LIKE, elementwise=True)
def empty_like(
    self: Tensor, dtype: DType | None = None, device: str | None = None, row_major: bool = False,
    channels_last: bool = False,
) -> Inference:  # fmt: skip
    """Values that do not matter, in the shape, dtype and memory order of ``self``. They are zeros."""
    return resembling(self, dtype, device, row_major, channels_last)


@op(exposed=FUNCTION, keyword_only=LIKE, elementwise=True)
def full_like(
    self: Tensor, fill_value: Element, dtype: DType | None = None, device: str | None = None, row_major: bool = False,
    channels_last: bool = False,
) -> Inference:  # fmt: skip
    """One value in the shape, dtype and memory order of ``self``."""
    if kind_of(fill_value) is ScalarKind.COMPLEX and FLOATING >= (dtype or self.dtype).category > BOOLEAN:
        raise DTypeError(f"full_like: a complex value does not fit into a {(dtype or self.dtype).name} tensor")
    return resembling(self, dtype, device, row_major, channels_last)


@op(exposed=FUNCTION, keyword_only=("dtype", "device"), out=Out.MADE | Out.COUNTED)
def arange(
    start: Number, end: Number | None = None, step: Number = 1, dtype: DType | None = None, device: str = "cpu"
) -> Inference:
    """The numbers from ``start`` up to but without ``end``, in steps of ``step``; ``arange(n)`` counts from 0.

    The dtype is int64 if all three are integers, else the default float dtype.
    """
    if end is None:
        start, end = 0, start
    count = arange_count(start, end, step, dtype)
    if dtype is None:
        whole = all(isinstance(number, int) for number in (start, end, step))
        dtype = int64 if whole else DEFAULT_FLOAT.get()
    require("arange", dtype, REAL)
    return new((count,), dtype, device)


def arange_count(start: Number, end: Number, step: Number, dtype: DType | None) -> int:
    """How many numbers :func:`arange` gives.

    Raises:
        ArgumentError: for a step of 0 or one that leads away from ``end``, or a bound that is not finite.
    """
    for number in (start, end, step):
        if isinstance(number, complex):
            raise ArgumentError(f"arange: {number} is not a real number")
        if not isfinite(number):
            raise ArgumentError(f"arange: there is no range from {start} to {end} in steps of {step}")
    assert not isinstance(start, complex)
    assert not isinstance(end, complex)
    assert not isinstance(step, complex)
    if step == 0:
        raise ArgumentError("arange: the step is 0")
    if (end < start) if step > 0 else (end > start):
        raise ArgumentError(f"arange: a step of {step} has the wrong sign from {start} to {end}")
    if dtype is int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ArgumentValueError("arange: the step is 0 as an integer")
    if all(isinstance(number, int) for number in (start, end, step)):
        return int(-((start - end) // step))
    try:
        return ceil((end - start) / step)
    except (OverflowError, ValueError):  # infinite, or not a number: both ends are finite, what lies between is not
        raise ArgumentError(f"arange: too many numbers lie between {start} and {end} in steps of {step}") from None


def _steps(name: str, steps: int) -> tuple[int]:
    if steps < 0:
        raise ArgumentError(f"{name}: the number of steps is {steps}; it must not be negative")
    return (steps,)


def _between(name: str, start: object, end: object, steps: int, dtype: DType | None, device: str) -> Inference:
    category = max(kind_of(start).category, kind_of(end).category)
    if dtype is None:
        dtype = default_of(COMPLEX) if category == COMPLEX else DEFAULT_FLOAT.get()
    elif category == COMPLEX and not dtype.is_complex:
        raise DTypeError(f"{name}: complex bounds do not fit a {dtype.name} tensor")
    if dtype.category == BOOLEAN:
        require(name, dtype, REAL)
    return new(_steps(name, steps), dtype, device)


@op(exposed=FUNCTION, keyword_only=("dtype", "device"), out=Out.MADE | Out.COUNTED | Out.SILENT)
def linspace(start: Element, end: Element, steps: int, dtype: DType | None = None, device: str = "cpu") -> Inference:
    """``steps`` numbers at equal distances from ``start`` to ``end``, both included."""
    return _between("linspace", start, end, steps, dtype, device)


@op(exposed=FUNCTION, keyword_only=("dtype", "device"), out=Out.MADE | Out.COUNTED | Out.SILENT)
def logspace(
    start: Element, end: Element, steps: int, base: Float = 10.0, dtype: DType | None = None, device: str = "cpu"
) -> Inference:
    """``base`` to the powers that :func:`linspace` gives."""
    return _between("logspace", start, end, steps, dtype, device)


@op(exposed=FUNCTION, keyword_only=("dtype", "device"), out=Out.MADE | Out.SILENT)
def eye(n: int, m: int | None = None, dtype: DType | None = None, device: str = "cpu") -> Inference:
    """A matrix of ``n`` rows and ``m`` (``n``) columns with ones on the diagonal and zeros elsewhere."""
    return fresh((n, n if m is None else m), dtype, device)


def lower_triangle(row: int, col: int, offset: int) -> int:
    """How many elements of a matrix are on or below the diagonal that is moved right by ``offset``."""
    first = min(max(0, -offset), row)  # rows above have none
    full = min(max(first, col - offset), row)  # rows from here on are complete
    rising = full - first
    return rising * (first + offset + 1 + full + offset) // 2 + (row - full) * col


def _triangle(name: str, row: int, col: int, count: int, dtype: DType, device: str) -> Inference:
    if row < 0 or col < 0:
        raise ArgumentError(f"{name}: invalid size of {row} rows and {col} columns")
    require(name, dtype, ORDERED[1:2])
    return new((2, count), dtype, device)


@op(exposed=FUNCTION, keyword_only=("dtype", "device"))
def tril_indices(row: int, col: int, offset: int = 0, dtype: DType = int64, device: str = "cpu") -> Inference:
    """Rows (first) and columns (second) of the elements on and below a diagonal, in row-major order."""
    return _triangle("tril_indices", row, col, lower_triangle(max(row, 0), max(col, 0), offset), dtype, device)


@op(exposed=FUNCTION, keyword_only=("dtype", "device"))
def triu_indices(row: int, col: int, offset: int = 0, dtype: DType = int64, device: str = "cpu") -> Inference:
    """Rows (first) and columns (second) of the elements on and above a diagonal, in row-major order."""
    above = max(row, 0) * max(col, 0) - lower_triangle(max(row, 0), max(col, 0), offset - 1)
    return _triangle("triu_indices", row, col, above, dtype, device)
