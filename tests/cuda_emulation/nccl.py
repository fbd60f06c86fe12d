"""NCCL behind the part of CuPy's interface that the engine calls, between threads of one process.

Bytes are really copied between the ranks' arrays, and a call waits for its other side, as a kernel of NCCL does: what
is sent in another order than it is received, or with another size, fails or hangs until it is aborted. A stream does
its work at once. The emulation cannot show what NCCL itself does on several GPUs, or how fast.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradwire_engine.runtime.backends import CupyBackend
from tests.strict_backend import StrictArray, StrictBackend

PATIENCE_S = 20.0
"""After this time a call that waits fails by itself, which a test takes for a hang."""

UINT8 = 1


class NcclError(RuntimeError):
    """As CuPy's."""


class _World:
    """The ranks of one communicator."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.size = 0
        self.devices: dict[int, str] = {}
        self.broken = ""
        self.sent: dict[tuple[int, int], deque[bytes]] = defaultdict(deque)
        self.taken: dict[tuple[int, int], int] = defaultdict(int)


class Network:
    """What the emulated GPUs of all ranks share.

    Attributes:
        versions: of NCCL by rank's device, where it is not the usual one.
        broken: devices on which no communicator can be made.
        fails: devices on which the next call fails.
        silent: devices on which calls wait for ever.
        bytes_moved: between GPUs.
        made, aborted, destroyed: communicators, by device.
    """

    def __init__(self) -> None:
        self._worlds: dict[bytes, _World] = {}
        self.ids = itertools.count(1)
        self.versions: dict[int, int] = {}
        self.broken: set[int] = set()
        self.fails: set[int] = set()
        self.silent: set[int] = set()
        self.bytes_moved = 0
        self.made: list[int] = []
        self.aborted: list[int] = []
        self.destroyed: list[int] = []
        self.lock = threading.Lock()

    def world(self, unique: bytes) -> _World:
        """The ranks of the communicator with this id, the same for all of their threads."""
        with self.lock:
            return self._worlds.setdefault(unique, _World())


class _Communicator:
    def __init__(self, nccl: _Nccl, ranks: int, unique: bytes, rank: int) -> None:
        assert type(unique) is bytes
        assert len(unique) == 128
        self.index = nccl.cuda.current()
        self.network, self.rank, self.ranks = nccl.network, rank, ranks
        self.world = world = self.network.world(unique)
        self.nccl = nccl
        self.over = False
        device = nccl.cuda.runtime.deviceGetPCIBusId(self.index)
        with world.changed:
            if self.index in self.network.broken:
                raise NcclError("NCCL_ERROR_SYSTEM_ERROR: no shared memory")
            assert world.size in (0, ranks)
            world.size = ranks
            if device in world.devices.values() or rank in world.devices:
                world.broken = "NCCL_ERROR_INVALID_USAGE: duplicate GPU detected"
            world.devices[rank] = device
            world.changed.notify_all()
            self._until(lambda: bool(world.broken) or len(world.devices) == ranks)
            if world.broken:
                raise NcclError(world.broken)
        with self.network.lock:
            self.network.made.append(self.index)

    def _until(self, ready: Callable[[], bool]) -> None:
        if not self.world.changed.wait_for(lambda: self.over or ready(), PATIENCE_S):
            raise NcclError(f"rank {self.rank} has waited for {PATIENCE_S:g} s in vain")
        if self.over:
            raise NcclError("NCCL_ERROR_INTERNAL_ERROR: the communicator was aborted")

    def send(self, ptr: int, count: int, kind: int, peer: int, stream: int) -> None:
        self._check(count, kind, peer, stream)
        self.nccl.do(lambda: self._publish(ptr, count, peer), lambda: None, lambda: self._wait_taken(peer))

    def recv(self, ptr: int, count: int, kind: int, peer: int, stream: int) -> None:
        self._check(count, kind, peer, stream)
        self.nccl.do(lambda: None, lambda: self._take(ptr, count, peer), lambda: None)

    def broadcast(self, source: int, target: int, count: int, kind: int, root: int, stream: int) -> None:
        assert source == target, "in place"
        self.nccl.groupStart()
        for peer in range(self.ranks):
            if self.rank == root and peer != root:
                self.send(source, count, kind, peer, stream)
        if self.rank != root:
            self.recv(target, count, kind, root, stream)
        self.nccl.groupEnd()

    def _check(self, count: int, kind: int, peer: int, stream: int) -> None:
        assert count > 0
        assert kind == UINT8
        assert 0 <= peer < self.ranks
        assert peer != self.rank or self.nccl.grouped, "a rank that sends to itself receives at the same time"
        assert stream == self.nccl.cuda.get_current_stream().ptr, "on the stream of the thread, as the sums are"
        assert self.index == self.nccl.cuda.current(), "on the communicator's device"
        if self.index in self.network.fails:
            raise NcclError("NCCL_ERROR_UNHANDLED_CUDA_ERROR: unhandled cuda error")

    def _publish(self, ptr: int, count: int, peer: int) -> None:
        world = self.world
        with world.changed:
            if self.index in self.network.silent:
                self._until(lambda: False)
            world.sent[self.rank, peer].append(ctypes.string_at(ptr, count))
            world.changed.notify_all()

    def _take(self, ptr: int, count: int, peer: int) -> None:
        world, way = self.world, (peer, self.rank)
        with world.changed:
            self._until(lambda: bool(world.sent[way]))
            data = world.sent[way].popleft()
            assert len(data) == count, f"rank {peer} sends {len(data)} bytes, rank {self.rank} takes {count}"
            ctypes.memmove(ptr, data, count)
            world.taken[way] += 1
            world.changed.notify_all()
        with self.network.lock:
            self.network.bytes_moved += count

    def _wait_taken(self, peer: int) -> None:
        with self.world.changed:
            self._until(lambda: not self.world.sent[self.rank, peer])

    def check_async_error(self) -> None:
        assert not self.over

    def abort(self) -> None:
        with self.world.changed:
            self.over = True
            self.world.changed.notify_all()
        with self.network.lock:
            self.network.aborted.append(self.index)

    def destroy(self) -> None:
        assert not any(self.world.sent.values()), "something is still on its way"
        with self.network.lock:
            self.network.destroyed.append(self.index)


class _Nccl:
    """``cupy.cuda.nccl``."""

    available = True
    NCCL_UINT8 = UINT8

    def __init__(self, cuda: _Cuda, network: Network, index: int) -> None:
        self.cuda, self.network, self.index = cuda, network, index
        self._thread = threading.local()

    def get_version(self) -> int:
        return self.network.versions.get(self.index, 22304)

    def get_unique_id(self) -> bytes:
        number = next(self.network.ids)
        return bytes((number * (i + 3)) % 256 for i in range(128))

    def NcclCommunicator(self, ranks: int, unique: bytes, rank: int) -> _Communicator:
        return _Communicator(self, ranks, unique, rank)

    @property
    def grouped(self) -> bool:
        """Whether this thread is between the calls that begin and end a group."""
        return getattr(self._thread, "depth", 0) > 0

    def groupStart(self) -> None:
        self._thread.depth = getattr(self._thread, "depth", 0) + 1
        if self._thread.depth == 1:
            self._thread.waiting = []

    def groupEnd(self) -> None:
        self._thread.depth -= 1
        if not self._thread.depth:
            waiting, self._thread.waiting = self._thread.waiting, []
            for phase in range(3):
                for each in waiting:
                    each[phase]()

    def do(self, *phases: Callable[[], None]) -> None:
        """Publish, receive, and wait: within a group, all calls at the same time."""
        if self.grouped:
            self._thread.waiting.append(phases)
            return
        for phase in phases:
            phase()


class _Event:
    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.recorded = False

    def record(self, stream: Any = None) -> None:
        self.recorded = True

    def synchronize(self) -> None:
        assert self.recorded


class _Cuda:
    """``cupy.cuda`` of one rank's process. Its current device and stream belong to a thread."""

    Event = _Event

    def __init__(self, network: Network, index: int, bus: int) -> None:
        self._thread = threading.local()
        self._numbers = itertools.count(100)
        self.nccl = _Nccl(self, network, index)
        self.runtime = SimpleNamespace(deviceGetPCIBusId=lambda device: f"0000:{bus:02x}:00.0")

    def current(self) -> int:
        found: int = self._thread.index
        return found

    def Device(self, index: int) -> Any:
        return SimpleNamespace(use=lambda: setattr(self._thread, "index", index))

    def Stream(self, non_blocking: bool) -> Any:
        assert non_blocking
        return _Stream(self._thread, next(self._numbers))

    def get_current_stream(self) -> Any:
        return getattr(self._thread, "stream", SimpleNamespace(ptr=0))

    @contextmanager
    def using_allocator(self, malloc: Any) -> Iterator[None]:
        self._thread.allocator = malloc
        yield
        self._thread.allocator = None


