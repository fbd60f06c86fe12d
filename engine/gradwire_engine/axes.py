"""Sums, extremes, scans and orders along axes, each spelled the way its array library is fastest at.

NumPy is recognised by identity; everything else takes the spelling that CuPy has, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

LONGEST_DOT: Final = 65_536
"""Above this many terms NumPy's pairwise sum is as fast as a matrix product, and rounds less."""


def waits(xp: Any) -> bool:
    """Whether looking at a value means waiting for a GPU: then what an index holds is not checked."""
    return getattr(xp, "__name__", "") == "cupy"


def at_least_1d(x: Any) -> Any:
    """A 0-dim array as one of shape (1,): the axis that PyTorch lets a scalar have."""
    return x if x.ndim else x.reshape(1)


def axes_of(x: Any, dim: Sequence[int] | int | None) -> tuple[int, ...]:
    """The axes that a ``dim`` argument names, sorted; none or an empty sequence names all."""
    ndim = x.ndim
    if dim is None or dim == ():
        return tuple(range(ndim))
    if isinstance(dim, int):
        return (dim % ndim,) if ndim else ()
    return tuple(sorted(d % ndim for d in dim)) if ndim else ()


def count(x: Any, axes: Sequence[int]) -> int:
    """How many elements each result of a reduction over ``axes`` is made of."""
    n = 1
    for axis in axes:
        n *= x.shape[axis]
    return n


@lru_cache(64)
def _ones(n: int, dtype: Any) -> Any:
    ones = np.ones(n, dtype)
    ones.flags.writeable = False
    return ones


def total(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    """``xp.sum``; over leading or trailing axes NumPy is beaten by BLAS, 2 to 6 times."""
    if xp is np and len(axes) < x.ndim and axes and x.size and x.dtype.char in "fd":
        if x.flags.c_contiguous:
            found = _dot_ones(x, axes)
            if found is not None:
                return found.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdims else found
        elif x.flags.f_contiguous:
            last = x.ndim - 1
            return total(xp, x.T, tuple(sorted(last - a for a in axes)), keepdims).T
    return xp.sum(x, axis=axes, keepdims=keepdims)


def _dot_ones(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum over a prefix, a suffix, or a prefix and a suffix of a C-contiguous array's axes, else ``None``."""
    ndim, k = x.ndim, len(axes)
    lead = 0
    while lead < k and axes[lead] == lead:
        lead += 1
    trail = k - lead
    if trail and axes[lead:] != tuple(range(ndim - trail, ndim)):
        return None
    kept = x.shape[lead : ndim - trail]
    if trail:
        inner = count(x, range(ndim - trail, ndim))
        if inner > LONGEST_DOT:
            return None
        x = x.reshape(-1, inner) @ _ones(inner, x.dtype)
    if lead:
        kept_size = 1
        for n in kept:
            kept_size *= n
        x = x.reshape(-1, kept_size)
        x = _ones(x.shape[0], x.dtype) @ x if x.shape[0] <= LONGEST_DOT else x.sum(0)
    return x.reshape(kept)


def extreme(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool = False, largest: bool = True) -> Any:
    """``xp.max`` or ``xp.min``, NaN winning; along the last axis NumPy's argmax is several times faster."""
    if xp is np and axes == (x.ndim - 1,) and x.size and x.ndim > 1 and x.flags.c_contiguous and x.dtype.kind in "fiu":
        rows = x.reshape(-1, x.shape[-1])
        at = rows.argmax(1) if largest else rows.argmin(1)
        found = rows[np.arange(len(rows)), at]
        return found.reshape((*x.shape[:-1], 1) if keepdims else x.shape[:-1])
    return (xp.max if largest else xp.min)(x, axis=axes, keepdims=keepdims)


def along(x: Any, axis: int, start: int | None, end: int | None = None) -> tuple[slice, ...]:
    """The index that slices one axis."""
    ndim: int = x.ndim
    return (slice(None),) * (axis % ndim) + (slice(start, end),)


def running(xp: Any, name: str, x: Any, axis: int) -> Any:
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


def recurrence(xp: Any, factor: Any, term: Any, axis: int) -> Any:
    """``s[i] = term[i] + factor[i] * s[i - 1]``, in a logarithmic number of passes."""
    factor, out = factor.copy(), term.copy()
    distance = 1
    while distance < out.shape[axis]:
        later, earlier = along(out, axis, distance), along(out, axis, None, -distance)
        out[later] += factor[later] * out[earlier]
        factor[later] = factor[later] * factor[earlier]
        distance *= 2
    return out


def flipped(x: Any, axis: int) -> Any:
    """A view with one axis reversed."""
    return x[(slice(None),) * (axis % x.ndim) + (slice(None, None, -1),)]


def order(xp: Any, x: Any, axis: int, descending: bool = False) -> Any:
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


def undefined(xp: Any, x: Any) -> Any:
    """Where values are NaN; integers never are."""
    return xp.isnan(x) if x.dtype.kind == "f" else xp.zeros(x.shape, bool)
