"""Shapes brought together: broadcasting, grids, sums back."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.shapes import broadcast

from ..dispatch import call
from ..methods import offer
from ..size import Size
from .joining import tensors_of


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Coordinates of a grid: one tensor per axis, expanded to the shape of the grid.

    Raises:
        ArgumentError: for an ``indexing`` other than "ij" and "xy", no tensors, and ones that are not alike.
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"indexing is 'ij' or 'xy', not {indexing!r}")
    axes = tensors_of(tensors)
    if not axes:
        raise ArgumentError("meshgrid takes at least one tensor")
    for axis in axes:
        if axis.ndim > 1:
            raise ArgumentError(f"meshgrid takes vectors, one of the tensors has shape {list(axis.shape)}")
        if axis.dtype is not axes[0].dtype or axis.device != axes[0].device:
            raise ArgumentError(
                f"meshgrid takes tensors of one dtype on one device, not {axes[0].dtype!r} on {axes[0].device} and "
                f"{axis.dtype!r} on {axis.device}"
            )
    swapped = indexing == "xy" and len(axes) > 1
    if swapped:
        axes[0], axes[1] = axes[1], axes[0]
    shape = tuple(x.numel() for x in axes)
    grids = []
    for i, axis in enumerate(axes):
        line = call("view", axis, tuple(-1 if k == i else 1 for k in range(len(axes))))
        grids.append(call("expand", line, shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Expanded to their common shape, without copying."""
    given = tensors_of(tensors)
    shape = broadcast(*[tuple(x.shape) for x in given])
    return tuple(x if tuple(x.shape) == tuple(shape) else call("expand", x, shape) for x in given)


def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape that tensors of these shapes broadcast to."""
    return Size(broadcast(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))


for _plain in (
    meshgrid,
    broadcast_tensors,
    broadcast_shapes,
):
    offer(_plain, method=False)
