"""Tensor values as JSON: nested lists, with strings and pairs for values that JSON numbers cannot represent.

NaN and infinities are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; a complex number is ``[re, im]``;
an integer beyond 2**53 is a decimal string.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import MalformedFrame, ShapeError
from gradwire_protocol.meta import Shape

from ..runtime.arrays import Array, native
from ..runtime.casting import cast

SAFE_INTEGER: Final = 2**53
_SPELLED: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def entries(shape: Sequence[int]) -> int:
    """The number of lists and numbers in the nested lists of a tensor. An empty tensor may have many lists."""
    found = count = 1
    for extent in shape:
        count *= extent
        found += count
    return found


def to_json(array: Array, dtype: DType) -> Any:
    """Nested lists of an array's values."""
    if dtype.is_complex:
        array = np.stack([array.real, array.imag], -1)
    if dtype.carries_gradient:
        values = array.astype(np.float64)
        return values.tolist() if np.isfinite(values).all() else _map(values.tolist(), _spell_float)
    values = array.tolist()
    if dtype.name in ("int64", "uint64") and array.size and _beyond(array):
        return _map(values, lambda v: v if -SAFE_INTEGER < v < SAFE_INTEGER else str(v))
    return values


def _beyond(array: Array) -> bool:
    """Whether some integer is not exact as a JSON number of every language."""
    return bool((array >= SAFE_INTEGER).any() or (array.dtype.kind == "i" and (array <= -SAFE_INTEGER).any()))


def _spell_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _map(values: Any, function: Callable[..., Any]) -> Any:
    return [_map(v, function) for v in values] if isinstance(values, list) else function(values)


def from_json(values: Any, dtype: DType, shape: Shape) -> Array:
    """The inverse of :func:`to_json`, for untrusted input.

    Raises:
        ShapeError: when the lists do not form the shape.
        MalformedFrame: for an entry that is not a number of this dtype.
    """
    flat: list[Any] = []
    _collect(values, shape, 0, flat)
    numbers = [_number(v, dtype) for v in flat]
    try:
        if dtype.for_storage and dtype.is_floating_point:
            return cast(np.array(numbers, np.float64), native(dtype)).reshape(shape)
        return np.array(numbers, dtype=native(dtype)).reshape(shape)
    except (OverflowError, ValueError) as error:
        raise MalformedFrame(f"a value does not fit into {dtype.name}: {error}") from None


def infer_shape(values: Any, is_complex: bool = False) -> Shape:
    """The shape of nested lists, judging by the first entry at each level."""
    shape: list[int] = []
    while isinstance(values, list):
        shape.append(len(values))
        if not values:
            break
        values = values[0]
    return tuple(shape[:-1] if is_complex else shape)


def _collect(values: Any, shape: Shape, depth: int, flat: list[Any]) -> None:
    if depth == len(shape):
        flat.append(values)
        return
    if not isinstance(values, list) or len(values) != shape[depth]:
        got = f"{len(values)} entries" if isinstance(values, list) else f"{values!r:.40}"
        raise ShapeError(f"the values at depth {depth} must be a list of {shape[depth]}, not {got}")
    for entry in values:
        _collect(entry, shape, depth + 1, flat)


def _number(value: Any, dtype: DType) -> complex:
    if dtype.is_complex:
        if isinstance(value, list) and len(value) == 2:
            return complex(_real(value[0], dtype), _real(value[1], dtype))
        return complex(_real(value, dtype))
    if dtype.is_floating_point:
        return _real(value, dtype)
    if dtype.name == "bool":
        if isinstance(value, bool) or value in (0, 1):
            return bool(value)
    elif isinstance(value, int) or (isinstance(value, str) and value.lstrip("-").isdigit() and len(value) <= 20):
        return int(value)
    raise MalformedFrame(f"{value!r:.40} is not a {dtype.name} value")


def _real(value: Any, dtype: DType) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str) and value in _SPELLED:
        return _SPELLED[value]
    raise MalformedFrame(
        f'{value!r:.40} is not a {dtype.name} value (NaN is "NaN", infinities "Infinity", "-Infinity")'
    )
