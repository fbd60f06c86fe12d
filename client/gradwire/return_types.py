"""``torch.return_types``: the classes of results with named parts, such as ``return_types.max``; and of such results
that were written into ``out=``, as ``return_types.max_out``."""

from __future__ import annotations

from typing import Any

from . import linalg as _linalg  # noqa: F401  # its results have classes, too
from ._core.surface.methods import RETURN_TYPES as _BY_NAME

_WITHOUT_OUT = "histogramdd"

for _name, _class in list(_BY_NAME.items()):
    if not _name.endswith("_out") and _name != _WITHOUT_OUT:
        _class._of_out()

all_return_types = list(_BY_NAME.values())
__all__ = ["all_return_types", *sorted(_BY_NAME)]


def __getattr__(name: str) -> Any:
    try:
        return _BY_NAME[name]
    except KeyError:
        raise AttributeError(f"module 'gradwire.return_types' has no attribute {name!r}") from None
