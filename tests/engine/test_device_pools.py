"""A session's own GPU memory pool, against a stand-in for the part of CuPy that it uses."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradwire_engine.runtime.backends import Backends, DevicePool


class _Pool:
    """Counts what it gives, and refuses what is over the limit of the current device, as ``cupy.cuda.MemoryPool``."""

    def __init__(self, cuda: _Cuda) -> None:
        self.cuda = cuda
        self.limits: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.trimmed: list[int] = []

    def set_limit(self, *, size: int) -> None:
        self.limits[self.cuda.current] = size

    def malloc(self, size: int) -> None:
        device = self.cuda.current
        if self.held.get(device, 0) + size > self.limits.get(device, sys.maxsize):
            raise MemoryError(f"{size} bytes on device {device}")
        self.held[device] = self.held.get(device, 0) + size

    def free_all_blocks(self) -> None:
        self.trimmed.append(self.cuda.current)

    def free_bytes(self) -> int:
        return 100 + self.cuda.current


class _Cuda(threading.local):
    """``cupy.cuda``: the current device, stream and allocator belong to a thread."""

    def __init__(self, default: list[_Pool]) -> None:
        self.current = 0
        self.streams: dict[int, Any] = {}
        if not default:
            default.append(_Pool(self))
        self.default = default[0]
        self.allocate = self.default.malloc
        self.runtime = SimpleNamespace(getDeviceCount=lambda: 2)

    def MemoryPool(self) -> _Pool:
        return _Pool(self)

    @contextmanager
    def using_allocator(self, allocator: Any) -> Iterator[None]:
        before, self.allocate = self.allocate, allocator
        yield
        self.allocate = before

    def Device(self, index: int) -> _Device:
        return _Device(self, index)

    def Stream(self, non_blocking: bool) -> _Stream:
        return _Stream(self, non_blocking)


class _Device:
    def __init__(self, cuda: _Cuda, index: int) -> None:
        self.cuda, self.index = cuda, index

    def use(self) -> None:
        self.cuda.current = self.index

    def __enter__(self) -> None:
        self.before, self.cuda.current = self.cuda.current, self.index

    def __exit__(self, *_: object) -> None:
        self.cuda.current = self.before


class _Stream:
    def __init__(self, cuda: _Cuda, non_blocking: bool) -> None:
        self.cuda, self.non_blocking = cuda, non_blocking

    def use(self) -> None:
        self.cuda.streams[self.cuda.current] = self


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> _Cuda:
    found = _Cuda([])
    module: Any = ModuleType("cupy")
    module.cuda = found
    module.ndarray = np.ndarray
    module.get_default_memory_pool = lambda: found.default

    def empty(size: int, dtype: Any) -> Any:
        found.allocate(size)
        return np.empty(size, dtype)

    module.empty = empty
    monkeypatch.setitem(sys.modules, "cupy", module)
    return found


def in_a_thread(work: Any) -> Any:
    """What the function returns, run as a session's thread would."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_sessions_allocate_from_pools_and_work_on_streams_of_their_own(cuda: _Cuda) -> None:
    def session() -> tuple[Any, Any]:
        backend = Backends(pool=DevicePool(1000))["cuda:0"]
        backend.empty_bytes(400)
        return backend._pool, cuda.streams[0]

    (first, its_stream), (second, other_stream) = in_a_thread(session), in_a_thread(session)
    assert first is not second
    assert first.held == second.held == {0: 400}
    assert cuda.default.held == {}
    assert its_stream is not other_stream
    assert its_stream.non_blocking


def test_a_pool_has_its_limit_on_every_device(cuda: _Cuda) -> None:
    def session() -> tuple[dict[int, int], int]:
        backends = Backends(pool=DevicePool(1000))
        one, two = backends["cuda:0"], backends["cuda:1"]
        assert one._pool is two._pool
        refused = 0
        for device, backend in ((0, one), (1, two)):
            with cuda.Device(device):
                backend.empty_bytes(900)
                try:
                    backend.empty_bytes(200)
                except MemoryError:
                    refused += 1
        return one._pool.limits, refused

    limits, refused = in_a_thread(session)
    assert limits == {0: 1000, 1: 1000}
    assert refused == 2


def test_trimming_and_counting_concern_the_sessions_own_pool_and_the_backends_device(cuda: _Cuda) -> None:
    def session() -> tuple[list[int], int, int]:
        backends = Backends(pool=DevicePool(1000))
        first, second = backends["cuda:0"], backends["cuda:1"]
        first.trim()
        second.trim()
        return first._pool.trimmed, first.pooled_bytes(), second.pooled_bytes()

    assert in_a_thread(session) == ([0, 1], 100, 101)
    assert cuda.default.trimmed == []


def test_an_engine_without_a_thread_of_its_own_shares_cupys_pool(cuda: _Cuda) -> None:
    backend = Backends()["cuda:0"]
    backend.empty_bytes(10)
    assert backend._pool is cuda.default
    assert cuda.default.held == {0: 10}
    assert cuda.streams == {}
