"""Graphs over the emulated kernels: a capturing stream records all computations, and a launch repeats them.

Like a real graph, it works on the memory of its capture, so reads and writes elsewhere become visible. Copies to the
host are refused during a capture, as in CUDA.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

import tests.strict_backend as strict
from gradwire_engine.runtime.cuda.graphs import Graphs
from tests.cuda_emulation import EmulatedBackend


class _Pool:
    malloc = None

    def set_limit(self, *, size: int) -> None:
        assert size > 0, "CuPy takes 0 for no limit"

    def total_bytes(self) -> int:
        return 512


class _Stream:
    ptr = 1

    def begin_capture(self) -> None:
        assert strict.LAUNCHES is None
        strict.LAUNCHES = []

    def end_capture(self) -> Any:
        noted: list[Callable[[], object]] = strict.LAUNCHES or []
        strict.LAUNCHES = None

        def launch() -> None:
            for each in noted:
                each()

        return SimpleNamespace(launch=launch)


class _Cupy:
    """What :class:`Graphs` takes of CuPy."""

    def __init__(self, xp: Any) -> None:
        self.empty, self.empty_like = xp.empty, xp.empty_like
        stream = _Stream()
        self.cuda = SimpleNamespace(
            get_current_stream=lambda: stream, MemoryPool=_Pool, using_allocator=self._using,
            UnownedMemory=lambda ptr, size, owner: SimpleNamespace(ptr=ptr, size=size, owner=owner),
            MemoryPointer=lambda memory, offset: memory if not offset else memory + offset,
        )  # fmt: skip

    @contextmanager
    def _using(self, _: Any) -> Iterator[None]:
        yield

    def ndarray(self, shape: Any, dtype: Any, memory: Any, strides: Any) -> Any:
        span = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + dtype.itemsize
        buffer = type("Buffer", (ctypes.Array,), {"_type_": ctypes.c_char, "_length_": span}).from_address(memory.ptr)
        buffer.owner = memory.owner
        return strict.StrictArray(np.ndarray(shape, dtype, buffer, 0, strides))


class CapturingBackend(EmulatedBackend):
    """The emulated GPU with graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.graphs = Graphs(_Cupy(self.xp), 1 << 20)

    def to_host(self, array: Any) -> Any:
        strict.waits()
        return super().to_host(array)

    def from_host(self, array: Any) -> Any:
        strict.waits()
        return super().from_host(array)
