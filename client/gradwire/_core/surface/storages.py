"""``UntypedStorage``: the memory of a tensor, as bytes. :mod:`.typed_storages` has the same as numbers.

A storage holds a proxy for a tensor that shows its memory whole. What is asked of it that needs values is an operation
on that tensor's bytes, as a view.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, IndexOutOfRange, Unsupported

from ..context.modes import no_grad
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..tensor.memory import address_of, span, whole
from ..tensor.tensor import Tensor
from .creation import empty, place, tensor, upload

FILE_SPECIAL: Final = "the memory of tensors is the server's, and no file of this machine"


class StorageBase:
    """What is a storage of bytes."""


class UntypedStorage(StorageBase):
    """The bytes of a tensor's memory, or new ones: ``UntypedStorage(4)``, ``UntypedStorage([1, 2])``.

    Costs no round trip until values are asked for.
    """

    is_sparse = is_sparse_csr = is_hpu = False
    filename = None

    def __init__(self, *args: Any, device: Device | str | int | None = None) -> None:
        given: Any = args[0] if args else 0
        if len(args) > 1:
            raise ArgumentTypeError(f"UntypedStorage takes a size or a sequence of bytes, not {len(args)} arguments")
        if isinstance(given, int) and not isinstance(given, bool):
            if given < 0:
                raise ArgumentError(f"UntypedStorage: a size cannot be negative, got {given}")
            made = empty(given, dtype=dtypes.uint8, device="cpu" if device is None else device)
        elif isinstance(given, Sequence) and not isinstance(given, str):
            values = np.array([int(one) & 255 for one in given], np.uint8)
            made = upload(values, dtypes.uint8, "cpu" if device is None else device)
        else:
            raise ArgumentTypeError(f"UntypedStorage takes a size or a sequence of bytes, not {given!r:.60}")
        self._be(made, 0, made.nbytes)

    def _be(self, tensor: Any, begin: int, nbytes: int, local: Any = None) -> None:
        self._whole: Tensor | None = tensor
        self._begin = begin
        self._nbytes = nbytes
        self._local: np.ndarray[Any, Any] | None = local  # bytes of a file that were not uploaded yet
        self._where = Device("cpu") if tensor is None else tensor.device

    @classmethod
    def _of(cls, tensor: Tensor) -> UntypedStorage:
        """The storage of a tensor."""
        origin = whole(tensor)
        self = object.__new__(cls)
        self._be(origin, 0, span(origin) * origin.itemsize)
        return self

    @classmethod
    def _of_bytes(cls, data: np.ndarray[Any, Any]) -> UntypedStorage:
        self = object.__new__(cls)
        self._be(None, 0, data.nbytes, data)
        return self

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file. They are uploaded when something computes with them; a slice is uploaded alone.

        Raises:
            Unsupported: for ``shared=True``, where writes would have to reach the file.
            ArgumentError: when the file has fewer bytes.
        """
        if shared:
            raise Unsupported(f"from_file(shared=True): {FILE_SPECIAL}, so writes to it cannot reach the file")
        there = os.path.getsize(filename)
        if nbytes > there:
            raise ArgumentError(f"from_file: {os.fspath(filename)} has {there} bytes, not {nbytes}")
        data: Any = np.memmap(filename, np.uint8, "r", shape=(nbytes,)) if nbytes else np.empty(0, np.uint8)
        return cls._of_bytes(data)

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, **options: Any) -> UntypedStorage:
        """A copy of the bytes of a buffer."""
        return cls._of_bytes(np.frombuffer(memoryview(buffer).cast("B"), np.uint8).copy())

    # What it is

    @property
    def device(self) -> Device:
        """Where it is."""
        return self._where

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU of the server."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """The index of its GPU, -1 on the CPU."""
        return (self.device.index or 0) if self.is_cuda else -1

    def nbytes(self) -> int:
        """How many bytes it has."""
        return self._nbytes

    def size(self) -> int:
        """How many bytes it has."""
        return self._nbytes

    __len__ = size

    def element_size(self) -> int:
        """1."""
        return 1

    def data_ptr(self) -> int:
        """A number that stands for where its memory begins; the same for all tensors in it. 0 if it has no bytes."""
        if not self._nbytes or self.device.type == "meta":
            return 0
        return address_of(self._there()) + self._begin

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def resizable(self) -> bool:
        """False: tensors that show it would not follow."""
        return False

    def resize_(self, size: int) -> UntypedStorage:
        """Accepts the size that it has.

        Raises:
            Unsupported: for any other, since tensors on the server keep their memory while they show it.
        """
        if size != self._nbytes:
            raise Unsupported(
                f"storage.resize_({size}): tensors on the server keep their memory, here {self._nbytes} bytes, as long "
                "as they show it. To free it, drop the tensors or assign an empty one: p.data = torch.empty(0)"
            )
        return self

    def is_shared(self) -> bool:
        """True: all threads of the program, and all clients of the session, reach it."""
        return True

    def share_memory_(self) -> UntypedStorage:
        """Itself: see :meth:`is_shared`."""
        return self

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """Itself: the server pins what it copies."""
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """False."""
        return False

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        if self is other:
            return True
        return self._nbytes == other._nbytes and self.data_ptr() == other.data_ptr() != 0

    def __hash__(self) -> int:
        return hash(self.data_ptr()) if self._nbytes else id(self)

    # Its bytes

    def _there(self) -> Tensor:
        if self._whole is None:
            assert self._local is not None
            with no_grad():
                self._whole = upload(np.array(self._local, np.uint8), dtypes.uint8, "cpu")
            self._local = None
        return self._whole

    def _bytes(self) -> Tensor:
        """The bytes as a vector that shares the memory and has no history."""
        there = self._there().data
        with no_grad():
            flat = call("as_strided", there, (span(there),), (1,), 0)
            if flat.dtype is not dtypes.uint8:
                flat = flat.view(dtypes.uint8)
            if self._begin or self._nbytes != flat.numel():
                flat = call("slice", flat, 0, self._begin, self._begin + self._nbytes, 1)
        return flat

    def _numbers(self, dtype: DType) -> Tensor:
        """As many numbers of a dtype as the bytes hold, in the same memory."""
        count = self._nbytes // dtype.itemsize
        there = self._there()
        with no_grad():
            if there.dtype is dtype and not self._begin:
                return call("as_strided", there.data, (count,), (1,), 0)
            if self._begin % dtype.itemsize:
                raise ArgumentError(f"the bytes begin at {self._begin}, where no {dtype.name} can begin")
            flat = self._bytes()
            if count * dtype.itemsize != self._nbytes:
                flat = call("slice", flat, 0, 0, count * dtype.itemsize, 1)
            return flat.view(dtype) if dtype is not dtypes.uint8 else flat

    def _local_bytes(self) -> np.ndarray[Any, Any]:
        if self._local is not None:
            return self._local
        return self._bytes()._fetch()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found = np.array(self._local_bytes())
        return found if dtype is None else found.astype(dtype)

    def tolist(self) -> list[int]:
        """The bytes. One round trip."""
        found: list[int] = self._local_bytes().tolist()
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, index: int | slice) -> Any:
        """One byte, for one round trip; or a storage of some of them, which shares the memory.

        Raises:
            IndexOutOfRange: for a byte that is not there.
            ArgumentError: for a slice with steps.
        """
        if isinstance(index, slice):
            start, stop = bounds(index, self._nbytes)
            part = object.__new__(UntypedStorage)
            local = None if self._local is None else self._local[start:stop]
            part._be(self._whole, self._begin + start if local is None else 0, stop - start, local)
            part._where = self._where
            return part
        at = checked_index(index, self._nbytes)
        return int(self._local[at]) if self._local is not None else self._bytes()[at].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        target = self._bytes()
        if isinstance(index, slice):
            start, stop = bounds(index, self._nbytes)
            target[start:stop] = _tensor_of(value, dtypes.uint8)
        else:
            target[checked_index(index, self._nbytes)] = int(value) & 255

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        self._bytes().fill_(int(value) & 255)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take the bytes of another storage of the same size."""
        if not is_storage(source):
            raise ArgumentTypeError(f"copy_ takes a storage, not {source.__class__.__name__}")
        other = source.untyped()
        if other._nbytes != self._nbytes:
            raise ArgumentError(f"copy_: the storages have {self._nbytes} and {other._nbytes} bytes")
        self._bytes().copy_(other._bytes())
        return self

    def clone(self) -> UntypedStorage:
        """Another storage with the same bytes."""
        return UntypedStorage._of(self._bytes().clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        found: UntypedStorage = memo[id(self)]
        return found

    def new(self) -> UntypedStorage:
        """An empty one on the same device."""
        return UntypedStorage(0, device=self.device)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._nbytes

    def byteswap(self, dtype: DType) -> None:
        """Reverse the bytes of each number of ``dtype``."""
        half = dtype.itemsize // (2 if dtype.is_complex else 1)
        numbers = self._bytes().view(-1, half)
        numbers.copy_(numbers.flip(1))

    # Elsewhere, and as numbers

    def to(self, *, device: Device | str | int, non_blocking: bool = False) -> UntypedStorage:
        """On a device: itself if it is there."""
        if place(device) == place(self.device):
            return self
        return UntypedStorage._of(self._bytes().to(device))

    def cpu(self) -> UntypedStorage:
        """On the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: Device | str | int | None = None, non_blocking: bool = False) -> UntypedStorage:
        """On a GPU of the server."""
        return self.to(device="cuda" if device is None else device)

    def __repr__(self) -> str:
        text = f"[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"
        if self.device.type == "meta":
            return "...\n" + text
        return "".join(f" {value}\n" for value in self.tolist()) + text


def bounds(index: slice, size: int) -> tuple[int, int]:
    start, stop, step = index.indices(size)
    if step != 1:
        raise ArgumentError(f"a storage is sliced in steps of 1, not of {step}")
    return start, max(start, stop)


def checked_index(index: Any, size: int) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise ArgumentTypeError(f"a storage is indexed with an int or a slice, not {index.__class__.__name__}")
    at = index.__index__()
    if not -size <= at < size:
        raise IndexOutOfRange(f"index {at} is out of range for a storage of size {size}")
    return int(at) % size


def _tensor_of(value: Any, dtype: DType) -> Any:
    if isinstance(value, Sequence):
        return tensor(list(value), dtype=dtype)
    return value.untyped()._numbers(dtype) if is_storage(value) else value


def is_storage(value: object) -> bool:
    """Whether ``value`` is a storage."""
    return isinstance(value, UntypedStorage) or isinstance(getattr(value, "_untyped_storage", None), UntypedStorage)


def check_view_of(
    storage: UntypedStorage, offset: int, size: Sequence[int], stride: Sequence[int], dtype: DType
) -> None:
    """Check that a strided view lies inside a storage.

    Raises:
        ArgumentError: when it does not, and for negative numbers or other than ints.
    """
    numbers = (offset, *size, *stride)
    if any(type(n) is not int or n < 0 for n in numbers) or len(size) != len(stride):
        raise ArgumentError(f"no tensor has size {list(size)} and strides {list(stride)} at offset {offset}")
    if all(size):
        end = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        if end * dtype.itemsize > storage.nbytes():
            raise ArgumentError(
                f"a tensor of size {list(size)} and strides {list(stride)} at offset {offset} needs "
                f"{end * dtype.itemsize} bytes, and the storage has {storage.nbytes()}: it does not grow"
            )
