"""A check that an op supports a dtype."""

from __future__ import annotations

from typing import Final

from .dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL, NAMED, DType
from .errors import Unsupported

_NAMES: Final = {BOOLEAN: "bool", INTEGRAL: "integer", FLOATING: "floating point", COMPLEX: "complex"}
REAL: Final = (INTEGRAL, FLOATING)
ORDERED: Final = (BOOLEAN, INTEGRAL, FLOATING)
WHOLE: Final = (BOOLEAN, INTEGRAL)


def check_exists(name: str, dtype: DType | None) -> None:
    """Check that there are tensors of this dtype.

    Raises:
        Unsupported: naming what was to make one, and the dtype.
    """
    if dtype is not None and dtype.name in NAMED:
        raise Unsupported(f"{name}: there are no {dtype.name} tensors in gradwire, only the dtype's name")


def require(name: str, dtype: DType, categories: tuple[int, ...]) -> None:
    """Check that an op supports this dtype.

    Raises:
        Unsupported: naming the op, the dtype and the supported categories.
    """
    if dtype.category not in categories:
        supported = " and ".join(_NAMES[c] for c in categories)
        raise Unsupported(f"{name} is not defined for {dtype.name} tensors; it supports {supported} tensors")
