"""Numbers as vectors write them, and as bytes: both directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

SPELLED: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
SAFE_INTEGER: Final = 2**53


def native(dtype: str) -> Any:
    """NumPy's dtype of this name, little-endian."""
    return np.dtype(getattr(ml_dtypes, dtype, dtype)).newbyteorder("<")


def to_bytes(values: Any, dtype: str, shape: list[int]) -> bytes:
    """The bytes of nested lists, row-major."""
    depth = len(shape)
    array: Any = np.empty(shape, native(dtype))
    flat = _flat(values, depth)
    array.reshape(-1)[:] = [_number(value, dtype) for value in flat]
    return bytes(array.tobytes())


def to_values(data: bytes | memoryview, dtype: str, shape: list[int]) -> Any:
    """Nested lists of row-major bytes."""
    array = np.frombuffer(data, native(dtype)).reshape(shape)
    if dtype.startswith("complex"):
        return _mapped(np.stack([array.real, array.imag], -1).astype(np.float64).tolist(), _spelled)
    if dtype.startswith(("float", "bfloat")):
        return _mapped(array.astype(np.float64).tolist(), _spelled)
    return _mapped(array.tolist(), lambda v: v if -SAFE_INTEGER < v < SAFE_INTEGER else str(v))


def number(value: Any) -> float | int:
    """A real number of a vector, which may be spelled."""
    if isinstance(value, str):
        return SPELLED[value] if value in SPELLED else int(value)
    return value


def _number(value: Any, dtype: str) -> Any:
    return complex(number(value[0]), number(value[1])) if isinstance(value, list) else number(value)


def _flat(values: Any, depth: int) -> list[Any]:
    return [values] if depth == 0 else [leaf for each in values for leaf in _flat(each, depth - 1)]


def _spelled(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _mapped(values: Any, change: Callable[[Any], Any]) -> Any:
    return [_mapped(value, change) for value in values] if isinstance(values, list) else change(values)
