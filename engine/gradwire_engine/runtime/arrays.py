"""What kernels compute on: the types of arrays, and the dtypes of the table in the array libraries."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

Array: TypeAlias = np.ndarray[Any, Any]
"""An array of NumPy or CuPy. A result without dimensions may be one of NumPy's scalars."""

DeviceArray: TypeAlias = Any
"""An array of CuPy, in code that only a GPU runs. CuPy has no types."""

Native: TypeAlias = np.dtype[Any]
"""A dtype of NumPy, which CuPy uses too."""

Namespace: TypeAlias = ModuleType
"""The array library that a kernel gets as ``xp``: NumPy or CuPy."""

_NATIVE: Final[dict[DType, Native]] = {
    dtype: np.dtype(getattr(ml_dtypes, dtype.name, dtype.name)) for dtype in dtypes.ALL
}
_FROM_NATIVE: Final[dict[Native, DType]] = {native: dtype for dtype, native in _NATIVE.items()}


native: Final = _NATIVE.__getitem__
"""The array libraries' name for a dtype."""

widened_native: Final = {
    dtype: _NATIVE[dtypes.float32 if dtype.is_low_precision else dtype] for dtype in dtypes.ALL
}.__getitem__
"""The dtype in which kernels compute that take no half precision."""


def dtype_of(array: Array) -> DType:
    """The DType of an array."""
    return _FROM_NATIVE[array.dtype]
