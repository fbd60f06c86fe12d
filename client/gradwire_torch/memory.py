"""What a tensor of PyTorch on the device stands for: a storage holds gradwire's tensors of one memory.

PyTorch keeps shapes, strides, views and version counters itself. A storage of the device has no bytes here; it has an
address, which nothing points to, so that tensors that share memory can be found by it, as libraries do.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Final

import torch

import gradwire as gw

from .dtypes import OURS, THEIRS

_FIRST_ADDRESS: Final = 1 << 46
"""Beyond what a process can map, so that reading from an address fails at once."""
_ALIGNMENT: Final = 512
_EXTENSION_DEVICE: Final = 12
"""kDLExtDev of DLPack: PyTorch's PrivateUse1."""
_reinterpret: Final[Any] = torch._C._dynamo.guards._reinterpret_tensor  # type: ignore[attr-defined]


class Memory:
    """The memory behind one storage of PyTorch's."""

    __slots__ = ("forms", "root", "whole")

    def __init__(self, root: gw.Tensor, whole: Any) -> None:
        self.root, self.whole = root, whole
        self.forms: dict[Any, gw.Tensor] | None = None

    def form(self, key: Any) -> gw.Tensor:
        """The view with a dtype, an offset, a shape and strides. The offset counts from the beginning of the memory."""
        if key == self.whole:
            return self.root
        if self.forms is None:
            self.forms = {}
        found = self.forms.get(key)
        if found is None:
            dtype, offset, size, stride = key
            root, wanted = self.root, OURS[dtype]
            if root.dtype is not wanted:
                root = gw.as_strided(root, (root.numel(),), (1,), 0).view(wanted)
            found = self.forms[key] = gw.as_strided(root, tuple(size), stride, offset)
        return found


def ours(tensor: torch.Tensor) -> gw.Tensor:
    """The tensor of gradwire that a tensor on the device stands for.

    Raises:
        RuntimeError: for a tensor of another device, as PyTorch does.
    """
    try:
        memory = tensor.untyped_storage().memory  # type: ignore[attr-defined]
    except AttributeError:
        return _elsewhere(tensor)
    return memory.form((tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride()))


def plain(tensor: torch.Tensor) -> gw.Tensor:
    """gradwire's tensor with the values of one that PyTorch may see conjugated or negated: a few kernels get those."""
    found = ours(tensor)
    if tensor.is_conj():
        found = found.conj_physical()
    return -found if tensor.is_neg() else found


def _elsewhere(tensor: torch.Tensor) -> gw.Tensor:
    """A number that PyTorch keeps on the CPU goes along with the operation."""
    if tensor.device.type == "cpu" and tensor.ndim == 0:
        return upload(tensor)
    raise RuntimeError(
        f"expected all tensors to be on the same device, but one of shape {tuple(tensor.shape)} is on {tensor.device}"
    )


def upload(tensor: torch.Tensor) -> gw.Tensor:
    """A copy of a tensor of the CPU on the server."""
    source = tensor.detach().resolve_conj().resolve_neg()
    if source._is_zerotensor():
        source = source.clone()
    if source.dtype in _BY_BITS:
        bits, own = _BY_BITS[source.dtype]
        return gw.from_numpy(source.contiguous().view(bits).numpy()).view(own)
    return gw.from_numpy(source.numpy())


_BY_BITS: Final = {
    torch.bfloat16: (torch.int16, gw.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, gw.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, gw.float8_e5m2),
}
"""Dtypes that NumPy lacks travel as the integers of their bits."""


def download(tensor: gw.Tensor) -> torch.Tensor:
    """A copy of a tensor of the server on the CPU."""
    for theirs, (bits, own) in _BY_BITS.items():
        if tensor.dtype is own:
            return torch.from_numpy(tensor.contiguous().view(OURS[bits]).numpy()).view(theirs)
    return torch.from_numpy(tensor.numpy())


# New tensors of PyTorch, through DLPack, which alone makes one of a device, an address, a shape and strides


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_CODES: Final[dict[torch.dtype, tuple[int, int]]] = {
    torch.bool: (6, 8), torch.bfloat16: (4, 16), torch.float8_e4m3fn: (10, 8), torch.float8_e5m2: (12, 8),
    **{dtype: (1, 8 * dtype.itemsize) for dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)},
    **{dtype: (0, 8 * dtype.itemsize) for dtype in (torch.int8, torch.int16, torch.int32, torch.int64)},
    **{dtype: (2, 8 * dtype.itemsize) for dtype in (torch.float16, torch.float32, torch.float64)},
    **{dtype: (5, 8 * dtype.itemsize) for dtype in (torch.complex64, torch.complex128)},
}  # fmt: skip
"""Kinds of numbers in DLPack, and their bits."""

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_from_capsule: Final = torch._C._from_dlpack
_MOST_KNOWN: Final = 4096


