"""The op table as the vectors go through it, and numbers as they write them."""

from __future__ import annotations

import importlib
import math
import pkgutil
from typing import Any

from gradwire_protocol import ops
from gradwire_protocol.table import TABLE, Op


def all_ops() -> list[Op]:
    """Every op of the table, by family and name."""
    for module in pkgutil.iter_modules(ops.__path__):
        importlib.import_module(f"{ops.__name__}.{module.name}")
    return sorted(TABLE.values(), key=lambda op: (op.family, op.name))


def spelled(value: Any) -> Any:
    """A number in JSON form."""
    if isinstance(value, complex):
        return [spelled(value.real), spelled(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value) if type(value) is int and abs(value) >= 2**53 else value


def unspelled(value: Any, kind: type[int] | type[float] = float) -> Any:
    """The number that a text spells."""
    return kind(value) if isinstance(value, str) else value
