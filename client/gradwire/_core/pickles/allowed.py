"""The names that a PyTorch file may mention, with their meaning here. All others are refused."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

from ..context.layouts import channels_last, channels_last_3d, contiguous_format, preserve_format, strided
from ..context.numpy_dtypes import DTYPES
from ..context.size import Size
from ..context.size import device as Device
from ..surface.generator import Generator
from ..surface.typed_storages import STORAGE_NAMES
from .machine import Callee, Known, RefusedPickle, Stateful, key
from .naming import functions, layers
from .safe_globals import listed


@dataclass(frozen=True)
class StorageType:
    """A storage class, which gives the dtype; without one, the storage is bytes."""

    dtype: DType | None


@dataclass(eq=False)
class Storage:
    """A storage in the file.

    Attributes:
        key: its name in the file.
        dtype: the dtype of its elements, ``None`` for plain bytes.
        location: the device that it was on.
        data: its bytes, after they are read.
    """

    key: str
    dtype: DType | None
    location: str
    data: bytes | memoryview = b""


@dataclass(eq=False)
class StoredTensor:
    """A tensor as the file describes it: a strided view of a storage, in elements.

    Attributes:
        kind: the class of its own that it has, a :class:`~.machine.Known`.
        state: attributes that the program gave it.
    """

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: DType
    requires_grad: bool = False
    parameter: bool = False
    kind: Any = None
    state: Any = None


def _tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
    metadata: Any = None,
) -> StoredTensor:  # fmt: skip
    if not isinstance(storage, Storage) or storage.dtype is None:
        raise RefusedPickle("the file describes a tensor without a typed storage")
    return _lying(storage, offset, size, stride, storage.dtype, requires_grad, metadata)


def _tensor_with_dtype(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> StoredTensor:
    if not isinstance(storage, Storage) or not isinstance(dtype, DType):
        raise RefusedPickle("the file describes a tensor without a storage or a dtype")
    return _lying(storage, offset, size, stride, dtype, requires_grad, metadata)


def _lying(
    storage: Storage, offset: Any, size: Any, stride: Any, dtype: DType, requires_grad: Any, metadata: Any
) -> StoredTensor:
    whole = (offset, *size, *stride)
    if any(type(n) is not int or n < 0 for n in whole) or len(size) != len(stride):
        raise RefusedPickle(f"the file describes a tensor of size {size} and strides {stride} at {offset}")
    if metadata:
        raise RefusedPickle(f"the file describes a tensor with {metadata!r:.60}, which gradwire does not know")
    return StoredTensor(storage, offset, tuple(size), tuple(stride), dtype, bool(requires_grad))


def _tensor_without_memory(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> StoredTensor:
    if not isinstance(dtype, DType):
        raise RefusedPickle("the file describes a tensor without a dtype")
    return _lying(Storage("", dtype, "meta"), 0, size, stride, dtype, requires_grad, None)


def _parameter(data: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> StoredTensor:
    if not isinstance(data, StoredTensor):
        raise RefusedPickle("the file describes a parameter that is no tensor")
    return replace(data, requires_grad=bool(requires_grad), parameter=True, state=state or None)


def _of_type(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    made = function(*arguments) if isinstance(function, Callee) else None
    if not isinstance(made, StoredTensor):
        raise RefusedPickle("the file describes a tensor that nothing makes")
    if not isinstance(kind, Known):
        return replace(made, state=state or None)
    if not kind.called:
        raise RefusedPickle(f"the file describes a tensor that is a {kind.name}")
    return replace(made, kind=kind, state=state or None)


class _NumpyType(Stateful):
    """NumPy's dtype in a file: a letter and a size, then the byte order."""

    __slots__ = ("text",)

    def __init__(self, text: Any, *_: Any) -> None:
        if not isinstance(text, str) or len(text) > 4 or text[:1] not in "?biufcV":
            raise RefusedPickle(f"the file names the NumPy dtype {text!r:.40}")
        self.text = text

    def take(self, state: Any) -> _NumpyType:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">"):
            self.text = state[1] + self.text.lstrip("<>")
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        found = np.dtype(self.text)
        if found.newbyteorder("=") not in DTYPES and found.kind not in "uifc":
            raise RefusedPickle(f"the file has NumPy values of dtype {self.text}")
        return found


class _NumpyArray(Stateful):
    """An array that gets its values with its state."""

    __slots__ = ()

    def take(self, state: Any) -> Any:
        _, shape, kind, fortran, data = state
        if not isinstance(kind, _NumpyType) or not isinstance(data, (bytes, bytearray)):
            raise RefusedPickle("the file describes a NumPy array that gradwire does not read")
        return np.frombuffer(data, kind.dtype).reshape(shape, order="F" if fortran else "C").copy()


