"""Writes to places named by indices: how they are found, checked and added up in each array library.

All go through flat places in row-major memory: NumPy adds at those several times faster than at rows, and CuPy
has atomics for them. Atomics add in no order: floating-point sums on a GPU are sorted instead, so that a replay has the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol.errors import GradwireError, KernelError

from ..runtime.arrays import Array, Namespace, Native
from ..runtime.cuda.launching import element_of, kernel, strided
from .axes import waits

# Checking indices


def check_range(
    xp: Namespace,
    name: str,
    index: Array,
    dim: int,
    extent: int,
    error: type[GradwireError] = KernelError,
    wrap: bool = False,
) -> None:
    """Check that every index lies in the dimension; with ``wrap`` negative ones count from the end.

    Only on the host: a GPU would have to be waited for. There an index outside wraps around.
    """
    if index.size == 0 or waits(xp):
        return
    if not wrap and index.dtype.kind == "i":
        # A negative number is a huge one when read as unsigned: one pass finds both.
        if int(index.view(f"u{index.dtype.itemsize}").max()) < extent:
            return
    low, high = int(index.min()), int(index.max())
    if low < (-extent if wrap else 0) or high >= extent:
        bad = high if high >= extent else low
        raise error(f"{name}: index {bad} is out of range for dimension {dim} of extent {extent}")


def wrapped(xp: Namespace, index: Array, extent: int) -> Array:
    """Indices counted from the front."""
    return xp.where(index < 0, index + extent, index)


# Flat places


# These arrays are as large as what is written: each is made by as few passes over its full size as possible.


def places_along(xp: Namespace, shape: Sequence[int], dim: int, index: Array) -> Array:
    """For every element of ``index`` the flat place in an array of ``shape`` that it names along ``dim``.

    In the other dimensions an element stands for its own place.
    """
    own: Any = 0
    for axis, extent in enumerate(index.shape):
        if axis != dim and extent != 1:
            step = prod(shape[axis + 1 :])
            steps = xp.arange(extent) * step
            own = own + steps.reshape([-1 if i == axis else 1 for i in range(index.ndim)])
    step = prod(shape[dim + 1 :])
    return (index if step == 1 else index * step) + own


def places_of_slices(xp: Namespace, shape: Sequence[int], dim: int, index: Array) -> Array:
    """The flat places of the slices that a vector of indices names along ``dim``, in the shape of those slices."""
    before, extent, behind = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
    starts = xp.arange(before)[:, None] * (extent * behind) + index.reshape(-1) * behind
    places = starts[:, :, None] + xp.arange(behind)
    return places.reshape((*shape[:dim], index.size, *shape[dim + 1 :]))


def places_of_selection(
    xp: Namespace, shape: Sequence[int], dims: Sequence[int], indices: Sequence[Array], at: int
) -> Array:
    """The flat places that integer ``indices`` for ``dims`` name, in the shape of the selection (see ``index``)."""
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    named: Any = 0
    for dim, index in zip(dims, indices, strict=True):
        named = named + wrapped(xp, index, shape[dim]) * steps[dim]
    rest = [i for i in range(len(shape)) if i not in dims]
    ndim = named.ndim + len(rest)
    places = named.reshape((1,) * at + named.shape + (1,) * (len(rest) - at))
    for k, axis in enumerate(rest):
        if shape[axis] != 1:
            position = k if k < at else k + named.ndim
            own = xp.arange(shape[axis]) * steps[axis]
            places = places + own.reshape([-1 if i == position else 1 for i in range(ndim)])
    full = [shape[a] for a in rest]
    return xp.broadcast_to(places, (*full[:at], *named.shape, *full[at:]))


# Writing


def in_flat(xp: Namespace, target: Array, write: Callable[[Array], None]) -> None:
    """Let ``write`` change the target's elements in a flat row-major array, in float32 for the half types."""
    narrow = target.dtype.itemsize == 2 and target.dtype.kind not in "iu"
    if target.flags.c_contiguous and not narrow:
        write(target.reshape(-1))
        return
    flat = xp.ascontiguousarray(target.astype(xp.float32) if narrow else target).reshape(-1)
    write(flat)
    target[...] = flat.reshape(target.shape).astype(target.dtype)


def as_flat(xp: Namespace, values: Array, shape: Sequence[int], dtype: Native) -> Array:
    """Values broadcast to a shape, as a flat array."""
    values = values if values.dtype == dtype else values.astype(dtype)
    return xp.broadcast_to(values, shape).reshape(-1)


def add_at(xp: Namespace, target: Array, places: Array, values: Array) -> None:
    """Add values at flat places of the target, in place; what is named twice adds up."""

    def write(flat: Array) -> None:
        terms, at = as_flat(xp, values, places.shape, flat.dtype), places.reshape(-1)
        if xp is np:
            _add_at_on_host(flat, at, terms)
        else:
            _add_at_on_device(xp, flat, at, terms)

    in_flat(xp, target, write)


WIDE_ROW: Final = 512
"""From so many elements on, one addition per row is faster than one scattered addition of all elements."""


