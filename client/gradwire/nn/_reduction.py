"""``torch.nn._reduction``: names of reductions as numbers, and the older two flags as names."""

from __future__ import annotations

import warnings
from typing import Final

_NUMBERS: Final = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    Raises:
        ValueError: for an unknown one.
    """
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated: say 'mean'", stacklevel=2)
    if reduction not in _NUMBERS:
        raise ValueError(f"the reduction is one of {list(_NUMBERS)}, not {reduction!r:.40}")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that the two older flags mean."""
    averages, reduces = size_average is not False, reduce is not False
    found = "none" if not reduces else "mean" if averages else "sum"
    if emit_warning:
        warnings.warn(f"size_average and reduce are deprecated: say reduction={found!r}", stacklevel=2)
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that the two older flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