def _generator(device: Any, seed: Any, state: Any) -> Generator:
    made = Generator(Device(device)).manual_seed(seed)
    return made.set_state(state)


def _numpy_scalar(kind: Any, data: Any) -> Any:
    if not isinstance(kind, _NumpyType) or not isinstance(data, (bytes, bytearray)):
        raise RefusedPickle("the file describes a NumPy number that gradwire does not read")
    return np.frombuffer(data, kind.dtype)[0].item()


def _encoded(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise RefusedPickle(f"the file asks for the encoding {encoding!r:.40}")
    return text.encode("latin1")


def _defaultdict(factory: Any = None) -> Any:
    plain = {"dict": dict, "list": list, "set": set, "int": int, "float": float}
    made = plain.get(factory.name.rpartition(" ")[2]) if isinstance(factory, Callee) else None
    return defaultdict(made)


def _none_of(kind: Any) -> Any:
    """A function without arguments that creates an empty container."""
    return lambda: kind()


def _bytearray(data: Any = b"", *encoding: Any) -> bytearray:
    return bytearray(data if isinstance(data, bytes) else _encoded(data, *encoding))


def _ordered(items: Any = ()) -> OrderedDict[Any, Any]:
    return OrderedDict((key(name), value) for name, value in items)


_CALLED: Final[dict[str, Any]] = {
    "torch._utils _rebuild_tensor": _tensor,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_tensor_v3": _tensor_with_dtype,
    "torch._utils _rebuild_meta_tensor_no_storage": _tensor_without_memory,
    "torch._utils _rebuild_parameter": _parameter,
    "torch._utils _rebuild_parameter_with_state": _parameter,
    "torch._tensor _rebuild_from_type_v2": _of_type,
    "torch.nn.parameter Parameter": _parameter,
    "torch Tensor": _tensor,
    "torch Size": lambda size=(): Size(size),
    "torch device": Device,
    "torch.torch_version TorchVersion": str,
    "torch.serialization _get_layout": lambda name: strided,
    "collections OrderedDict": _ordered,
    "collections Counter": lambda items=None: Counter(items if isinstance(items, dict) else {}),
    "collections defaultdict": _defaultdict,
    "_codecs encode": _encoded,
    "numpy dtype": _NumpyType,
    "numpy ndarray": lambda *_: _NumpyArray(),
    "numpy.core.multiarray scalar": _numpy_scalar,
    "numpy._core.multiarray scalar": _numpy_scalar,
    "numpy.core.multiarray _reconstruct": lambda *_: _NumpyArray(),
    "numpy._core.multiarray _reconstruct": lambda *_: _NumpyArray(),
}

_BUILTINS: Final[dict[str, Any]] = {
    "set": lambda items=(): set(map(key, items)), "frozenset": lambda items=(): frozenset(map(key, items)),
    "complex": complex, "bytearray": _bytearray, "list": _none_of(list), "dict": _none_of(dict),
    "int": int, "float": float,
}  # fmt: skip


def _listed() -> dict[str, Any]:
    names: dict[str, Any] = {name: Callee(name, function) for name, function in _CALLED.items()}
    for module in ("builtins", "__builtin__"):
        names |= {f"{module} {name}": Callee(f"{module} {name}", function) for name, function in _BUILTINS.items()}
    names |= {f"torch {name}": StorageType(dtype) for dtype, name in STORAGE_NAMES.items()}
    names |= {f"torch {dtype.name}": dtype for dtype in dtypes.ALL}
    names |= {
        "torch.storage UntypedStorage": StorageType(None),
        "torch UntypedStorage": StorageType(None),
        "torch strided": strided, "torch contiguous_format": contiguous_format,
        "torch channels_last": channels_last, "torch channels_last_3d": channels_last_3d,
        "torch preserve_format": preserve_format,
    }  # fmt: skip
    return names


NAMES: Final = _listed()
"""By ``"module name"``, as in a pickle."""


def allowed() -> dict[str, Any]:
    """All names that a file may mention now: those of values, of the layers of ``torch.nn`` and its functions, and what
    the program has added. No later one takes the place of an earlier one."""
    added = {name: Known(name, value, called=True) for name, value in listed().items()}
    known: dict[str, Any] = {**layers(), **functions()}
    made = Known("torch._utils _rebuild_generator", _generator, called=True)
    return added | {made.name: made} | {name: Known(name, value, called=False) for name, value in known.items()} | NAMES
