"""Pickles as PyTorch writes them: its names for gradwire's classes, and storages beside the pickle.

Tensors are read from the server in one round trip, after a first pass has found them.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, Unsupported

from ..context.hook_handles import HookTable
from ..context.layouts import layout, memory_format
from ..context.modes import no_grad
from ..context.size import Size
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..modules.module import Module
from ..modules.parameter import Parameter
from ..surface.generator import Generator
from ..surface.storages import UntypedStorage
from ..surface.typed_storages import STORAGE_NAMES, TypedStorage
from ..tensor.memory import begins_its_memory, memory_of, span, whole
from ..tensor.tensor import Tensor
from .layers import as_theirs
from .naming import belongs_to_gradwire, name_of

PROTOCOL: Final = 2


class Named:
    """A name in the file: something of PyTorch's that is called or referred to there."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *_: Any) -> Any:
        raise NotImplementedError(f"{self.module}.{self.name} is a name in a file")


_TENSOR: Final = Named("torch._utils", "_rebuild_tensor_v2")
_TENSOR_WITH_DTYPE: Final = Named("torch._utils", "_rebuild_tensor_v3")
_META: Final = Named("torch._utils", "_rebuild_meta_tensor_no_storage")
_PARAMETER: Final = Named("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE: Final = Named("torch._utils", "_rebuild_parameter_with_state")
_OF_TYPE: Final = Named("torch._tensor", "_rebuild_from_type_v2")
_GENERATOR: Final = Named("torch._utils", "_rebuild_generator")
_SIZE: Final = Named("torch", "Size")
_DEVICE: Final = Named("torch", "device")
_UNTYPED: Final = Named("torch.storage", "UntypedStorage")
_STORAGES: Final = {dtype: Named("torch", name) for dtype, name in STORAGE_NAMES.items()}


class _Saved:
    """A storage in the file."""

    def __init__(self, key: str, shown: Tensor, dtype: DType | None) -> None:
        self.key = key
        self.dtype = dtype
        with no_grad():
            flat = shown.data
            if not flat.is_contiguous() or span(flat) != flat.numel():
                flat = call("as_strided", flat, (span(flat),), (1,), 0)
        self.flat: Tensor = flat
        self.kept = shown  # while it lives, no other memory has its identity

    @property
    def identity(self) -> tuple[Any, ...]:
        count = self.flat.nbytes // (1 if self.dtype is None else self.dtype.itemsize)
        named = _UNTYPED if self.dtype is None else _STORAGES[self.dtype]
        return "storage", named, self.key, str(self.flat.device), count


class Writer:
    """Pickles one object, and reads the storages of its tensors.

    Attributes:
        storages: bytes by the storages' keys, after :meth:`write`.
    """

    def __init__(self, protocol: int = PROTOCOL) -> None:
        self.protocol = protocol
        self.storages: dict[str, memoryview[Any]] = {}
        self._saved: dict[int, _Saved] = {}
        self._unplaced: list[Tensor] = []

    def write(self, value: object) -> bytes:
        """The pickle."""
        pickled = self._pickled(value)
        probes = [call("offset_of", tensor) for tensor in self._unplaced]
        saved = list(self._saved.values())
        by_session: dict[Any, list[tuple[Any, Any]]] = {}
        for tensor, target in [*zip(probes, self._unplaced, strict=True), *((one.flat, one) for one in saved)]:
            by_session.setdefault(tensor._session, []).append((tensor, target))
        for session, pairs in by_session.items():
            for (_, target), array in zip(pairs, session.read([tensor for tensor, _ in pairs]), strict=True):
                if isinstance(target, _Saved):
                    flat = np.ascontiguousarray(array).reshape(-1)
                    self.storages[target.key] = flat.view(np.uint8).data
                else:
                    target._offset = int(array)
        self.storages = {one.key: self.storages[one.key] for one in saved}
        if probes:
            self._unplaced = []
            return self._pickled(value)
        return pickled

    def _pickled(self, value: object) -> bytes:
        file = io.BytesIO()
        _Pickler(file, self.protocol, self).dump(value)
        return file.getvalue()

    def storage(self, tensor: Tensor, dtype: DType | None) -> tuple[_Saved, int]:
        """The storage of a tensor in the file, and where in it the tensor begins."""
        saved = self._known(whole(tensor), dtype)
        offset = tensor._offset
        if offset is None and begins_its_memory(tensor):
            offset = 0
        if offset is None:
            self._unplaced.append(tensor)
        return saved, offset or 0

    def storage_alone(self, storage: UntypedStorage | TypedStorage) -> _Saved:
        """A storage in the file that no tensor names."""
        dtype = storage.dtype if isinstance(storage, TypedStorage) and storage.dtype in _STORAGES else None
        untyped = storage.untyped()
        there = untyped._there()
        whole_there = not untyped._begin and untyped._nbytes == span(there) * there.itemsize
        return self._known(there if whole_there else untyped._bytes().clone(), dtype)

    def _known(self, origin: Tensor, dtype: DType | None) -> _Saved:
        memory = id(memory_of(origin))
        saved = self._saved.get(memory)
        if saved is None:
            saved = self._saved[memory] = _Saved(str(len(self._saved)), origin, dtype)
        if saved.dtype is not dtype:
            raise ArgumentError(
                "tensors of different dtypes show one memory, which PyTorch's files cannot say: save a clone() of one"
            )
        return saved


_PYTHONS: Any = pickle._Pickler  # the one whose steps can be changed


class _Pickler(_PYTHONS):  # type: ignore[misc]
    dispatch: Any = _PYTHONS.dispatch.copy()

    def __init__(self, file: Any, protocol: int, writer: Writer) -> None:
        super().__init__(file, protocol)
        self._writer = writer

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is _Saved:
            return obj.identity
        if isinstance(obj, (UntypedStorage, TypedStorage)):
            return self._writer.storage_alone(obj).identity
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._tensor(obj)
        if isinstance(obj, Module):
            return self._module(obj)
        reduce = _REDUCED.get(type(obj))
        return NotImplemented if reduce is None else reduce(obj)

    def _tensor(self, obj: Tensor) -> Any:
        if isinstance(obj, Parameter):
            state = attributes_of(obj)
            data = obj.detach()
            data._offset = obj._offset
            arguments: tuple[Any, ...] = (data, obj.requires_grad, OrderedDict())
            if type(obj) is not Parameter or state:
                return _PARAMETER_WITH_STATE, (*arguments, state)
            return _PARAMETER, arguments
        size, stride = tuple(obj._known_meta().shape), tuple(obj._known_meta().stride)
        if obj._id < 0:
            made: Any = _META, (obj.dtype, size, stride, obj.requires_grad)
        else:
            dtype = obj.dtype if obj.dtype in _STORAGES else None
            try:
                saved, offset = self._writer.storage(obj, dtype)
            except Unsupported:  # its memory cannot be told: the elements themselves
                alone = obj.detach().clone()
                saved, offset = self._writer.storage(alone, dtype)
                stride = tuple(alone.stride())
            rest: tuple[Any, ...] = (offset, size, stride, obj.requires_grad, OrderedDict())
            made = (_TENSOR, (saved, *rest)) if dtype is not None else (_TENSOR_WITH_DTYPE, (saved, *rest, obj.dtype))
        state = attributes_of(obj)
        if type(obj) is Tensor and not state:
            return made
        return _OF_TYPE, (made[0], type(obj), made[1], state)

    def _module(self, obj: Module) -> Any:
        reduced = obj.__reduce_ex__(2)
        if reduced[0] is not copyreg.__newobj__ or not isinstance(reduced[2], dict):  # type: ignore[attr-defined]
            return reduced
        if not belongs_to_gradwire(type(obj)) or name_of(type(obj)) is not None:
            return (*reduced[:2], as_theirs(obj, reduced[2]), *reduced[3:])
        raise ArgumentTypeError(f"{type(obj).__qualname__} is a class that PyTorch has not: save a state_dict()")

    def save_named(self, obj: Named) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, (layout, memory_format)):
            path = f"torch {str(obj).rpartition('.')[2]}"
        elif belongs_to_gradwire(obj):
            path = name_of(obj) or ""
            if not path:
                raise ArgumentTypeError(
                    f"{getattr(obj, '__qualname__', obj)!s:.60} is gradwire's own, PyTorch has none: it cannot be saved"
                )
        else:
            super().save_global(obj, name)
            return
        self.write(pickle.GLOBAL + f"{path.replace(' ', chr(10))}\n".encode())
        self.memoize(obj)

    def save_type(self, obj: Any) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    def save_dtype(self, obj: DType) -> None:
        self.write(pickle.GLOBAL + f"torch\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[Named] = save_named
    dispatch[FunctionType] = save_global
    dispatch[type] = save_type
    dispatch[DType] = save_dtype


def attributes_of(tensor: Tensor) -> dict[str, Any]:
    """What the program attached to a tensor."""
    return dict(tensor.__dict__)


_REDUCED: Final[dict[type, Any]] = {
    Size: lambda obj: (_SIZE, (tuple(obj),)),
    Device: lambda obj: (_DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)),
    Generator: lambda obj: (_GENERATOR, (str(obj.device), obj._seed, obj.get_state())),
    HookTable: lambda obj: (OrderedDict, (), None, None, iter(obj.items())),
}
