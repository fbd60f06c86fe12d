"""Kernels and derivatives of the primitives that put gradients back where they came from."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import IndexOutOfRange, KernelError

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import along, at_least_1d, waits
from ..numerics.scatter import (
    add_at,
    add_slices,
    check_range,
    expand_masks,
    places_along,
    places_of_selection,
    selector,
    wrapped,
    write_at,
)
from ..runtime.arrays import Array, Namespace, Native

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]
"""Size, strides and offset of a view, in elements."""


derivative("spread", self=lambda s, g: F.sum(g, s.dim, s.keepdim))


@kernel("select_backward", half=True)
def select_backward(xp: Namespace, g: Array, size: tuple[int, ...], dim: int, index: int) -> Array:
    axis = dim % len(size)
    if not -size[axis] <= index < size[axis]:
        raise IndexOutOfRange(f"select_backward: index {index} is out of range for dimension {axis} of {list(size)}")
    made = xp.zeros(size, g.dtype)
    made[(slice(None),) * axis + (index,)] = g
    return made


def _need_shape(name: str, g: Array, part: tuple[int, ...]) -> None:
    """Check that a gradient is for this part, whose shape follows from values that no rule sees."""
    if g.shape != part:
        raise KernelError(f"{name}: a gradient of shape {list(g.shape)} does not fit a part of shape {list(part)}")


derivative("select_backward", grad=lambda s, g: F.select(g, s.dim, s.index))


@kernel("slice_backward", half=True)
def slice_backward(
    xp: Namespace, g: Array, size: tuple[int, ...], dim: int, start: int | None, end: int | None, step: int
) -> Array:
    made = xp.zeros(size, g.dtype)
    part = made[(slice(None),) * (dim % len(size)) + (slice(start, end, step),)]
    _need_shape("slice_backward", g, part.shape)
    part[...] = g
    return made


derivative("slice_backward", grad=lambda s, g: F.slice(g, s.dim, s.start, s.end, s.step))


def diagonal_of(xp: Namespace, x: Array, offset: int, dim1: int, dim2: int) -> tuple[Array, tuple[Any, ...]]:
    """(the array with the diagonal's axes last, the key that reads its diagonal)."""
    matrices = xp.moveaxis(x, (dim1, dim2), (-2, -1))
    rows, columns = matrices.shape[-2:]
    extent = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    row = xp.arange(extent)
    return matrices, (Ellipsis, row + max(0, -offset), row + max(0, offset))


@kernel("diagonal_backward", half=True)
def diagonal_backward(xp: Namespace, g: Array, size: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    made = xp.zeros(size, g.dtype)
    matrices, key = diagonal_of(xp, made, offset, dim1, dim2)
    matrices[key] = g
    return made


derivative("diagonal_backward", grad=lambda s, g: F.diagonal(g, s.offset, s.dim1, s.dim2))


@kernel("unfold_backward")
def unfold_backward(
    xp: Namespace, g: Array, input_size: tuple[int, ...], dimension: int, size: int, step: int
) -> Array:
    made = xp.zeros(input_size or (1,), g.dtype)
    if not g.size:  # however many places a window has
        return made
    axis = dimension % made.ndim
    windows = g if input_size else g.reshape(1, size)
    count = windows.shape[axis]
    # One pass for each place in the window: windows never overlap themselves there.
    for i in range(size):
        made[along(made, axis, i, i + (count - 1) * step + 1)][(slice(None),) * axis + (slice(None, None, step),)] += (
            windows[..., i]
        )
    return made


derivative("unfold_backward", grad=lambda s, g: F.unfold(g, s.dimension, s.size, s.step))


class Flat:
    """Flat memory of zeros, large enough for several geometries, and the places that each of them shows."""

    def __init__(self, xp: Namespace, dtype: Native, *geometries: Geometry) -> None:
        starts = [offset for _, _, offset in geometries]
        ends = [
            offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1 if 0 not in size else offset
            for size, stride, offset in geometries
        ]
        self.xp = xp
        self.origin = min(starts)
        self.geometries = geometries
        self.memory = xp.zeros(max(max(ends) - self.origin, 1), dtype)

    def places(self, i: int) -> Array:
        """The flat places that one of the geometries shows."""
        size, stride, offset = self.geometries[i]
        places: Any = self.xp.full((1,) * len(size), offset - self.origin)
        for axis, (n, s) in enumerate(zip(size, stride, strict=True)):
            own = self.xp.arange(n) * s
            places = places + own.reshape([-1 if k == axis else 1 for k in range(len(size))])
        return self.xp.broadcast_to(places, size)


@kernel("restride")
def restride(
    xp: Namespace, x: Array, stride: tuple[int, ...], storage_offset: int, to_size: tuple[int, ...],
    to_stride: tuple[int, ...], to_offset: int, average: str | None,
) -> Array:  # fmt: skip
    flat = Flat(xp, x.dtype, (x.shape, stride, storage_offset), (to_size, to_stride, to_offset))
    add_at(xp, flat.memory, flat.places(0), x)
    if average is not None:
        counts = xp.zeros(flat.memory.shape, xp.int64)
        shown = flat.places(1 if average == "to" else 0)
        add_at(xp, counts, shown, xp.ones(shown.shape, xp.int64))
        flat.memory /= xp.maximum(counts, 1).astype(flat.memory.real.dtype)
    return flat.memory[flat.places(1)]


derivative(
    "restride",
    self=lambda s, g: F.restride(
        g, s.to_stride, s.to_offset, s.meta("self").shape, s.stride, s.storage_offset,
        {"to": "from", "from": "to", None: None}[s.average],
    ),
)  # fmt: skip


@kernel("gather_backward")
def gather_backward(xp: Namespace, g: Array, size: tuple[int, ...], dim: int, index: Array, distinct: bool) -> Array:
    made = xp.zeros(size or (1,), g.dtype)
    if index.size:
        index = at_least_1d(index)
        axis = dim % made.ndim
        check_range(xp, "gather_backward", index, axis, made.shape[axis], IndexOutOfRange, wrap=True)
        places = places_along(xp, made.shape, axis, wrapped(xp, index, made.shape[axis]))
        (write_at if distinct else add_at)(xp, made, places, g.reshape(places.shape))
    return made


derivative("gather_backward", grad=("index", lambda s, g: F.gather(g, s.dim, s.index)))


@kernel("index_backward")
def index_backward(xp: Namespace, g: Array, size: tuple[int, ...], indices: list[Array | None]) -> Array:
    made = xp.zeros(size, g.dtype)
    dims, found, at = expand_masks(xp, indices)
    if _are_distinct(indices):
        _need_shape("index_backward", g, (*size[: dims[0]], found[0].size, *size[dims[-1] + 1 :]))
        made[selector(made.ndim, dims, found)] = g
        return made
    for dim, named in zip(dims, found, strict=True):
        check_range(xp, "index_backward", named, dim, size[dim], IndexOutOfRange, wrap=True)
    try:
        places = places_of_selection(xp, size, dims, found, at)
    except ValueError:
        raise IndexOutOfRange("index_backward: the masks and index tensors cannot be used together") from None
    _need_shape("index_backward", g, places.shape)
    add_at(xp, made, places, g)
    return made


def _are_distinct(indices: list[Array | None]) -> bool:
    """Whether a selection cannot name an element twice: a single mask never does."""
    given = [index for index in indices if index is not None]
    return len(given) == 1 and given[0].dtype.kind == "b"


derivative("index_backward", grad=("indices", lambda s, g: F.index(g, s.indices)))


@kernel("index_select_backward")
def index_select_backward(xp: Namespace, g: Array, size: tuple[int, ...], dim: int, index: Array) -> Array:
    made = xp.zeros(size or (1,), g.dtype)
    axis = dim % made.ndim
    check_range(xp, "index_select_backward", index, axis, made.shape[axis], IndexOutOfRange)
    add_slices(xp, made, axis, index, g if size else g.reshape(1))
    return made


derivative("index_select_backward", grad=("index", lambda s, g: F.index_select(g, s.dim, s.index)))


@kernel("take_backward")
def take_backward(xp: Namespace, g: Array, size: tuple[int, ...], index: Array) -> Array:
    made = xp.zeros(size or (1,), g.dtype)
    check_range(xp, "take_backward", index, 0, made.size, IndexOutOfRange, wrap=True)
    add_at(xp, made, wrapped(xp, index, made.size), g)
    return made


derivative("take_backward", grad=("index", lambda s, g: F.take(g, s.index)))


@kernel("masked_select_backward", half=True)
def masked_select_backward(xp: Namespace, g: Array, size: tuple[int, ...], mask: Array) -> Array:
    made = xp.zeros(size, g.dtype)
    if made.size:
        mask = xp.broadcast_to(mask, size)
        count = int(mask.sum())
        if count > g.size:
            raise KernelError(f"masked_select_backward: {g.size} elements do not fill {count} places of the mask")
        made[mask] = g.reshape(-1)[:count]
    return made


derivative("masked_select_backward", grad=("mask", lambda s, g: _padded(s, g)))


def _padded(s: Saved, g: Tensor) -> Tensor:
    """The selected gradients; the elements that were left over received none."""
    given = s.meta("grad").shape
    return F.masked_scatter_backward(g, given, s.mask)


@kernel("masked_scatter_backward", half=True)
def masked_scatter_backward(xp: Namespace, g: Array, size: tuple[int, ...], mask: Array) -> Array:
    made = xp.zeros(size or (1,), g.dtype)
    chosen = g[xp.broadcast_to(mask, g.shape)]
    if chosen.size > made.size:
        raise KernelError(f"masked_scatter_backward: {chosen.size} elements of the mask do not fit into {list(size)}")
    made.reshape(-1)[: chosen.size] = chosen
    return made


derivative(
    "masked_scatter_backward",
    grad=("mask", lambda s, g: F.masked_select_backward(F.reshape(g, (-1,)), s.meta("grad").shape, s.mask)),
)


@kernel("embedding_backward")
def embedding_backward(
    xp: Namespace, g: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    width = g.shape[-1]
    made = xp.zeros((num_weights, width), g.dtype)
    if not g.size:
        return made
    index = indices.reshape(-1)
    check_range(xp, "embedding_backward", index, 0, num_weights, IndexOutOfRange)
    if waits(xp):
        index = index % num_weights  # which is what is counted on a GPU, whatever the indices
    rows = g.reshape(len(index), width)
    if scale_grad_by_freq:
        counts = xp.bincount(index, minlength=num_weights).astype(g.dtype)
        rows = rows / counts[index][:, None]
    add_slices(xp, made, 0, index, rows)
    if 0 <= padding_idx < num_weights:
        made[padding_idx] = 0
    return made


def _embedding_twice(s: Saved, g: Tensor) -> Tensor:
    rows = F.embedding(g, s.indices, s.padding_idx)
    if s.scale_grad_by_freq:
        counts = F.bincount(F.reshape(s.indices, (-1,)), None, s.num_weights)
        rows = rows / F.unsqueeze(F.index(counts, [s.indices]), -1)
    if s.padding_idx >= 0:
        rows = F.masked_fill(rows, F.unsqueeze(s.indices == s.padding_idx, -1), 0)
    return rows


derivative("embedding_backward", grad=("indices", _embedding_twice))
