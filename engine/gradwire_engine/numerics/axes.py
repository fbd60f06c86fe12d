"""Sums, extremes, scans and orders along axes, each spelled the way its array library is fastest at.

NumPy is recognised by identity; everything else takes the spelling that CuPy has, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..runtime.arrays import Array, Namespace

BLOCK: Final = 4096
"""So many terms may be added one after the other; longer sums are made of the sums of blocks."""


def waits(xp: Namespace) -> bool:
    """Whether looking at a value means waiting for a GPU: then what an index holds is not checked."""
    return getattr(xp, "__name__", "") == "cupy"


def at_least_1d(x: Array) -> Array:
    """A 0-dim array as one of shape (1,): the axis that PyTorch lets a scalar have."""
    return x if x.ndim else x.reshape(1)


def axes_of(x: Array, dim: Sequence[int] | int | None) -> tuple[int, ...]:
    """The axes that a ``dim`` argument names, sorted; none or an empty sequence names all."""
    ndim = x.ndim
    if dim is None or dim == ():
        return tuple(range(ndim))
    if isinstance(dim, int):
        return (dim % ndim,) if ndim else ()
    return tuple(sorted(d % ndim for d in dim)) if ndim else ()


def count(x: Array, axes: Sequence[int]) -> int:
    """How many elements each result of a reduction over ``axes`` is made of."""
    n = 1
    for axis in axes:
        n *= x.shape[axis]
    return n


def total(xp: Namespace, x: Array, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    """``xp.sum``; over leading or trailing axes NumPy's einsum is 1.5 to 5 times faster, and takes no BLAS threads."""
    if xp is np and 0 < len(axes) < x.ndim and x.size and x.dtype.char in "fd":
        if x.flags.c_contiguous:
            return _total_on_host((x,), x, axes, keepdims)
        if x.flags.f_contiguous:
            last = x.ndim - 1
            return total(xp, x.T, tuple(last - a for a in reversed(axes)), keepdims).T
    return x.sum(axis=axes, keepdims=keepdims)


