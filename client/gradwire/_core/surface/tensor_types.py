"""PyTorch's old tensor types: ``torch.FloatTensor([1, 2])``, ``isinstance(x, torch.LongTensor)``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..context.size import Size
from ..context.size import device as Device
from ..session.current_session import current_session
from ..tensor.tensor import Tensor
from .conversions import to
from .creation import empty, tensor
from .methods import attach


class TensorType(type):
    """The class of the types: ``isinstance`` asks for dtype and place of a tensor."""

    dtype: DType
    device: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == cls.device

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> TensorType:
        if bases:
            raise ArgumentTypeError(f"{bases[0].__name__} is a name for tensors of one dtype: derive from Tensor")
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, *args: Any, device: Any = None, size: Any = None) -> Any:
        """Uninitialised of a size given as ints, or the values of a sequence, an array or a tensor.

        Raises:
            ArgumentError: for a device of another kind.
        """
        where = Device(cls.device if device is None else device)
        if where.type != cls.device:
            raise ArgumentError(f"{cls.__module__}.{cls.__name__} is for tensors on {cls.device}, not on {where}")
        if size is not None and not args:
            args = (Size(size),)
        if len(args) == 1 and isinstance(args[0], Tensor):
            if args[0].dtype is not cls.dtype:
                raise ArgumentTypeError(f"{cls.__name__} takes {cls.dtype!r}, not {args[0].dtype!r}")
            return args[0].detach()
        if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray)) and not isinstance(args[0], Size):
            return tensor(args[0], dtype=cls.dtype, device=where)
        return empty(*(args or (0,)), dtype=cls.dtype, device=where)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


_NAMES: Final = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64, "IntTensor": dtypes.int32,
    "ShortTensor": dtypes.int16, "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8, "BoolTensor": dtypes.bool_,
}  # fmt: skip


def _made(name: str, dtype: DType, device: str) -> TensorType:
    kind = TensorType(name, (), {"__module__": "torch" if device == "cpu" else "torch.cuda"})
    kind.dtype, kind.device = dtype, device
    return kind


TYPES: Final = {name: _made(name, dtype, "cpu") for name, dtype in _NAMES.items()}
CUDA_TYPES: Final = {name: _made(name, dtype, "cuda") for name, dtype in _NAMES.items()}


_SPELLED: Final = {dtype.name: name for name, dtype in _NAMES.items()} | {
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
    "uint16": "UInt16Tensor",
    "uint32": "UInt32Tensor",
    "uint64": "UInt64Tensor",
    "float8_e4m3fn": "Float8_e4m3fnTensor",
    "float8_e5m2": "Float8_e5m2Tensor",
}


def by_name(name: str) -> TensorType | None:
    """The type that a name like ``torch.FloatTensor`` or ``torch.cuda.FloatTensor`` stands for."""
    table = CUDA_TYPES if name.startswith("torch.cuda.") else TYPES
    return table.get(name.rpartition(".")[2])


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """In another dtype; without one, the name of PyTorch's tensor type.

    Args:
        dtype: a dtype, a type like ``torch.FloatTensor``, or its name. A type tells the device, too. ``torch.Tensor``
            stands for the default dtype.

    Raises:
        ArgumentValueError: for a name that is not of such a type.
    """
    if dtype is None:
        room = {"cpu": "torch", "cuda": "torch.cuda"}.get(self.device.type, f"torch.{self.device.type}")
        return f"{room}.{_SPELLED[self.dtype.name]}"
    if dtype is Tensor or dtype == "torch.Tensor":
        dtype = current_session().default_dtype
    elif isinstance(dtype, str):
        found = by_name(dtype)
        if found is None:
            raise ArgumentValueError(f"{dtype!r} is not the name of a tensor type, like 'torch.FloatTensor'")
        dtype = found
    if isinstance(dtype, TensorType):
        return to(self, dtype=dtype.dtype, device=self.device if self.device.type == dtype.device else dtype.device)
    return to(self, dtype)


attach("type", _type)
