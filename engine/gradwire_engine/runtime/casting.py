"""Casts of whole arrays. Those that NumPy makes an element at a time have compiled forms, which give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from gradwire_protocol import dtypes

from .arrays import Array, Native, native

QUICK: Final[dict[tuple[Native, Native], Callable[[Array], Array]]] = {}
"""By source and target dtype: makes a cast array on the host, or returns ``NotImplemented``. Empty until the compiled
kernels are loaded. A session need not know of them, since every bit is NumPy's, of NaN as well."""

SMALLEST: Final = 1024
"""Elements below which NumPy is as quick."""

FOREIGN: Final = 256
"""NumPy's numbers of dtypes that are not its own begin here: the half and the 8-bit floats of ml_dtypes."""
_SINGLE: Final = np.dtype(np.float32)
_FLOAT8: Final = frozenset({native(dtypes.float8_e4m3fn), native(dtypes.float8_e5m2)})
_SATURATING: Final = native(dtypes.float8_e4m3fn)
_LARGEST: Final = 448
"""Of float8_e4m3fn, which has no infinity: in PyTorch a cast gives its largest number for all beyond."""


def cast(array: Array, dtype: Native) -> Array:
    """A copy of the array in another dtype."""
    if QUICK and type(array) is np.ndarray and array.size >= SMALLEST:
        quick = QUICK.get((array.dtype, dtype))
        if quick is not None:
            found = quick(array)
            if found is not NotImplemented:
                return found
    if (dtype.num >= FOREIGN or array.dtype.num >= FOREIGN) and (dtype in _FLOAT8 or array.dtype in _FLOAT8):
        return _through_single(array, dtype)
    return array.astype(dtype)


def _through_single(array: Array, dtype: Native) -> Array:
    """A cast from or to 8-bit floats, which PyTorch rounds to float32 on the way."""
    if array.dtype == dtype:
        return array.copy()
    single = array.astype(_SINGLE)
    if dtype == _SATURATING:
        single = single.clip(-_LARGEST, _LARGEST)
    return single.astype(dtype)


def saturated(value: float, dtype: Native) -> float:
    """A number as an assignment to an array of this dtype may take it, so that it becomes what a cast makes of it."""
    return min(max(value, -_LARGEST), _LARGEST) if dtype == _SATURATING and value == value else value