class _Maker:
    """Makes tensors of one dtype, shape and strides on one device."""

    __slots__ = ("address", "described", "kept", "lock", "managed", "nbytes")

    def __init__(self, index: int, dtype: torch.dtype, shape: Any, strides: Any) -> None:
        self.managed = _Managed()
        described = self.described = self.managed.tensor
        described.device.type, described.device.index, described.ndim = _EXTENSION_DEVICE, index, len(shape)
        (described.dtype.code, described.dtype.bits), described.dtype.lanes = _CODES[dtype], 1
        extents = ctypes.c_int64 * len(shape)
        self.kept = extents(*shape), extents(*strides)
        described.shape, described.strides = self.kept
        self.address = ctypes.addressof(self.managed)
        self.lock = threading.Lock()
        last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        self.nbytes = dtype.itemsize * (last + 1) if 0 not in shape else 0

    def make(self, address: int) -> torch.Tensor:
        """A tensor whose memory is at an address."""
        with self.lock:
            self.described.data = address
            made: torch.Tensor = _from_capsule(_new_capsule(self.address, b"dltensor", None))
        return made


_makers: Final[dict[Any, _Maker]] = {}


def _maker(index: int, dtype: torch.dtype, shape: Any, strides: Any) -> _Maker:
    key = index, dtype, shape, strides
    found = _makers.get(key)
    if found is None:
        if len(_makers) >= _MOST_KNOWN:
            _makers.clear()
        found = _makers[key] = _Maker(index, dtype, shape, strides)
    return found


_lock: Final = threading.Lock()
_next = _FIRST_ADDRESS


def _reserve(nbytes: int) -> int:
    global _next
    with _lock:
        address = _next
        _next = address + (nbytes + _ALIGNMENT) // _ALIGNMENT * _ALIGNMENT
    return address


def theirs(tensor: gw.Tensor) -> torch.Tensor:
    """A new tensor on the device, with a storage of its own, for a new tensor of gradwire."""
    if tensor._is_view():
        tensor = tensor.clone()
    form = tensor._form
    where, shape, strides, dtype = form.device, form.shape, tensor.stride(), THEIRS[form.dtype]
    if -1 in shape:  # the server alone knows how many there are
        shape = tuple(tensor.shape)
        strides = tensor.stride()
    maker = _maker(0 if where == "cpu" else int(where[5:]), dtype, shape, strides)
    made = maker.make(_reserve(maker.nbytes))
    made.untyped_storage().memory = Memory(tensor, (dtype, 0, shape, strides))  # type: ignore[attr-defined]
    return made


def view_of(tensor: torch.Tensor, size: Any, stride: Any, offset: int) -> torch.Tensor:
    """A tensor on the storage of another, of its dtype. The offset counts from the beginning of the storage.

    Like PyTorch's views, it is a tensor of inference mode where the other one is, whatever the mode is now.
    """
    inference = tensor.is_inference()
    if inference is not torch.is_inference_mode_enabled():
        with torch.inference_mode(inference):
            return _reinterpret(tensor, size, stride, offset - tensor.storage_offset())
    made: torch.Tensor = _reinterpret(tensor, size, stride, offset - tensor.storage_offset())
    return made


def memory_of(tensor: torch.Tensor) -> Memory:
    """The memory behind a tensor on the device."""
    memory: Memory = tensor.untyped_storage().memory  # type: ignore[attr-defined]
    return memory


def same_memory(tensor: torch.Tensor, dtype: torch.dtype, size: Any, stride: Any, offset: int) -> torch.Tensor:
    """A tensor of another dtype on the memory of another."""
    inference = tensor.is_inference()
    if inference is not torch.is_inference_mode_enabled():
        with torch.inference_mode(inference):
            return on_storage(tensor.untyped_storage(), tensor.device.index, dtype, size, stride, offset)
    return on_storage(tensor.untyped_storage(), tensor.device.index, dtype, size, stride, offset)


def on_storage(
    storage: torch.UntypedStorage, index: int, dtype: torch.dtype, size: Any, stride: Any, offset: int
) -> torch.Tensor:
    """A tensor on the memory of a storage: its own storage is a second one with the same address."""
    length = max(1, storage.nbytes() // dtype.itemsize)
    whole = _maker(index, dtype, (length,), (1,)).make(storage.data_ptr())
    whole.untyped_storage().memory = storage.memory  # type: ignore[attr-defined]
    return view_of(whole, size, stride, offset)
