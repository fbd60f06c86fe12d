"""Places in sorted and in flattened tensors."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..dispatch import call
from ..methods import FUNCTIONS, offer
from ..tensor import Tensor

_nonzero = FUNCTIONS["nonzero"]
_narrow = FUNCTIONS["narrow"]
_isclose = FUNCTIONS["isclose"]


def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:  # fmt: skip
    """Where each value would have to be inserted to keep the last dimension of ``sorted_sequence`` in order.

    ``side="right"`` says the same as ``right``. A ``sorter`` holds the indices that
    would sort the sequence.

    Raises:
        ArgumentError: for another side, for both that contradict each other, or a sorter that does not fit.
    """
    if side is not None:
        if side not in ("left", "right"):
            raise ArgumentError(f"searchsorted: side is 'left' or 'right', not {side!r}")
        if right and side == "left":
            raise ArgumentError("searchsorted: side='left' contradicts right=True")
        right = side == "right"
    if sorter is not None:
        if tuple(sorter.shape) != tuple(sorted_sequence.shape) or sorter.dtype is not dtypes.int64:
            raise ArgumentError(
                f"searchsorted: the sorter must be int64 of shape {list(sorted_sequence.shape)}, "
                f"not {sorter.dtype.name} of shape {list(sorter.shape)}"
            )
        sorted_sequence = call("gather", sorted_sequence, -1, sorter)
    return call("searchsorted", sorted_sequence, input, out_int32, right)


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Any:
    """The number of the interval between sorted ``boundaries`` that each value falls into."""
    return call("bucketize", input, boundaries, out_int32, right)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of elements that are not zero: one row each, or one tensor per dimension with ``as_tuple``."""
    return _nonzero(call("reshape", input, (1,)) if as_tuple and input.ndim == 0 else input, as_tuple=as_tuple)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Any, ...]:
    """The coordinates in a tensor of ``shape`` of elements given by their number in row-major order.

    Raises:
        ArgumentTypeError: for indices that are no integers, and a shape that is neither an int nor a sequence of ints.
        ArgumentValueError: for a negative extent.
    """
    if not isinstance(indices, Tensor) or indices.dtype.category != dtypes.INTEGRAL:
        given = indices.dtype.name if isinstance(indices, Tensor) else type(indices).__name__
        raise ArgumentTypeError(f"unravel_index: the indices are integers, not {given}")
    extents = (shape,) if isinstance(shape, int) else shape
    if not isinstance(extents, (tuple, list)) or any(type(n) is not int for n in extents):
        raise ArgumentTypeError(f"unravel_index: shape is an int or a sequence of ints, not {shape!r:.60}")
    if any(n < 0 for n in extents):
        raise ArgumentValueError(f"unravel_index: an extent cannot be negative: {list(extents)}")
    found, rest = [], indices.to(dtypes.int64)
    for extent in reversed(extents):
        found.append(call("remainder", rest, extent))
        rest = call("div", rest, extent, rounding_mode="floor")
    return tuple(reversed(found))


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Any:
    """A view of ``length`` indices from ``start``, a number or a 0-dim integer tensor, along a dimension.

    Raises:
        ArgumentError: for a tensor that is not one integer.
    """
    if isinstance(start, Tensor):
        if start.ndim or start.dtype.category != dtypes.INTEGRAL:
            raise ArgumentError(f"narrow: start is one integer, not {start.dtype.name} of shape {list(start.shape)}")
        start = start.item()
    return _narrow(input, dim, start, length)


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether ``|input - other| <= atol + rtol * |other|``, element by element.

    Raises:
        ArgumentError: for a negative tolerance.
        ArgumentTypeError: for a tolerance of several numbers.
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if isinstance(value, Tensor) and value.ndim:
            raise ArgumentTypeError(f"isclose: {name} is a number, not {value._meta!r}")
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: tolerances cannot be negative, got rtol={rtol} and atol={atol}")
    return _isclose(input, other, rtol, atol, equal_nan)


for _function in (nonzero, narrow, isclose):
    offer(_function)
for _plain in (searchsorted, bucketize, unravel_index):
    offer(_plain, method=False)
