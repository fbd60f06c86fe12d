"""Array libraries under one small surface. Kernels see ``xp``; the rest of the engine sees a ``Backend``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import DeviceError
from gradwire_protocol.meta import Shape

from .arrays import Array, DeviceArray, Namespace, Native, native
from .cuda import registry
from .cuda.graphs import Graphs
from .cuda.registry import Fused
from .cuda.staging import Read, Staging

_READS_AHEAD: Final = 64
GRAPHS_SHARE: Final = 2
"""Graphs may hold this part of a session's memory on a GPU; the rest is the pool's."""


def _flat_bytes(array: Array) -> Array:
    """The memory of an array whose elements lie without gaps, in whatever order of dimensions."""
    if not array.flags.c_contiguous:
        array = array.transpose(sorted(range(array.ndim), key=lambda i: -array.strides[i]))
    return array.reshape(-1).view(np.uint8)


def expect_any_float() -> None:
    """Let NumPy compute infinities and NaN without a word, in this thread: they are values here, as in PyTorch."""
    np.seterr(all="ignore")


class NumpyBackend:
    """Arrays in host memory."""

    device = "cpu"
    xp: Namespace = np
    array_type: type[Any] = np.ndarray
    fused: dict[str, Fused] | None = None
    """Kernels of a backend's own, by op (see :mod:`.cuda.registry`)."""
    graphs: Graphs | None = None
    """Where runs of kernels are captured (see :mod:`.cuda.graphs`)."""

    def empty_bytes(self, nbytes: int) -> Array:
        """Uninitialised memory, as a flat uint8 array."""
        return np.empty(nbytes, np.uint8)

    def view(self, memory: Array, shape: Shape, stride: Shape, offset: int, dtype: DType) -> Array:
        """An array over ``memory`` (flat uint8); strides and offset in elements."""
        if 0 in shape:
            return np.empty(shape, native(dtype))  # an empty slice may start beyond the end of its memory
        size = dtype.itemsize
        return np.ndarray(shape, native(dtype), memory, offset * size, tuple(s * size for s in stride))

    def memory_of(self, array: Array) -> Array:
        """The flat uint8 view of a dense array's memory."""
        return _flat_bytes(array)

    def from_host(self, array: Array) -> Array:
        """An array of this backend with the values of a NumPy array; may share its memory."""
        return array

    def to_host(self, array: Array) -> Array:
        """A NumPy array with the values; may share memory."""
        return np.asarray(array)

    def expect(self, array: Array) -> None:
        """Take notice that the values of this array will be asked for; nothing changes it until then."""

    def asarray(self, value: Any, dtype: Native) -> Array:
        return np.asarray(value, dtype)

    def forget_reads(self) -> None:
        """Let go of what was expected."""

    def synchronize(self) -> None:
        """Wait until all work issued so far is done."""

    def trim(self) -> None:
        """Give memory that is held in reserve back to the system."""

    def pooled_bytes(self) -> int:
        """Bytes held in reserve for tensors to come; host memory has no pool that could be asked."""
        return 0