class _Stream:
    def __init__(self, thread: threading.local, ptr: int) -> None:
        self._thread, self.ptr = thread, ptr

    def __enter__(self) -> _Stream:
        self._thread.stream = self
        return self

    def __exit__(self, *_: object) -> None:
        del self._thread.stream

    def wait_event(self, event: _Event) -> None:
        assert event.recorded


class _Cupy:
    """CuPy as strict arrays have it, with ``cupy.cuda``."""

    def __init__(self, plain: Any, cuda: _Cuda) -> None:
        self._plain, self.cuda = plain, cuda

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def asnumpy(self, array: StrictArray) -> np.ndarray[Any, Any]:
        return np.array(array._array)


class ConnectedBackend(StrictBackend):
    """Strict arrays on a GPU that NCCL connects with others.

    Args:
        bus: where the GPU is in its machine; by default, each rank has one of its own.
    """

    mark, beside, finish = CupyBackend.mark, CupyBackend.beside, CupyBackend.finish

    def __init__(self, network: Network, index: int, bus: int | None = None) -> None:
        super().__init__()
        self.index, self.device = index, f"cuda:{index}"
        self.xp = _Cupy(self.xp, _Cuda(network, index, index if bus is None else bus))
        self._pool = SimpleNamespace(malloc=lambda size: None)

    def from_host(self, array: Any) -> Any:
        return StrictArray(np.array(array))