def add_slices(xp: Namespace, target: Array, dim: int, index: Array, values: Array) -> None:
    """Add slices at the indices along ``dim`` of the target, in place; what is named twice adds up."""
    if xp is np and dim == 0 and target.dtype.char in "fdFD" and prod(target.shape[1:]) >= WIDE_ROW:
        for at, row in zip(index.reshape(-1).tolist(), values, strict=True):
            target[at] += row
    else:
        add_at(xp, target, places_of_slices(xp, target.shape, dim, index), values)


def _add_at_on_host(flat: Array, at: Array, terms: Array) -> None:
    if flat.dtype.kind == "b":
        flat[at[terms]] = True
    else:
        np.add.at(flat, at, terms)


def _add_at_on_device(xp: Namespace, flat: Array, at: Array, terms: Array) -> None:
    kind, size = flat.dtype.kind, flat.dtype.itemsize
    if kind == "i" and size == 8:
        # There are atomics for unsigned 64-bit integers only; in two's complement the sums are the same.
        xp.add.at(flat.view(xp.uint64), at, terms.view(xp.uint64))
    elif kind in "biu" and size < 4:
        wide = flat.astype(xp.int32)
        xp.add.at(wide, at, terms.astype(xp.int32))
        flat[...] = wide.astype(flat.dtype)
    elif kind == "c":
        parts, at = flat.view(f"f{size // 2}"), 2 * wrapped(xp, at, flat.size)
        _add_in_order(xp, parts, at, terms.real)
        _add_in_order(xp, parts, at + 1, terms.imag)
    elif kind == "f":
        _add_in_order(xp, flat, wrapped(xp, at, flat.size), terms)
    else:
        xp.add.at(flat, at, terms)


def _add_in_order(xp: Namespace, flat: Array, at: Array, terms: Array) -> None:
    """Add floats at places, each sum in the order of its terms: what is named twice has the same bits each time. A
    place outside takes nothing up: here indices are not checked."""
    if not hasattr(xp, "RawModule"):  # a stand-in for CuPy without kernels
        xp.add.at(flat, at, terms)
        return
    if at.size == 0:
        return
    order = xp.argsort(at, kind="stable")
    places, terms = at[order].astype(xp.int64), xp.ascontiguousarray(terms)
    sums, count = xp.empty(places.shape, terms.dtype), np.int64(places.size)
    grid, block = strided(places.size)
    element = element_of(terms.dtype)
    kernel(xp, "sum_runs", "scatter", element)(grid, block, (places, order, terms, sums, count))
    kernel(xp, "add_sums", "scatter", element)(grid, block, (places, sums, flat, count, np.int64(flat.size)))


def write_at(xp: Namespace, target: Array, places: Array, values: Array) -> None:
    """Write values to flat places of the target, in place."""
    if target.flags.c_contiguous:
        target.reshape(-1)[places.reshape(-1)] = as_flat(xp, values, places.shape, target.dtype)
    else:
        target[xp.unravel_index(places, target.shape)] = values


def combine_at(xp: Namespace, target: Array, places: Array, values: Array, how: str) -> None:
    """Combine values with those at flat places of the target by ``multiply``, ``maximum`` or ``minimum``, in place."""

    def write(flat: Array) -> None:
        terms, at = as_flat(xp, values, places.shape, flat.dtype), places.reshape(-1)
        if xp is np:
            getattr(np, how).at(flat, at, terms)
        else:
            _combine_sorted(xp, flat, at, terms, getattr(xp, how))

    in_flat(xp, target, write)


def _combine_sorted(xp: Namespace, flat: Array, at: Array, terms: Array, combine: Callable[..., Array]) -> None:
    """Sort by place, reduce each run of equal places in logarithmic passes, write the runs' results."""
    if at.size == 0:
        return
    by_place = xp.argsort(at)
    at, terms = at[by_place], terms[by_place]
    distance = 1
    while distance < at.size:
        same = at[distance:] == at[:-distance]
        terms[distance:] = xp.where(same, combine(terms[distance:], terms[:-distance]), terms[distance:])
        distance *= 2
    last = xp.ones(at.shape, bool)
    last[:-1] = at[1:] != at[:-1]
    at, terms = at[last], terms[last]
    flat[at] = combine(flat[at], terms)


# Lists of index tensors


def expand_masks(xp: Namespace, indices: Sequence[Array | None]) -> tuple[list[int], list[Array], int]:
    """(indexed dimensions, an integer index for each, where their common shape begins in the result)."""
    dims: list[int] = []
    found: list[Any] = []
    dim = 0
    for index in indices:
        if index is None:
            dim += 1
            continue
        if index.dtype.kind == "b" or index.dtype == np.uint8:
            parts = xp.nonzero(index)
            found.extend(parts)
            dims.extend(range(dim, dim + index.ndim))
            dim += index.ndim
        else:
            found.append(index)
            dims.append(dim)
            dim += 1
    adjacent = dims[-1] - dims[0] == len(dims) - 1
    return dims, found, dims[0] if adjacent else 0


def selector(ndim: int, dims: Sequence[int], indices: Sequence[Array]) -> tuple[Array | slice, ...]:
    """The key that reads or writes a selection of an array."""
    key: list[Any] = [slice(None)] * (dims[-1] + 1)
    for dim, index in zip(dims, indices, strict=True):
        key[dim] = index
    return tuple(key)
