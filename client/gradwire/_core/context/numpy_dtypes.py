"""The dtypes of tensors as NumPy's, and back."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

NUMPY_DTYPES: Final = {d: np.dtype(getattr(ml_dtypes, d.name, d.name)) for d in dtypes.ALL}
DTYPES: Final = {native: dtype for dtype, native in NUMPY_DTYPES.items()}

FOREIGN: Final = frozenset(dtype for dtype, native in NUMPY_DTYPES.items() if native.type.__module__ != "numpy")
"""The dtypes that NumPy itself has not: bfloat16 and the floats of 8 bits."""
_LARGEST: Final = 448
"""Of float8_e4m3fn, which has no infinity: numbers beyond become the largest, as in PyTorch."""


def cast(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """A row-major copy of an array in a dtype, with PyTorch's rounding. What is too large for a float is infinite."""
    native = NUMPY_DTYPES[dtype]
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.for_storage and dtype.is_floating_point and array.dtype != native:
            array = array.astype(np.float32)
            if dtype is dtypes.float8_e4m3fn:
                array = array.clip(-_LARGEST, _LARGEST)
        return array.astype(native, order="C")
