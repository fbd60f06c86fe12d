"""Numbers of every dtype as bytes and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from gradwire.cli.conformance.vectors import Vector
from gradwire_engine.runtime.arrays import native
from gradwire_engine.session.json_values import from_json, to_json
from gradwire_protocol import dtypes
from gradwire_protocol.errors import GradwireError

WIDEST: Final = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38,
                 "float64": 1.7976931348623157e308, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}  # fmt: skip
SMALLEST: Final = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324,
                   "float8_e4m3fn": 2.0**-9, "float8_e5m2": 2.0**-16}  # fmt: skip

ROUNDED: Final[tuple[tuple[str, list[Any]], ...]] = (
    ("float16", [0.1, 1 / 3, 2049.0, 65519.0, 1e-8]), ("bfloat16", [0.1, 1 / 3, 257.0, 1.00390625]),
    ("float32", [0.1, 16777217.0, 1e-46]), ("complex64", [[0.1, -0.1], 2.5]),
    ("float8_e4m3fn", [0.1, 1.0625, 1.1875, 2.0**-10, 1000.0, "Infinity", "-Infinity"]),
    ("float8_e5m2", [0.1, 1.125, 1.375, 2.0**-17, 61439.0, 61440.0]),
)  # fmt: skip
"""Numbers that the dtype does not hold: each becomes the nearest that it holds, halves to even."""

SPELLINGS: Final[tuple[tuple[str, str, list[Any]], ...]] = (
    ("int64", "strings, also of small integers", ["9223372036854775807", "-9223372036854775808", "7", 8]),
    ("uint64", "strings, also of small integers", ["18446744073709551615", "7", 8]),
    ("bool", "zeros and ones as bools", [0, 1, True, False]),
    ("float32", "integers as floats", [1, -2, 0]),
    ("complex64", "real numbers as complex ones", [1, 2.5, ["NaN", "-Infinity"]]),
)

REFUSED: Final[tuple[tuple[str, str, str, list[int], Any], ...]] = (
    ("uint8", "above the range", "range", [1], [256]), ("int8", "below the range", "range", [1], [-129]),
    ("int64", "beyond 64 bits", "range", [1], ["9223372036854775808"]),
    ("uint16", "above the range", "range", [1], [65536]), ("uint64", "below zero", "range", [1], [-1]),
    ("int32", "a fraction", "fraction", [1], [1.5]), ("bool", "a number other than 0 and 1", "two", [1], [2]),
    ("float32", "a text that spells no number", "text", [1], ["nan"]), ("float32", "a null", "null", [1], [None]),
    ("int64", "a text that is no integer", "text", [1], ["1e3"]),
    ("complex64", "three parts", "parts", [1], [[1, 2, 3]]),
    ("float32", "too few numbers", "few", [3], [1.0, 2.0]), ("float32", "too many numbers", "many", [1], [1.0, 2.0]),
    ("float32", "rows of unequal length", "ragged", [2, 2], [[1.0, 2.0], [3.0]]),
    ("float32", "a number where a list belongs", "depth", [1, 1], [1.0]),
)  # fmt: skip


def vectors() -> Iterator[Vector]:
    """The group."""
    for dtype in dtypes.ALL:
        for name, text, array in _arrays(dtype.name):
            yield {
                "id": f"values/{dtype.name}/{name}", "text": f"{dtype.name}: {text}", "dtype": dtype.name,
                "shape": list(array.shape), "bytes": array.tobytes().hex(), "values": to_json(array, dtype),
            }  # fmt: skip
    for name, written in ROUNDED:
        yield _encoded(name, "rounded", "numbers between two of the dtype", written)
    for name, text, written in SPELLINGS:
        yield _encoded(name, "spelled", text, written)
    for name, text, label, shape, written in REFUSED:
        try:
            from_json(written, dtypes.BY_NAME[name], tuple(shape))
        except GradwireError as error:
            code = error.code
        yield {
            "id": f"values/{name}/refused/{label}", "text": f"{name}: {text}", "dtype": name, "shape": shape,
            "values": written, "error": code,
        }  # fmt: skip


def _encoded(name: str, label: str, text: str, written: list[Any]) -> Vector:
    array = from_json(written, dtypes.BY_NAME[name], (len(written),))
    return {
        "id": f"values/{name}/{label}", "text": f"{name}: {text}", "direction": "encode", "dtype": name,
        "shape": [len(written)], "bytes": array.tobytes().hex(), "values": written,
    }  # fmt: skip


def _arrays(name: str) -> Iterator[tuple[str, str, Any]]:
    dtype = dtypes.BY_NAME[name]
    kind: Any = native(dtype)

    def of(values: Any) -> Any:
        return np.array(values, dtype=kind)

    if name == "bool":
        yield "plain", "both", of([False, True])
    elif dtype.category == dtypes.INTEGRAL:
        yield "extremes", "the ends of the range", of([np.iinfo(kind).min, 0, 1, np.iinfo(kind).max])
        if name == "uint64":
            yield "beyond", "beyond 2**53 as strings", of([2**53 - 1, 2**53, 2**53 + 1])
        if name == "int64":
            safe = [2**53 - 1, 2**53, 2**53 + 1, -(2**53) + 1, -(2**53), -(2**53) - 1]
            yield "beyond", "beyond 2**53 as strings", of(safe)
    elif dtype.is_complex:
        part: Any = np.float32 if name == "complex64" else np.float64
        pairs = np.array([[0.5, -0.25], [np.nan, 1.0], [np.inf, -np.inf], [-0.0, 0.0]], dtype=part)
        yield "plain", "pairs of real and imaginary part, also those that are not finite", pairs.view(kind).reshape(-1)
    else:
        last = 224.0 if dtype.itemsize == 1 else 240.0
        yield "plain", "numbers that it holds exactly, and both zeros", of([0.0, -0.0, 1.0, -1.5, 0.15625, last])
        if name == "float8_e4m3fn":
            yield "special", "NaN; there are no infinities", of([np.nan])
        else:
            yield "special", "NaN and infinities", of([np.nan, np.inf, -np.inf])
        yield "extremes", "the largest, and the smallest above zero", of([WIDEST[name], -WIDEST[name], SMALLEST[name]])
        yield "decimals", "numbers whose decimals are many", of([0.1, 1 / 3, -123.456])
    yield "number", "no dimensions", of(1)
    yield "empty", "no elements", np.empty((0, 2), kind)
    yield "matrix", "rows", of([[0, 1, 1], [1, 0, 1]])
