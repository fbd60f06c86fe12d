"""Searching in tensors, sets of elements, and writing at indices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from gradwire_protocol.out import Out
from gradwire_protocol.shapes import canonical_dim

from ..context.late_signatures import show_as
from ..dispatch.dispatch import call
from ..surface.argument_aliases import OF_ONE
from ..surface.creation import tensor
from ..surface.methods import FUNCTIONS, attach, offer
from ..tensor.tensor import Tensor
from .arranging import ravel

_function: Callable[..., Any]

_narrow = FUNCTIONS["narrow"]
_isclose = FUNCTIONS["isclose"]


def searchsorted(
    sorted_sequence: Tensor, input: Tensor | float, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
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


def bucketize(input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the interval between sorted ``boundaries`` that each value falls into."""
    return call("bucketize", input, boundaries, out_int32, right)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Any, ...]:
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


def narrow(input: Tensor, dim: int, start: Tensor | int, length: int) -> Tensor:
    """A view of ``length`` indices from ``start``, a number or a 0-dim integer tensor, along a dimension.

    Raises:
        ArgumentError: for a tensor that is not one integer.
    """
    if isinstance(start, Tensor):
        if start.ndim or start.dtype.category != dtypes.INTEGRAL:
            raise ArgumentError(f"narrow: start is one integer, not {start.dtype.name} of shape {list(start.shape)}")
        start = int(start.item())
    return _narrow(input, dim, start, length)


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``|input - other| <= atol + rtol * |other|``, element by element.

    Raises:
        ArgumentError: for a negative tolerance.
        ArgumentTypeError: for a tolerance of several numbers.
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if isinstance(value, Tensor) and value.ndim:
            raise ArgumentTypeError(f"isclose: {name} is a number, not {value._form!r}")
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: tolerances cannot be negative, got rtol={rtol} and atol={atol}")
    return _isclose(input, other, rtol, atol, equal_nan)


for _function in (narrow, isclose):
    offer(_function)
offer(unravel_index, method=False)
for _plain in (searchsorted, bucketize):
    offer(_plain, method=False, out=Out.PLAIN)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements in ascending order; with their places and counts on request."""
    found = call("unique", input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return found if return_inverse or return_counts else found[0]


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The elements without repetitions of the one before; with their places and counts on request."""
    found = call("unique_consecutive", input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return found if return_inverse or return_counts else found[0]


def isin(
    elements: Tensor | float, test_elements: Tensor | float, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Which elements occur among the others.

    Raises:
        ArgumentTypeError: for two numbers.
        DTypeError: for bools and complex numbers.
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise ArgumentTypeError("isin: one of the operands must be a tensor")
    pool = test_elements if isinstance(test_elements, Tensor) else tensor(test_elements)
    asked = elements if isinstance(elements, Tensor) else tensor(elements)
    for operand in (asked, pool):
        if operand.is_complex() or operand.dtype is dtypes.bool_:
            raise DTypeError(f"isin is not defined for {operand.dtype.name} tensors")
    found = call("any", call("eq", call("unsqueeze", asked, -1), ravel(pool)), -1)
    return call("logical_not", found) if invert else found


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero. One round trip."""
    return bool(input)


def _isin_by_name(*args: Any, **kwargs: Any) -> Tensor:
    return isin(*args, **{OF_ONE["isin"].get(name, name): value for name, value in kwargs.items()})


_isin_by_name.__name__, _isin_by_name.__doc__ = "isin", isin.__doc__
show_as(_isin_by_name, lambda: signature(isin))

for _function in (unique, unique_consecutive, is_nonzero):
    offer(_function)
offer(_isin_by_name, out=Out.EXACT)


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | complex | None = None,
    *,
    value: Tensor | complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """A copy in which ``input[..., index[i], ...]`` is ``src[i]``, or a number; added or multiplied with ``reduce``.

    Raises:
        ArgumentError: for another ``reduce``.
    """
    return call(*_scattered("", input, dim, index, value if src is None else src, reduce))


def scatter_(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | complex | None = None,
    *,
    value: Tensor | complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """In-place form of :func:`scatter`."""
    return call(*_scattered("_", self, dim, index, value if src is None else src, reduce))


def _scattered(suffix: str, self: Tensor, dim: int, index: Tensor, source: Any, reduce: str | None) -> tuple[Any, ...]:
    """The op of the table, and what it is called with."""
    if reduce is None:
        return f"scatter{suffix}", self, dim, index, source
    if reduce not in ("add", "multiply"):
        raise ArgumentError(f"scatter: reduce is 'add' or 'multiply', not {reduce!r}")
    if isinstance(source, Tensor):
        warnings.warn("scatter: reduce= with a tensor is deprecated in favour of scatter_reduce", stacklevel=3)
    else:
        source = call("full_like", index, source, dtype=self.dtype)
    return f"scatter_reduce{suffix}", self, dim, index, source, "sum" if reduce == "add" else "prod", True


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy in which slice ``i`` of ``source`` is combined with slice ``index[i]`` along a dimension.

    ``reduce`` is "prod", "mean", "amax" or "amin"; with ``include_self`` the slice that was there counts, too.

    Raises:
        ArgumentError: for another ``reduce``.
        ShapeError: when the index is no vector, or not as long as the dimension of ``source``.
    """
    return call("scatter_reduce", input, dim, *_spread(input, dim, index, source, reduce), include_self)


def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place form of :func:`index_reduce`."""
    return call("scatter_reduce_", self, dim, *_spread(self, dim, index, source, reduce), include_self)


def _spread(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> tuple[Tensor, Tensor, str]:
    """The index of :func:`index_reduce` as scatter_reduce takes it: one place an element."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentError(f"index_reduce: reduce is 'prod', 'mean', 'amax' or 'amin', not {reduce!r}")
    if index.ndim > 1:
        raise ShapeError(f"index_reduce: the index is a vector, not of shape {list(index.shape)}")
    if source.ndim == 0:
        return call("reshape", index, (1,) * self.ndim), call("reshape", source, (1,) * self.ndim), reduce
    at = canonical_dim(dim, source.ndim)
    if index.numel() != source.shape[at]:
        raise ShapeError(f"index_reduce: {index.numel()} indices for {source.shape[at]} slices of source")
    line = call("reshape", index, tuple(-1 if i == at else 1 for i in range(source.ndim)))
    return call("expand", line, tuple(source.shape)), source, reduce


attach("index_reduce_", index_reduce_)
attach("scatter_", scatter_)
offer(scatter, out=Out.PLAIN)
offer(index_reduce, out=Out.EXACT | Out.WHOLE)
