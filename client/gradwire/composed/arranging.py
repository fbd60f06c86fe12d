"""Elements in another order or shape: flattening, flips, repetitions, differences of neighbours."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def ravel(input: Tensor) -> Any:
    """All elements in one dimension; a view where that is possible."""
    return call("reshape", input, (-1,))


def fliplr(input: Tensor) -> Any:
    """The second dimension in reverse."""
    return call("flip", input, (1,))


def flipud(input: Tensor) -> Any:
    """The first dimension in reverse."""
    return call("flip", input, (0,))


def diagflat(input: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements on a diagonal."""
    return call("diag", ravel(input), offset)


def diff(input: Tensor, n: int = 1, dim: int = -1) -> Any:
    """The n-th differences of neighbours along a dimension."""
    for _ in range(n):
        extent = input.shape[dim]
        later = call("slice", input, dim, 1, None, 1)
        earlier = call("slice", input, dim, 0, extent - 1, 1)
        input = call("ne" if input.dtype is dtypes.bool_ else "sub", later, earlier)
    return input


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Each element repeated, so many times each or as often as a tensor says."""
    if repeats is None:
        return call("repeated_positions", input)
    if not isinstance(repeats, Tensor):
        return call("repeat_interleave", input, repeats, dim)
    if dim is None:
        input, dim = ravel(input), 0
    if repeats.numel() == 1 and input.shape[dim] != 1:
        repeats = call("expand", call("reshape", repeats, (1,)), (input.shape[dim],))
    return call("index_select", input, dim, call("repeated_positions", repeats))


for _function in (
    ravel,
    fliplr,
    flipud,
    diagflat,
    diff,
    repeat_interleave,
):
    offer(_function)
