"""Casts of whole arrays. Those that NumPy makes an element at a time have compiled forms, which give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .arrays import Array, Native

QUICK: Final[dict[tuple[Native, Native], Callable[[Array], Array]]] = {}
"""By source and target dtype: makes a cast array on the host, or returns ``NotImplemented``. Empty until the compiled
kernels are loaded. A session need not know of them, since every bit is NumPy's, of NaN as well."""

SMALLEST: Final = 1024
"""Elements below which NumPy is as quick."""


def cast(array: Array, dtype: Native) -> Array:
    """A copy of the array in another dtype."""
    if QUICK and type(array) is np.ndarray and array.size >= SMALLEST:
        quick = QUICK.get((array.dtype, dtype))
        if quick is not None:
            found = quick(array)
            if found is not NotImplemented:
                return found
    return array.astype(dtype)
