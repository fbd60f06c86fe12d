"""PyTorch's numbers that a compiler does not know yet (``torch.SymInt``), which do not occur: sizes are numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from typing import Any

from .stand_ins import stand_in

SymInt = stand_in("torch.SymInt", "sizes are ints", __name__)
SymFloat = stand_in("torch.SymFloat", "numbers are floats", __name__)
SymBool = stand_in("torch.SymBool", "conditions are bools", __name__)


def sym_int(a: Any) -> int:
    """A number as an int, rounded towards zero."""
    return math.trunc(a) if isinstance(a, float) else int(a)


def sym_float(a: Any) -> float:
    """A number as a float."""
    return builtins.float(a)


def sym_not(a: Any) -> bool:
    """The opposite of a condition."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers: a float if one is."""
    found = max(a, b)
    return builtins.float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers: a float if one is."""
    found = min(a, b)
    return builtins.float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """``t`` if ``b``, else ``f``, which are of one type."""
    if type(t) is not type(f):
        raise TypeError(f"sym_ite: both values are of one type, not {type(t).__name__} and {type(f).__name__}")
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers."""
    return builtins.sum(args)
