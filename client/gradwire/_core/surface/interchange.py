"""Arrays of other libraries as tensors, and tensors as theirs: NumPy's protocols, DLPack, and buffers.

A tensor's memory is on the server, so nothing is shared: what PyTorch would view is copied here, once.
"""

from __future__ import annotations

import os
import warnings
from enum import IntEnum
from typing import Any

import numpy as np

from gradwire_protocol.accepts import check_exists
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..context.argument_types import Device
from ..context.layouts import check_layout, layout
from ..context.numpy_dtypes import FOREIGN, NUMPY_DTYPES
from ..dispatch.dispatch import call
from ..session.current_session import get_default_dtype
from ..tensor.tensor import Tensor
from .creation import place, tensor, upload
from .methods import attach
from .storages import UntypedStorage


def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Device = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """A tensor of a tensor, an array of any library, a buffer, a number or nested sequences of numbers.

    A tensor that already is as wanted is returned itself, unless ``copy=True``. Everything else is copied to the
    server. The history of a tensor is kept unless ``requires_grad=False``; a leaf requires grad afterwards if it is
    asked to, or, where nothing is said, if the tensor did.

    Raises:
        ArgumentValueError: for ``copy=False`` where the values have to be copied.
        DTypeError: where a gradient is wanted of a dtype that has none.
    """
    if isinstance(obj, Tensor):
        target = place(device, obj._session) if device is not None else obj._form.device
        fits = (dtype is None or obj.dtype is dtype) and obj._form.device == target
        if copy is False and not fits:
            raise ArgumentValueError("copy=False, but another dtype or device needs a copy")
        if requires_grad is None and obj.requires_grad:
            warnings.warn(
                "asarray: the result requires grad as the tensor does, which PyTorch has changed: say requires_grad",
                stacklevel=2,
            )
        wanted = obj.requires_grad if requires_grad is None else requires_grad
        made = obj
        if not fits:
            made = call("to", obj, dtype or obj.dtype, target, True)
        elif copy:
            made = obj.clone()
        if made.is_leaf:
            return made if made.requires_grad == wanted else made.requires_grad_(wanted)
        return made if wanted else made.detach()
    if isinstance(obj, UntypedStorage):
        return _of_storage(obj, dtype, device, copy, bool(requires_grad))
    if copy is False:
        raise ArgumentValueError(f"copy=False, but a {type(obj).__name__} must be copied to the server")
    return tensor(_as_array(obj), dtype=dtype, device=device, requires_grad=bool(requires_grad))


def _of_storage(
    storage: UntypedStorage, dtype: DType | None, device: Device, copy: bool | None, requires_grad: bool
) -> Tensor:
    """The numbers of a storage, in its memory unless another device or a copy is wanted."""
    made = storage._numbers(dtype or get_default_dtype())
    if device is not None and place(device) != made._form.device:
        if copy is False:
            raise ArgumentValueError("copy=False, but another device needs a copy")
        made = made.to(device)
    elif copy:
        made = made.clone()
    return made.requires_grad_() if requires_grad else made


def _as_array(obj: Any) -> Any:
    """An object as an array, if it speaks one of the protocols for that; else as it is."""
    if isinstance(obj, (np.ndarray, np.generic, list, tuple, str)):
        return obj
    if hasattr(obj, "__dlpack__"):
        return np.from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray)):
        return np.frombuffer(obj, np.uint8)
    if hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        return np.asarray(obj)
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        return obj


