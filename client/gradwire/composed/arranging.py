"""Elements in another order or shape: flattening, flips, repetitions, differences of neighbours."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, DTypeError, ShapeError
from gradwire_protocol.table import TABLE

from ..dispatch import call, entry_of, run
from ..methods import attach, offer
from ..tensor import Tensor


def ravel(input: Tensor) -> Any:
    """All elements in one dimension; a view where that is possible."""
    return call("reshape", input, (-1,))


_FLATTEN = entry_of(TABLE["flatten"])


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Dimensions ``start_dim`` to ``end_dim`` merged into one: a view where strides allow it, else a copy; the tensor
    itself where they are one dimension."""
    count = input.ndim if isinstance(input, Tensor) else 0
    if start_dim == end_dim or start_dim == end_dim + count:
        if count and -count <= end_dim < count and -count <= start_dim < count:
            return input
    return run(_FLATTEN, [input, start_dim, end_dim])


def sum_to_size(input: Tensor, *size: Any) -> Any:
    """The sum over the dimensions that broadcasting added or stretched, so that the result has the given size."""
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    # A sum to no dimensions is a sum, also of one number: integers become int64.
    return input if wanted and wanted == tuple(input.shape) else call("sum_to_size", input, wanted)


attach("sum_to_size", sum_to_size)


def positive(input: Tensor) -> Any:
    """The tensor itself, which is to be of numbers."""
    if input.dtype is dtypes.bool_:
        raise DTypeError("positive is not defined for bool tensors")
    return input


def fliplr(input: Tensor) -> Any:
    """The second dimension in reverse."""
    if input.ndim < 2:
        raise ShapeError(f"fliplr needs at least two dimensions, got {input.ndim}")
    return call("flip", input, (1,))


def flipud(input: Tensor) -> Any:
    """The first dimension in reverse."""
    if input.ndim < 1:
        raise ShapeError("flipud needs at least one dimension, got 0")
    return call("flip", input, (0,))


def diagflat(input: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements on a diagonal."""
    return call("diag", ravel(input), offset)


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Any:
    """The n-th differences of neighbours along a dimension, with values put before or behind it first.

    Raises:
        ShapeError: for a 0-dim tensor.
        ArgumentError: for a negative ``n``.
    """
    if input.ndim == 0:
        raise ShapeError("diff needs a tensor of at least one dimension")
    if n < 0:
        raise ArgumentError(f"diff: the order is 0 or more, not {n}")
    parts = [part for part in (prepend, input, append) if part is not None]
    if len(parts) > 1 and n > 0:
        input = call("cat", parts, dim)
    if n == 0:
        zero = call("zeros_like", input)
        return call("logical_or" if input.dtype is dtypes.bool_ else "add", input, zero)
    for _ in range(min(n, input.shape[dim])):
        extent = input.shape[dim]
        later = call("slice", input, dim, 1, None, 1)
        earlier = call("slice", input, dim, 0, max(extent - 1, 0), 1)
        input = call("ne" if input.dtype is dtypes.bool_ else "sub", later, earlier)
    return input


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Each element repeated, so many times each or as often as a tensor says.

    Raises:
        ArgumentError: for repeats of another number than there are elements along the dimension.
    """
    if repeats is None:
        return call("repeated_positions", input)
    if not isinstance(repeats, Tensor):
        return call("repeat_interleave", input, repeats, dim)
    if dim is None:
        input, dim = ravel(input), 0
    if repeats.numel() == 1 and input.shape[dim] != 1:
        repeats = call("expand", call("reshape", repeats, (1,)), (input.shape[dim],))
    if repeats.ndim == 1 and repeats.numel() != input.shape[dim]:
        raise ArgumentError(
            f"repeat_interleave: {repeats.numel()} repeats for an extent of {input.shape[dim]} along dimension {dim}"
        )
    return call("index_select", input, dim, call("repeated_positions", repeats))


for _function in (
    flatten,
    positive,
    ravel,
    fliplr,
    flipud,
    diagflat,
    diff,
    repeat_interleave,
):
    offer(_function)
