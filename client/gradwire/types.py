"""``torch.types``: names for annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

from gradwire_protocol.dtypes import DType

from ._core.context.size import Size
from ._core.context.size import device as _device

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = Any
Storage: TypeAlias = Any
_dtype = DType
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_int, _float, _bool = int, float, bool

__all__ = ["Device", "FileLike", "Number", "Storage"]