def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector of the numbers in a buffer, from byte ``offset`` on, ``count`` of them or all.

    Raises:
        ArgumentValueError: when the buffer does not hold them.
    """
    if not isinstance(dtype, DType):
        raise ArgumentTypeError(f"dtype is one of gradwire's, not {dtype!r:.40}")
    check_exists("frombuffer", dtype)
    if isinstance(buffer, UntypedStorage):
        buffer = buffer._local_bytes()
    try:
        data = memoryview(buffer).cast("B")
    except TypeError:
        raise ArgumentValueError(f"a {type(buffer).__name__} is no buffer of contiguous bytes") from None
    if data.nbytes == 0 or count == 0:
        raise ArgumentValueError(f"no number is wanted, or the buffer is empty: {data.nbytes} bytes, count={count}")
    if not 0 <= offset < data.nbytes:
        raise ArgumentValueError(f"offset {offset} is outside of the buffer's {data.nbytes} bytes")
    size = dtype.itemsize
    if count < 0:
        count, rest = divmod(data.nbytes - offset, size)
        if rest:
            raise ArgumentValueError(f"{data.nbytes - offset} bytes are no whole number of {dtype.name}")
    elif offset + count * size > data.nbytes:
        raise ArgumentValueError(f"{count} of {dtype.name} from byte {offset} on are more than {data.nbytes} bytes")
    array = np.frombuffer(data, NUMPY_DTYPES[dtype], count, offset).copy()
    return upload(array, dtype, None, requires_grad)


def from_file(
    filename: str | os.PathLike[str], shared: bool | None = None, size: int = 0, *, dtype: DType | None = None,
    layout: layout | None = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A vector of the first ``size`` numbers of a file, which are uploaded when something computes with them.

    Raises:
        Unsupported: for ``shared=True``, where writes would have to reach the file.
        ArgumentError: when the file cannot be read or has fewer numbers, or for a device that is not the CPU.
    """
    check_layout("from_file", layout)
    if device is not None and place(device) != "cpu":
        raise ArgumentError(f"from_file: a file is read into memory of the CPU, not of {device}: use .to()")
    chosen = get_default_dtype() if dtype is None else dtype
    try:
        held = UntypedStorage.from_file(filename, bool(shared), size * chosen.itemsize)
    except OSError as error:
        raise ArgumentError(f"from_file: {os.fspath(filename)} cannot be read: {error.strerror}") from error
    return held._numbers(chosen).requires_grad_(requires_grad)


class DLDeviceType(IntEnum):
    """The kinds of devices by their numbers in DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


class _Capsule:
    """A DLPack capsule of the host's memory, as NumPy takes it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """A tensor of an array that speaks DLPack, or of a capsule of one, in the host's memory. It is copied.

    Raises:
        ArgumentValueError: for ``copy=False``, unless it is a tensor of gradwire's.
        BufferError: for a tensor of gradwire's that requires grad.
    """
    if isinstance(ext_tensor, Tensor):
        _check_exported(ext_tensor)
        made = asarray(ext_tensor, device=device, copy=copy)
        return made.detach() if made is ext_tensor else made
    if copy is False:
        raise ArgumentValueError("copy=False, but an array of another library must be copied to the server")
    source = ext_tensor if hasattr(ext_tensor, "__dlpack__") else _Capsule(ext_tensor)
    return tensor(np.from_dlpack(source), device=device)


def _check_exported(tensor: Tensor) -> None:
    if tensor.requires_grad:
        raise BufferError("a tensor that requires grad is not exported: use detach()")


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of a copy of the values in the host's memory. One round trip."""
    return _dlpack(tensor.detach())


def _dlpack(
    self: Any, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """The values as a DLPack capsule, of a copy in the host's memory. One round trip."""
    _check_exported(self)
    if self.dtype in FOREIGN:
        raise BufferError(f"NumPy, through which tensors are exported, has no {self.dtype.name}: use .float()")
    if copy is False:
        raise BufferError("copy=False, but the values are on the server")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"tensors are exported to the host's memory, not to the device {dl_device}")
    return self._fetch().__dlpack__()


def _dlpack_device(self: Any) -> tuple[DLDeviceType, int]:
    """The host: that is where the exported copy is."""
    return DLDeviceType.kDLCPU, 0


def _array_wrap(self: Any, array: np.ndarray[Any, Any], context: Any = None, return_scalar: bool = False) -> Tensor:
    """A result that NumPy computed of tensors, as a tensor."""
    return tensor(array)


attach("__dlpack__", _dlpack)
attach("__dlpack_device__", _dlpack_device)
attach("__array_wrap__", _array_wrap)
attach("__array_priority__", 1000)  # arithmetic with an array is the tensor's

__all__ = ["DLDeviceType", "asarray", "from_dlpack", "frombuffer", "to_dlpack"]
