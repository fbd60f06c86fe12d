"""``torch.types``: names for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from gradwire_protocol.dtypes import DType

from ._core.context.layouts import layout
from ._core.context.size import Size
from ._core.context.size import device as _device
from ._core.tensor.tensor import Tensor

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = Any
Storage: TypeAlias = Any
_dtype = DType
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_int, _float, _bool = int, float, bool

BoolLikeType: TypeAlias = bool
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
PySymType: TypeAlias = int | float | bool
py_sym_types = ()
_complex, _str, _bytes, _symsize = complex, str, bytes, _size
_layout = layout
_Number = (int, float, bool)
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = Any

__all__ = ["Device", "FileLike", "Number", "Storage"]
