"""Tensors joined, stacked and combined with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ShapeError
from gradwire_protocol.out import Out
from gradwire_protocol.promotion import result_type

from ..dispatch.dispatch import call
from ..session.current_session import current_session
from ..surface.creation import tensor
from ..surface.methods import offer
from ..tensor.tensor import Tensor


def tensors_of(given: Sequence[Any]) -> list[Tensor]:
    return list(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else list(given)


def _at_least(x: Tensor, ndim: int) -> Tensor:
    """With enough dimensions, added where NumPy adds them."""
    if x.ndim == 0:
        x = call("reshape", x, (1,))
    if ndim >= 2 and x.ndim == 1:
        x = call("unsqueeze", x, 0)
    if ndim == 3 and x.ndim == 2:
        x = call("unsqueeze", x, 2)
    return x


def _atleast(name: str, ndim: int) -> None:
    def function(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
        found = [_at_least(x, ndim) for x in tensors_of(tensors)]
        return found[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else tuple(found)

    function.__name__, function.__doc__ = name, f"Viewed with at least {ndim} dimensions."
    offer(function, method=False)


for _ndim in (1, 2, 3):
    _atleast(f"atleast_{_ndim}d", _ndim)


def _some(name: str, tensors: Sequence[Tensor], ndim: int) -> list[Tensor]:
    if not len(tensors):
        raise ShapeError(f"{name} needs at least one tensor")
    return [_at_least(x, ndim) for x in tensors]


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the second dimension, along the first for 1-D tensors."""
    parts = _some("hstack", tensors, 1)
    return call("cat", parts, 0 if parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the first dimension; 1-D tensors count as rows."""
    return call("cat", _some("vstack", tensors, 2), 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the third dimension."""
    return call("cat", _some("dstack", tensors, 3), 2)


def block_diag(*tensors: Any) -> Tensor:
    """Matrices set along the diagonal of a larger one; zeros elsewhere. Numbers count as 1 x 1, vectors as one row.

    Raises:
        ShapeError: for an operand of more than two dimensions.
    """
    if not tensors:
        return call("empty", (1, 0), dtype=current_session().default_dtype)
    blocks = []
    for i, given in enumerate(tensors):
        if not isinstance(given, Tensor):
            raise ArgumentTypeError(f"block_diag: operand {i} is a {type(given).__name__}, not a tensor")
        if given.ndim > 2:
            raise ShapeError(f"block_diag: operand {i} has {given.ndim} dimensions, at most 2 are allowed")
        blocks.append(_at_least(given, 2))
    dtype = result_type([(given.dtype, given.ndim) for given in tensors])
    width = sum(b.shape[1] for b in blocks)
    rows, at = [], 0
    for block in blocks:
        rows.append(call("pad", block.to(dtype), (at, width - at - block.shape[1])))
        at += block.shape[1]
    return call("cat", rows, 0)


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element of each vector, a row each, the last vector's changing fastest.

    Raises:
        ShapeError: for an operand that is not a vector.
    """
    for i, given in enumerate(tensors):
        if given.ndim != 1:
            raise ShapeError(f"cartesian_prod takes vectors, operand {i} has {given.ndim} dimensions")
    if len(tensors) == 1:
        return call("alias", tensors[0])
    shape = tuple(x.numel() for x in tensors)
    axes = []
    for i, x in enumerate(tensors):
        line = call("reshape", x, tuple(-1 if k == i else 1 for k in range(len(tensors))))
        axes.append(call("reshape", call("expand", line, shape), (-1,)))
    return call("stack", axes, 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """The combinations of ``r`` elements of a vector, a row each, in lexicographic order of their places.

    Raises:
        ShapeError: when ``input`` is not a vector.
        ArgumentError: for a negative ``r``.
    """
    if input.ndim != 1:
        raise ShapeError(f"combinations takes a vector, got {input.ndim} dimensions")
    if r < 0:
        raise ArgumentError(f"combinations are of 0 or more elements, not of {r}")
    if r == 0:
        return call("empty", (0,), dtype=input.dtype, device=input._form.device)
    places = np.arange(input.numel())
    grid = np.stack(np.meshgrid(*[places] * r, indexing="ij"), -1).reshape(-1, r)
    steps = np.diff(grid, axis=1)
    kept = grid[((steps >= 0) if with_replacement else (steps > 0)).all(axis=1)]
    index = tensor(np.ascontiguousarray(kept).reshape(-1), device=input.device)
    return call("reshape", call("index_select", input, 0, index), (len(kept), r))


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the second dimension; tensors of fewer than two dimensions count as columns."""
    columns = [call("reshape", x, (x.numel(), 1)) if x.ndim < 2 else x for x in tensors]
    return call("cat", columns, 1)


offer(combinations)
for _plain in (block_diag, cartesian_prod):
    offer(_plain, method=False)
for _plain in (hstack, vstack, dstack, column_stack):
    offer(_plain, method=False, out=Out.APART | Out.JOINS)
