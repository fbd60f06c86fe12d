"""Copies between host and GPU that nobody waits for: through a ring of pinned memory, in the order of the stream.

An upload returns when its bytes are in the ring. A read is begun, and finished when its values are wanted, so that the
reads of a frame travel together. What is larger than a piece goes piece by piece, and the host empties or fills one
while the next one travels.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np

from ..arrays import Array, DeviceArray, Namespace

RING: Final = 16 << 20
"""Bytes of pinned memory that a session takes on a GPU, at its first copy."""

PIECE: Final = 4 << 20
ALIGNED: Final = 256


class _Part:
    """A stretch of the ring that is in use until its event has come.

    Attributes:
        target: for a read, the host memory that its bytes go to.
    """

    __slots__ = ("end", "event", "start", "target")

    def __init__(self, start: int, end: int, event: Any, target: Any) -> None:
        self.start, self.end, self.event, self.target = start, end, event, target


class Read:
    """A read under way. ``host`` holds the values when :meth:`Staging.finish` returns."""

    __slots__ = ("_pending", "host", "source")

    def __init__(self, source: DeviceArray, host: Array) -> None:
        self.source = source
        self.host = host
        self._pending: list[_Part] = []


class Staging:
    """The ring of one session on one device. All copies go on the thread's current stream.

    Raises:
        Exception: CuPy's own, when the system gives no pinned memory.
    """

    def __init__(self, cupy: Namespace, size: int = RING, piece: int = PIECE) -> None:
        self._cupy = cupy
        self._pinned = cupy.cuda.alloc_pinned_memory(size)  # kept: the view below does not
        self._bytes = np.frombuffer(self._pinned, np.uint8, size)
        self._size = size
        self._piece = min(piece, size // 2)
        self._used: deque[_Part] = deque()
        self._next = 0

    def upload(self, host: Array, target: DeviceArray) -> None:
        """Copy host memory in row-major order to a device array that lies in the same order."""
        flat = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
        for begin in range(0, flat.size, self._piece):
            piece = flat[begin : begin + self._piece]
            start = self._reserve(piece.size)
            self._bytes[start : start + piece.size] = piece
            (target.data + begin).copy_from_host_async(self._pinned.ptr + start, piece.size)
            self._used.append(_Part(start, start + piece.size, self._mark(), None))

    def begin(self, array: DeviceArray) -> Read:
        """Start a read, of as much as the ring takes; the rest is copied by :meth:`finish`."""
        source = self._cupy.ascontiguousarray(array)
        read = Read(source, np.empty(array.shape, array.dtype))
        if source.nbytes <= self._piece:
            self._fetch(read, 0, source.nbytes)
        return read

    def finish(self, read: Read) -> Array:
        """Wait for the values of a read."""
        if read.source.nbytes > self._piece:
            for begin in range(0, read.source.nbytes, self._piece):
                self._fetch(read, begin, min(self._piece, read.source.nbytes - begin))
        for part in read._pending:
            self._empty(part)
        read._pending.clear()
        read.source = None
        return read.host

    def _fetch(self, read: Read, begin: int, size: int) -> None:
        if not size:
            return
        start = self._reserve(size)
        (read.source.data + begin).copy_to_host_async(self._pinned.ptr + start, size)
        target = read.host.reshape(-1).view(np.uint8)[begin : begin + size]
        part = _Part(start, start + size, self._mark(), target)
        self._used.append(part)
        read._pending.append(part)

    def _mark(self) -> Any:
        event = self._cupy.cuda.Event(disable_timing=True)
        event.record()
        return event

    def _reserve(self, size: int) -> int:
        """The start of free bytes; the oldest copies are waited for as far as they are in the way."""
        start = self._next if self._next + size <= self._size else 0
        end = start + size
        while self._used and any(part.start < end and start < part.end for part in self._used):
            self._empty(self._used.popleft())
        self._next = -(-end // ALIGNED) * ALIGNED
        return start

    def _empty(self, part: _Part) -> None:
        """Let a part's copy end, and take a read's bytes out of the ring; once."""
        if part.event is not None:
            part.event.synchronize()
            if part.target is not None:
                part.target[...] = self._bytes[part.start : part.end]
            part.event = part.target = None