class DevicePool:
    """GPU memory of one session: a pool of its own with a limit, and on each device a stream of its own.

    CuPy's allocator and current stream belong to a thread. The session's thread has these from its first use of a GPU
    until it ends, so a session that has one of these must not share its thread.

    Args:
        limit: bytes that the pool may hold on each device, in use or in reserve.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._pool: Any = None
        self._scope: Any = None
        self._streams: dict[int, Any] = {}

    def enter(self, cupy: Namespace, index: int) -> Any:
        """Let this thread allocate from the pool and work on its own stream, on a device that is the current one.
        Returns the pool."""
        if self._pool is None:
            self._pool = cupy.cuda.MemoryPool()
            self._scope = cupy.cuda.using_allocator(self._pool.malloc)
            self._scope.__enter__()
        self._pool.set_limit(size=self.limit)  # of the current device
        stream = self._streams[index] = cupy.cuda.Stream(non_blocking=True)
        stream.use()
        return self._pool


class CupyBackend:
    """Arrays in the memory of one CUDA device.

    Args:
        pool: the session's own memory; by default CuPy's, which all sessions of the process share.
    """

    def __init__(self, index: int = 0, pool: DevicePool | None = None) -> None:
        import cupy

        self.xp: Namespace = registry.namespace(cupy)
        self.fused: dict[str, Fused] | None = registry.load()
        self.array_type: type[Any] = cupy.ndarray
        self.index = index
        self.device = f"cuda:{index}"
        cupy.cuda.Device(index).use()
        self._pool: Any = cupy.get_default_memory_pool() if pool is None else pool.enter(cupy, index)
        self._has_stream = pool is not None
        self.graphs: Graphs | None = None
        if pool is not None:
            self._limit = pool.limit
            self.graphs = Graphs(cupy, pool.limit // GRAPHS_SHARE, self._leave)
        self._staging: Staging | None = None
        self._coming: dict[int, tuple[Array, Read]] = {}

    def empty_bytes(self, nbytes: int) -> Array:
        return self.xp.empty(nbytes, np.uint8)

    def view(self, memory: DeviceArray, shape: Shape, stride: Shape, offset: int, dtype: DType) -> DeviceArray:
        if 0 in shape:
            return self.xp.empty(shape, native(dtype))
        size = dtype.itemsize
        return self.xp.ndarray(shape, native(dtype), memory.data + offset * size, tuple(s * size for s in stride))

    def memory_of(self, array: Array) -> Array:
        return _flat_bytes(array)

    def from_host(self, array: Array) -> Array:
        staging = self._ring() if array.size else None
        if staging is None:
            return self.xp.asarray(array)
        target = self.xp.empty(array.shape, array.dtype)
        staging.upload(array, target)
        return target

    def to_host(self, array: Array) -> Array:
        staging = self._ring() if array.size else None
        if staging is None:
            return self.xp.asnumpy(array)
        coming = self._coming.pop(id(array), None)
        return staging.finish(staging.begin(array) if coming is None else coming[1])

    def expect(self, array: Array) -> None:
        if len(self._coming) < _READS_AHEAD and array.size and id(array) not in self._coming:
            staging = self._ring()
            if staging is not None:
                self._coming[id(array)] = array, staging.begin(array)

    def forget_reads(self) -> None:
        """Let go of reads that were expected and not asked for."""
        self._coming.clear()

    def _ring(self) -> Staging | None:
        """Pinned memory for copies; None where the thread has no stream of its own, or the system no such memory."""
        if self._staging is None and self._has_stream:
            try:
                self._staging = Staging(self.xp)
            except (MemoryError, self.xp.cuda.runtime.CUDARuntimeError):
                self._has_stream = False
        return self._staging

    def asarray(self, value: Any, dtype: Native) -> Array:
        return self.xp.asarray(value, dtype)

    def synchronize(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def mark(self) -> Any:
        """An event that comes when all work that this thread has issued so far is done."""
        event = self.xp.cuda.Event(disable_timing=True)
        event.record()
        return event

    @contextmanager
    def beside(self) -> Iterator[Any]:
        """Let a thread that is not the session's work on the device, with the session's memory and on a stream of its
        own, which it gets."""
        cuda = self.xp.cuda
        cuda.Device(self.index).use()
        stream = cuda.Stream(non_blocking=True)
        with cuda.using_allocator(self._pool.malloc), stream:
            yield stream

    def finish(self, stream: Any) -> None:
        """Wait for all work on a stream, without keeping a processor busy."""
        event = self.xp.cuda.Event(block=True, disable_timing=True)
        event.record(stream)
        event.synchronize()

    def trim(self) -> None:
        with self.xp.cuda.Device(self.index):
            if self.graphs is not None:
                self.graphs.trim()
            self._pool.free_all_blocks()

    def pooled_bytes(self) -> int:
        with self.xp.cuda.Device(self.index):
            return int(self._pool.free_bytes()) + (self.graphs.held if self.graphs is not None else 0)

    def _leave(self, held: int) -> None:
        """Let the session's pool have what its graphs do not hold of the session's memory."""
        with self.xp.cuda.Device(self.index):
            self._pool.set_limit(size=self._limit - held)


Backend: TypeAlias = NumpyBackend | CupyBackend


def cuda_device_count() -> int:
    """How many CUDA devices this process can use; 0 without CuPy or a driver."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except ImportError:
        return 0
    except Exception as error:  # CuPy raises its own runtime error when there is no driver
        if type(error).__name__ != "CUDARuntimeError":
            raise
        return 0


def available_devices() -> list[str]:
    """The devices tensors can live on, the CPU first."""
    return ["cpu", *(f"cuda:{i}" for i in range(cuda_device_count()))]


class Backends(dict[str, Backend]):
    """The backends of one engine by device, opened at first use.

    Args:
        pool: the GPU memory of a session that has its thread for itself.
    """

    def __init__(self, cpu: Backend | None = None, pool: DevicePool | None = None) -> None:
        super().__init__(cpu=cpu if cpu is not None else NumpyBackend())
        self._pool = pool

    def __missing__(self, device: str) -> Backend:
        found = self[device] = self._start(device)
        return found

    def holding(self, array: DeviceArray) -> Backend:
        """The backend in whose memory an array lies."""
        found = [b for b in self.values() if type(array) is b.array_type]
        return found[0] if len(found) == 1 else self[f"cuda:{array.device.id}"]

    def _start(self, device: str) -> Backend:
        kind, _, index = device.partition(":")
        count = cuda_device_count() if kind == "cuda" else 0
        if kind != "cuda" or not index.isdecimal() or len(index) > 4 or int(index) >= count:
            raise DeviceError(f"unknown device {device!r}; this server has {', '.join(available_devices())}")
        return CupyBackend(int(index), self._pool)

    def opened(self) -> list[Backend]:
        return list(self.values())
