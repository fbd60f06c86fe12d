"""The ring of pinned memory, against a stand-in for CuPy whose copies happen at synchronization."""

from __future__ import annotations

import ctypes
from collections import deque
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradwire_engine.runtime.cuda.staging import Staging


class Device:
    """A stream: copies wait in order, until an event behind them is waited for."""

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        self.waits = 0
        self.cuda = SimpleNamespace(alloc_pinned_memory=self.pinned, Event=lambda disable_timing: Event(self))

    def pinned(self, size: int) -> Any:
        """A buffer that knows its address."""
        kind = type("Pinned", (ctypes.c_char * size,), {"ptr": property(ctypes.addressof)})
        return kind()

    def ascontiguousarray(self, array: Any) -> Any:
        return array if array.values.flags.c_contiguous else Array(self, np.ascontiguousarray(array.values))

    def run_until(self, mark: Any) -> None:
        while mark in self.queue:
            entry = self.queue.popleft()
            if type(entry) is tuple:
                ctypes.memmove(*entry)


class Event:
    def __init__(self, device: Device) -> None:
        self.device = device

    def record(self) -> None:
        self.device.queue.append(self)

    def synchronize(self) -> None:
        self.device.waits += 1
        self.device.run_until(self)


class Address:
    def __init__(self, device: Device, at: int) -> None:
        self.device, self.at = device, at

    def __add__(self, distance: int) -> Address:
        return Address(self.device, self.at + distance)

    def copy_from_host_async(self, source: int, size: int) -> None:
        self.device.queue.append((self.at, source, size))

    def copy_to_host_async(self, target: int, size: int) -> None:
        self.device.queue.append((target, self.at, size))


class Array:
    """A device array: its values are a host's, and must not be looked at before the copies are done."""

    def __init__(self, device: Device, values: np.ndarray) -> None:
        self.values = values
        self.shape, self.dtype, self.size, self.nbytes = values.shape, values.dtype, values.size, values.nbytes
        self.data = Address(device, values.ctypes.data)


@pytest.fixture
def device() -> Device:
    return Device()


def numbers(shape: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, bool, np.complex128])
@pytest.mark.parametrize("size", [(), (1,), (7, 9), (1000, 3)])
def test_what_was_uploaded_is_read_back(device: Device, size: Any, dtype: Any) -> None:
    staging = Staging(device, 4096, 1024)
    host = numbers(size, dtype)
    array = Array(device, np.zeros_like(host))
    staging.upload(host, array)
    host_before = host.copy()
    found = staging.finish(staging.begin(array))
    np.testing.assert_array_equal(found, host_before)


def test_an_upload_does_not_wait_and_lets_go_of_the_host_s_memory(device: Device) -> None:
    staging = Staging(device, 8192)
    host = numbers((100,))
    wanted, array = host.copy(), Array(device, np.zeros(100, np.float32))
    staging.upload(host, array)
    host[...] = -1  # the program goes on with its memory
    assert device.waits == 0
    assert not array.values.any()
    np.testing.assert_array_equal(staging.finish(staging.begin(array)), wanted)


def test_reads_of_a_frame_travel_together(device: Device) -> None:
    staging = Staging(device, 1 << 16)
    arrays = [Array(device, numbers((10, n))) for n in range(1, 6)]
    reads = [staging.begin(a) for a in arrays]
    assert device.waits == 0
    assert len(device.queue) == 10
    for array, read in zip(arrays, reads, strict=True):
        np.testing.assert_array_equal(staging.finish(read), array.values)


def test_a_ring_that_is_full_waits_for_its_oldest_copy_and_loses_none(device: Device) -> None:
    staging = Staging(device, 2048, 1024)
    arrays = [Array(device, numbers((50, 4)) + n) for n in range(20)]  # 800 bytes each
    reads = [staging.begin(a) for a in arrays]
    assert 0 < device.waits < 20
    for array, read in reversed(list(zip(arrays, reads, strict=True))):
        np.testing.assert_array_equal(staging.finish(read), array.values)


def test_uploads_and_reads_of_every_size_share_the_ring(device: Device) -> None:
    staging, random = Staging(device, 4096, 1500), np.random.default_rng(1)
    held: list[tuple[Array, np.ndarray]] = []
    for _ in range(200):
        host = random.standard_normal(int(random.integers(1, 900)))
        array = Array(device, np.zeros_like(host))
        staging.upload(host, array)
        held.append((array, host))
        if random.random() < 0.4:
            target, wanted = held.pop(int(random.integers(len(held))))
            np.testing.assert_array_equal(staging.finish(staging.begin(target)), wanted)
    for target, wanted in held:
        np.testing.assert_array_equal(staging.finish(staging.begin(target)), wanted)


def test_a_view_is_read_through_a_copy_in_order(device: Device) -> None:
    staging = Staging(device, 4096)
    values = numbers((6, 4)).T
    np.testing.assert_array_equal(staging.finish(staging.begin(Array(device, values))), values)
