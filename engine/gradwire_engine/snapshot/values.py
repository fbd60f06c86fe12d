"""Exact conversion of nodes' saved values other than tensors (numbers, shapes, dtypes, metas) to plain data and back.

Numbers, strings, booleans and ``None`` stay as they are, and a tuple becomes a list. Everything else becomes a dict
with one entry, whose key is the type, including NaN and ints beyond 64 bits, which the encodings cannot represent.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.promotion import ScalarKind

from .facts import NotImageable

_LEAST, _MOST = -(1 << 63), (1 << 64) - 1

Refer = Callable[[Any], dict[str, Any] | None]
"""Returns ``{table: row}`` for an object with its own row, else ``None``."""


def encode(value: Any, refer: Refer) -> Any:
    """The value as plain data.

    Raises:
        NotImageable: for a value of an unknown type.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if _LEAST <= value <= _MOST else {"int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if kind is tuple:
        return [encode(item, refer) for item in value]
    if kind is list:
        return {"list": [encode(item, refer) for item in value]}
    if kind is dict:
        return {"dict": [[encode(k, refer), encode(v, refer)] for k, v in value.items()]}
    if kind is complex:
        return {"complex": [encode(value.real, refer), encode(value.imag, refer)]}
    if kind is DType:
        return {"dtype": value.name}
    if kind is ScalarKind:
        return {"kind": value.value}
    found = refer(value)
    if found is None:
        raise NotImageable(f"a node or an error of the session holds a {kind.__name__}, which is not plain data")
    return found


def decode(value: Any, tables: Mapping[str, list[Any]]) -> Any:
    """The inverse of :func:`encode`; ``tables`` has the objects with rows."""
    if type(value) is list:
        return tuple([decode(item, tables) for item in value])
    if type(value) is not dict:
        return value
    ((name, content),) = value.items()
    plain = _PLAIN.get(name)
    if plain is not None:
        return plain(content)
    if name == "list":
        return [decode(item, tables) for item in content]
    if name == "dict":
        return {decode(k, tables): decode(v, tables) for k, v in content}
    if name == "complex":
        return complex(*(decode(part, tables) for part in content))
    return tables[name][content]


_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "int": int,
    "float": lambda digits: struct.unpack(">d", bytes.fromhex(digits))[0],
    "dtype": dtypes.BY_NAME.__getitem__,
    "kind": ScalarKind,
}
