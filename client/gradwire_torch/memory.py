"""What a tensor of PyTorch on the device stands for: a storage holds gradwire's tensors of one memory.

PyTorch keeps shapes, strides, views and version counters itself. A storage of the device has no bytes here; it has an
address, which nothing points to, so that tensors that share memory can be found by it, as libraries do.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from typing import Any, Final

import torch

import gradwire as gw

from .dtypes import OURS, THEIRS
from .progress import WATCHING

_FIRST_ADDRESS: Final = 1 << 46
"""Beyond what a process can map, so that reading from an address fails at once."""
_ALIGNMENT: Final = 512
_EXTENSION_DEVICE: Final = 12
"""kDLExtDev of DLPack: PyTorch's PrivateUse1."""
_reinterpret: Final[Any] = torch._C._dynamo.guards._reinterpret_tensor  # type: ignore[attr-defined]


_FEW_PARTS: Final = 4
_MOST_FORMS: Final = 256


class Memory:
    """The memory behind one storage of PyTorch's."""

    __slots__ = ("forms", "offsets", "root", "whole")

    def __init__(self, root: gw.Tensor, whole: Any) -> None:
        self.root, self.whole = root, whole
        self.forms: dict[Any, gw.Tensor] | None = None
        self.offsets: Counter[Any] | None = None

    def form(self, key: Any) -> gw.Tensor:
        """The view with a dtype, an offset, a shape and strides. The offset counts from the beginning of the memory."""
        if key == self.whole:
            return self.root
        if self.forms is None:
            self.forms = {}
        found = self.forms.get(key)
        if found is None:
            if len(self.forms) >= _MOST_FORMS:
                self.forms.clear()
            found = self.forms[key] = self._made(*key)
        return found

    def _made(self, dtype: torch.dtype, offset: int, size: Any, stride: Any) -> gw.Tensor:
        root, wanted = self.root, OURS[dtype]
        if root.dtype is not wanted:
            root = gw.as_strided(root, (root.numel(),), (1,), 0).view(wanted)
        if not offset or not self._moves((dtype, size, stride)):
            return gw.as_strided(root, tuple(size), stride, offset)
        length = 1 + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
        flat = root if root.ndim == 1 and root.is_contiguous() else gw.as_strided(root, (root.numel(),), (1,), 0)
        part = gw.narrow(flat, 0, offset, length)
        return part if stride == (1,) else gw.as_strided(part, tuple(size), stride)

    def _moves(self, geometry: Any) -> bool:
        """Whether the program goes through the memory in equal parts, as through batches. Where a part begins is then
        a number in a record and no property of it, so that a step is sent as the one before."""
        if self.offsets is None:
            self.offsets = Counter()
        self.offsets[geometry] += 1
        return self.offsets[geometry] > _FEW_PARTS and 0 not in geometry[1]


def ours(tensor: torch.Tensor) -> gw.Tensor:
    """The tensor of gradwire that a tensor on the device stands for.

    Raises:
        RuntimeError: for a tensor of another device, as PyTorch does.
    """
    try:
        memory: Memory = tensor.untyped_storage().memory  # type: ignore[attr-defined]
    except AttributeError:
        return _elsewhere(tensor)
    key = tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride()
    return memory.root if key == memory.whole else memory.form(key)


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


def upload(tensor: torch.Tensor, where: str = "cpu") -> gw.Tensor:
    """A copy of a tensor of the CPU on the server, on the device with this name of gradwire's."""
    source = tensor.detach().resolve_conj().resolve_neg()
    if source._is_zerotensor():
        source = source.clone()
    for note in WATCHING:
        note(source.nbytes)
    if source.dtype in _BY_BITS:
        bits, own = _BY_BITS[source.dtype]
        return gw.tensor(source.contiguous().view(bits).numpy(), device=where).view(own)
    return gw.tensor(source.numpy(), device=where)


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


_lock: Final = threading.Lock()
_next = _FIRST_ADDRESS


class _Maker:
    """Makes tensors of one dtype, shape and strides on one device.

    Attributes:
        whole: the key of the form that such a tensor has of memory of its own.
    """

    __slots__ = ("address", "described", "kept", "length", "managed", "whole")

    def __init__(self, index: int, dtype: torch.dtype, shape: Any, strides: Any) -> None:
        self.managed = _Managed()
        described = self.described = self.managed.tensor
        described.device.type, described.device.index, described.ndim = _EXTENSION_DEVICE, index, len(shape)
        (described.dtype.code, described.dtype.bits), described.dtype.lanes = _CODES[dtype], 1
        extents = ctypes.c_int64 * len(shape)
        self.kept = extents(*shape), extents(*strides)
        described.shape, described.strides = self.kept
        self.address = ctypes.addressof(self.managed)
        last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        nbytes = dtype.itemsize * (last + 1) if 0 not in shape else 0
        self.length = (nbytes + _ALIGNMENT) // _ALIGNMENT * _ALIGNMENT
        self.whole = dtype, 0, shape, strides

    def make(self, address: int) -> torch.Tensor:
        """A tensor whose memory is at an address."""
        with _lock:
            self.described.data = address
            made: torch.Tensor = _from_capsule(_new_capsule(self.address, b"dltensor", None))
        return made

    def make_new(self) -> torch.Tensor:
        """A tensor at an address of its own."""
        global _next
        with _lock:
            self.described.data = _next
            _next += self.length
            made: torch.Tensor = _from_capsule(_new_capsule(self.address, b"dltensor", None))
        return made


_makers: Final[dict[Any, _Maker]] = {}
_makers_of_forms: Final[dict[Any, _Maker]] = {}
"""By what gradwire knows of a tensor that is no view; such forms are the same object as a rule."""


def _maker(index: int, dtype: torch.dtype, shape: Any, strides: Any) -> _Maker:
    key = index, dtype, shape, strides
    found = _makers.get(key)
    if found is None:
        if len(_makers) >= _MOST_KNOWN:
            _makers.clear()
        found = _makers[key] = _Maker(index, dtype, shape, strides)
    return found


def _maker_of(tensor: gw.Tensor) -> _Maker:
    shape, strides = tuple(tensor.shape), tensor.stride()  # the server alone may know how many elements there are
    form = tensor._form
    found = _maker(0 if form.device == "cpu" else int(form.device[5:]), THEIRS[form.dtype], shape, strides)
    if form.known:
        if len(_makers_of_forms) >= _MOST_KNOWN:
            _makers_of_forms.clear()
        _makers_of_forms[form] = found
    return found


def theirs(tensor: gw.Tensor) -> torch.Tensor:
    """A new tensor on the device, with a storage of its own, for a new tensor of gradwire."""
    if tensor._is_view():
        tensor = tensor.clone()
    maker = _makers_of_forms.get(tensor._form) or _maker_of(tensor)
    made = maker.make_new()
    made.untyped_storage().memory = Memory(tensor, maker.whole)  # type: ignore[attr-defined]
    return made


def view_of(tensor: torch.Tensor, size: Any, stride: Any, offset: Any) -> torch.Tensor:
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