def total_of_products(xp: Namespace, x: Array, y: Array, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    """``xp.sum(x * y)`` of arrays of one shape, without the product in memory where that is possible."""
    if xp is np and x.size and x.dtype.char in "fd" and x.dtype == y.dtype:
        if x.flags.c_contiguous and y.flags.c_contiguous:
            if len(axes) < x.ndim:
                return _total_on_host((x, y), x, axes, keepdims)
            shape = (1,) * x.ndim if keepdims else ()
            return dots_of_rows(xp, x.reshape(1, -1), y.reshape(1, -1)).reshape(shape)
    return (x * y).sum(axis=axes, keepdims=keepdims)


def dots_of_rows(xp: Namespace, x: Array, y: Array) -> Array:
    """The dot products of the rows of two matrices, long ones in blocks: einsum adds term to term, and rounds with
    every one."""
    length = x.shape[1]
    if xp is not np or length <= BLOCK:
        return xp.einsum("ij,ij->i", x, y)
    whole, blocks = length // BLOCK * BLOCK, (len(x), -1, BLOCK)
    found = np.einsum("ibj,ibj->ib", x[:, :whole].reshape(blocks), y[:, :whole].reshape(blocks)).sum(axis=1)
    return found + np.einsum("ij,ij->i", x[:, whole:], y[:, whole:]) if whole < length else found


def _total_on_host(operands: tuple[Array, ...], like: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The sum, or the sum of products, of C-contiguous arrays over axes that do not include all."""
    ndim, k = like.ndim, len(axes)
    lead = 0
    while lead < k and axes[lead] == lead:
        lead += 1
    trail = k - lead
    shape = [1 if i in axes else n for i, n in enumerate(like.shape)]
    if not keepdims:
        shape = [n for i, n in enumerate(like.shape) if i not in axes]
    if trail and axes[lead:] != tuple(range(ndim - trail, ndim)):
        return (operands[0] * operands[1] if len(operands) > 1 else like).sum(axis=axes, keepdims=keepdims)
    inner = count(like, range(ndim - trail, ndim))
    if trail:
        if len(operands) > 1:
            found = dots_of_rows(np, operands[0].reshape(-1, inner), operands[1].reshape(-1, inner))
        elif inner > BLOCK:
            found = like.reshape(-1, inner).sum(axis=1)  # as fast, and it rounds less
        else:
            found = np.einsum("ij->i", like.reshape(-1, inner))
    else:
        found = operands[0] * operands[1] if len(operands) > 1 else like
    if lead:
        found = _total_of_rows(found.reshape(count(like, range(lead)), -1))
    return found.reshape(shape)


def _total_of_rows(x: Array) -> Array:
    """The sum of all rows of a matrix, in blocks: both ways below add row to row, and round with every row."""
    rows, width = x.shape
    if rows > BLOCK:
        whole = rows // BLOCK * BLOCK
        blocks = np.einsum("kij->kj", x[:whole].reshape(-1, BLOCK, width))
        return _total_of_rows(np.concatenate([blocks, x[whole:]]))
    return np.einsum("ij->j", x) if width < 64 else x.sum(axis=0)


def extreme(xp: Namespace, x: Array, axes: tuple[int, ...], keepdims: bool = False, largest: bool = True) -> Array:
    """``xp.max`` or ``xp.min``, NaN winning; along the last axis NumPy's argmax is several times faster."""
    if xp is np and axes == (x.ndim - 1,) and x.size and x.ndim > 1 and x.flags.c_contiguous and x.dtype.kind in "fiu":
        rows = x.reshape(-1, x.shape[-1])
        at = rows.argmax(1) if largest else rows.argmin(1)
        found = rows[np.arange(len(rows)), at]
        return found.reshape((*x.shape[:-1], 1) if keepdims else x.shape[:-1])
    return (x.max if largest else x.min)(axis=axes, keepdims=keepdims)


def place_of_extreme(xp: Namespace, x: Array, axis: int | None, largest: bool) -> Array:
    """``xp.argmax`` or ``xp.argmin``, the first NaN winning: of several NaN CuPy finds any."""
    if xp is np or x.dtype.kind != "f":
        return (xp.argmax if largest else xp.argmin)(x, axis=axis)
    best = (x.max if largest else x.min)(axis=axis, keepdims=True)
    return xp.argmax((x == best) | (x != x), axis=axis)


def along(x: Array, axis: int, start: int | None, end: int | None = None) -> tuple[slice, ...]:
    """The index that slices one axis."""
    ndim: int = x.ndim
    return (slice(None),) * (axis % ndim) + (slice(start, end),)


def running(xp: Namespace, name: str, x: Array, axis: int) -> Array:
    """The running reduction by an associative ufunc: ``ufunc.accumulate``, which CuPy lacks."""
    combine = getattr(xp, name)
    if xp is np:
        return combine.accumulate(x, axis=axis)
    out = x.copy()
    distance = 1
    while distance < x.shape[axis]:
        later, earlier = along(x, axis, distance), along(x, axis, None, -distance)
        out[later] = combine(out[later], out[earlier])
        distance *= 2
    return out


def recurrence(xp: Namespace, factor: Array, term: Array, axis: int) -> Array:
    """``s[i] = term[i] + factor[i] * s[i - 1]``, in a logarithmic number of passes."""
    factor, out = factor.copy(), term.copy()
    distance = 1
    while distance < out.shape[axis]:
        later, earlier = along(out, axis, distance), along(out, axis, None, -distance)
        out[later] += factor[later] * out[earlier]
        factor[later] = factor[later] * factor[earlier]
        distance *= 2
    return out


def flipped(x: Array, axis: int) -> Array:
    """A view with one axis reversed."""
    return x[(slice(None),) * (axis % x.ndim) + (slice(None, None, -1),)]


def order(xp: Namespace, x: Array, axis: int, descending: bool = False) -> Array:
    """Indices that sort along an axis; equals keep their order, NaN counts as largest.

    NumPy's sort of floats that is not stable is five times faster: it serves where no two elements are equal.
    """
    if descending:
        return x.shape[axis] - 1 - flipped(order(xp, flipped(x, axis), axis), axis)
    if xp is not np:
        return xp.argsort(x, axis=axis)
    if x.dtype.char in "fd" and x.shape[axis] > 16:
        quick = np.argsort(x, axis=axis)
        ordered = np.take_along_axis(x, quick, axis)
        here, after = ordered[along(x, axis, None, -1)], ordered[along(x, axis, 1)]
        if not ((here == after) | (here != here)).any():
            return quick
    return np.argsort(x, axis=axis, kind="stable")


def undefined(xp: Namespace, x: Array) -> Array:
    """Where values are NaN; integers never are."""
    return xp.isnan(x) if x.dtype.kind == "f" else xp.zeros(x.shape, bool)
