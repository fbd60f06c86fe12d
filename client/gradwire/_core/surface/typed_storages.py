"""``TypedStorage``: the memory of a tensor, as numbers of a dtype; and the classes that storages had of old."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, Unsupported

from ..context.layouts import strided
from ..context.size import device as Device
from ..session.current_session import current_session
from ..tensor.tensor import Tensor
from .creation import empty, tensor
from .storages import UntypedStorage, bounds, checked_index


def _numbers_of(value: Any, dtype: DType) -> Any:
    if isinstance(value, TypedStorage):
        return value._numbers().to(dtype)
    if isinstance(value, UntypedStorage):
        return value._numbers(dtype)
    return tensor(list(value), dtype=dtype) if isinstance(value, Sequence) else value


class TypedStorage:
    """A tensor's memory as numbers of a dtype.

    Args:
        args: a size, a sequence of numbers, or nothing.
        wrap_storage: the :class:`UntypedStorage` that it shows, instead.
        dtype: of the numbers.
    """

    is_sparse = is_hpu = False
    filename = None

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: DType | None = None,
        device: Device | str | int | None = None,
        _internal: bool = False,
    ) -> None:
        if not isinstance(dtype, DType):
            raise ArgumentTypeError(f"TypedStorage needs a dtype, got {dtype!r:.40}")
        self.dtype = dtype
        if wrap_storage is not None:
            if args or device is not None:
                raise ArgumentError("TypedStorage: wrap_storage takes no data and no device besides it")
            if not isinstance(wrap_storage, UntypedStorage):
                raise ArgumentTypeError(f"wrap_storage is an UntypedStorage, not {type(wrap_storage).__name__}")
            self._untyped_storage = wrap_storage
            return
        given: Any = args[0] if args else 0
        where = "cpu" if device is None else device
        if len(args) > 1 or not (isinstance(given, (int, Sequence)) and not isinstance(given, (bool, str, bytes))):
            raise ArgumentTypeError(f"TypedStorage takes a size or a sequence of numbers, not {args!r:.60}")
        made = (
            empty(given, dtype=dtype, device=where) if isinstance(given, int) else _numbers_of(given, dtype).to(where)
        )
        self._untyped_storage = UntypedStorage._of(made)

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, *, dtype: DType, **options: Any) -> TypedStorage:
        """A copy of the numbers in a buffer."""
        return TypedStorage(wrap_storage=UntypedStorage.from_buffer(buffer), dtype=dtype)

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0) -> TypedStorage:
        """The numbers of a file: of a class of old, such as ``torch.FloatStorage``, which says of what dtype.

        Raises:
            ArgumentError: of this class itself.
        """
        raise ArgumentError("from_file is a method of the classes with a dtype, such as torch.FloatStorage")

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    @property
    def device(self) -> Device:
        """Where it is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU of the server."""
        return self._untyped_storage.is_cuda

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def get_device(self) -> int:
        """The index of its GPU, -1 on the CPU."""
        return self._untyped_storage.get_device()

    def nbytes(self) -> int:
        """How many bytes it has."""
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """How many numbers it has."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = _size = size
    _nbytes = nbytes

    def element_size(self) -> int:
        """Bytes per number."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """See :meth:`UntypedStorage.data_ptr`."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def pickle_storage_type(self) -> str:
        """The name of its class of old: ``FloatStorage``."""
        return STORAGE_NAMES[self.dtype]

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its class of old; with a class or a dtype, a copy of its numbers in that."""
        if dtype is None:
            room = "torch.cuda" if self.is_cuda else "torch"
            return f"{room}.{self.pickle_storage_type()}"
        return self._cast(dtype.dtype if isinstance(dtype, LegacyType) else dtype)

    def _numbers(self) -> Tensor:
        return self._untyped_storage._numbers(self.dtype)

    def tolist(self) -> list[Any]:
        """The numbers. One round trip."""
        found: list[Any] = self._numbers().tolist()
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int) -> Any:
        """One number, for one round trip."""
        if isinstance(index, slice):
            raise ArgumentError("slices are taken of an UntypedStorage: storage.untyped()[start:stop]")
        return self._numbers()[checked_index(index, self.size())].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        at = slice(*bounds(index, self.size())) if isinstance(index, slice) else checked_index(index, self.size())
        self._numbers()[at] = _numbers_of(value, self.dtype)

    def fill_(self, value: Any) -> TypedStorage:
        """Set every number."""
        self._numbers().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take the numbers of another storage of as many."""
        other = source._numbers() if isinstance(source, TypedStorage) else source.untyped()._numbers(self.dtype)
        if other.numel() != self.size():
            raise ArgumentError(f"copy_: the storages have {self.size()} and {other.numel()} numbers")
        self._numbers().copy_(other)
        return self

    def clone(self) -> TypedStorage:
        """Another storage with the same numbers."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        if id(self) not in memo:
            memo[id(self)] = TypedStorage(wrap_storage=self._untyped_storage.__deepcopy__(memo), dtype=self.dtype)
        found: TypedStorage = memo[id(self)]
        return found

    def resizable(self) -> bool:
        """False: see :meth:`UntypedStorage.resize_`."""
        return False

    def resize_(self, size: int) -> TypedStorage:
        """See :meth:`UntypedStorage.resize_`."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    _resize_ = resize_

    def is_shared(self) -> bool:
        """True."""
        return True

    def share_memory_(self) -> TypedStorage:
        """Itself."""
        return self

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """Itself."""
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """False."""
        return False

    def to(self, *, device: Device | str | int, non_blocking: bool = False) -> TypedStorage:
        """On a device."""
        return TypedStorage(wrap_storage=self._untyped_storage.to(device=device), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """On the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: Device | str | int | None = None, non_blocking: bool = False) -> TypedStorage:
        """On a GPU of the server."""
        return self.to(device="cuda" if device is None else device)

    def _cast(self, dtype: DType) -> TypedStorage:
        return TypedStorage(wrap_storage=UntypedStorage._of(self._numbers().to(dtype, copy=True)), dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self.dtype is other.dtype and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        text = f"[torch.storage.TypedStorage(dtype={self.dtype!r}, device={self.device}) of size {len(self)}]"
        if self.device.type == "meta":
            return "...\n" + text
        return "".join(f" {value}\n" for value in self.tolist()) + text


def _casting(dtype: DType) -> Any:
    def cast(self: Any) -> TypedStorage:
        found: TypedStorage = self._cast(dtype)
        return found

    cast.__doc__ = f"A copy of the numbers as {dtype.name}."
    return cast


_CASTS: Final = {
    "double": dtypes.float64, "float": dtypes.float32, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "complex_double": dtypes.complex128, "complex_float": dtypes.complex64,
    "float8_e4m3fn": dtypes.float8_e4m3fn, "float8_e5m2": dtypes.float8_e5m2,
}  # fmt: skip


def _cast_bytes(self: UntypedStorage, dtype: DType) -> TypedStorage:
    return TypedStorage(wrap_storage=UntypedStorage._of(self._bytes().to(dtype)), dtype=dtype)


def _type_of_bytes(self: UntypedStorage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Its class's name; with a storage class or a dtype, a copy of its bytes as numbers in that."""
    if dtype is None:
        return "torch.storage.UntypedStorage"
    return _cast_bytes(self, dtype.dtype if isinstance(dtype, LegacyType) else dtype)


for _name, _dtype in _CASTS.items():
    setattr(UntypedStorage, _name, _casting(_dtype))
    setattr(TypedStorage, _name, _casting(_dtype))
for _name, _function in (("_cast", _cast_bytes), ("type", _type_of_bytes)):
    setattr(UntypedStorage, _name, _function)

STORAGE_NAMES: Final = {
    dtypes.float32: "FloatStorage", dtypes.float64: "DoubleStorage", dtypes.float16: "HalfStorage",
    dtypes.bfloat16: "BFloat16Storage", dtypes.int64: "LongStorage", dtypes.int32: "IntStorage",
    dtypes.int16: "ShortStorage", dtypes.int8: "CharStorage", dtypes.uint8: "ByteStorage",
    dtypes.bool_: "BoolStorage", dtypes.complex64: "ComplexFloatStorage", dtypes.complex128: "ComplexDoubleStorage",
}  # fmt: skip
"""The classes of old, by dtype. Newer dtypes have none."""


class LegacyType(type):
    """The class of the classes of old: ``torch.FloatStorage(3)`` makes a :class:`TypedStorage`."""

    dtype: DType
    device: str

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> LegacyType:
        if bases:
            raise ArgumentTypeError(f"{bases[0].__name__} is a name for storages of one dtype: derive from no such")
        return super().__new__(cls, name, bases, namespace)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype and instance.device.type == cls.device

    def __call__(cls, *args: Any, wrap_storage: UntypedStorage | None = None) -> Any:
        return TypedStorage(
            *args, wrap_storage=wrap_storage, dtype=cls.dtype, device=None if wrap_storage is not None else cls.device
        )

    def from_buffer(cls, buffer: Any, byte_order: str | None = None, **options: Any) -> TypedStorage:
        """A copy of the numbers in a buffer."""
        return TypedStorage.from_buffer(buffer, dtype=cls.dtype)

    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0) -> TypedStorage:
        """The first ``size`` numbers of a file. See :meth:`UntypedStorage.from_file`."""
        held = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=held, dtype=cls.dtype)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _legacy(device: str) -> dict[str, LegacyType]:
    made = {}
    for dtype, name in STORAGE_NAMES.items():
        made[name] = LegacyType(name, (), {"__module__": "torch" if device == "cpu" else "torch.cuda"})
        made[name].dtype, made[name].device = dtype, device
    return made


LEGACY: Final = _legacy("cpu")
CUDA_LEGACY: Final = _legacy("cuda")


def from_file(
    filename: str | os.PathLike[str], shared: bool | None = None, size: int = 0, *, dtype: DType | None = None,
    layout: Any = None, device: Device | str | int | None = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of the first ``size`` numbers of a file, which are uploaded when something computes with them.

    Raises:
        Unsupported: for ``shared=True``, where writes would have to reach the file.
        ArgumentError: when the file has fewer numbers, or for a device that is not the CPU.
    """
    if device is not None and Device(device).type != "cpu":
        raise ArgumentError(f"from_file: a file is read into memory of the CPU, not of {device}: use .to()")
    if layout not in (None, strided):
        raise Unsupported(f"from_file: tensors are strided, not {layout!r:.40}")
    kind = current_session().default_dtype if dtype is None else dtype
    try:
        held = UntypedStorage.from_file(filename, bool(shared), size * kind.itemsize)
    except OSError as error:
        raise ArgumentError(f"from_file: {os.fspath(filename)} cannot be read: {error.strerror}") from error
    return held._numbers(kind).requires_grad_(requires_grad)
