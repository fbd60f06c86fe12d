"""The limit for the memory of all streams and requests of one tenant. Each one also has a limit of its own."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol
from weakref import WeakValueDictionary

SMALL_BYTES: Final = 256 << 10
"""The server always reads from a stream with less pending memory: ordinary frames are small and answered soon."""


class Holder(Protocol):
    """A stream or a request that holds memory."""

    pending_bytes: int

    def resume_reading(self) -> None:
        """Continue reading, because memory was freed."""


class Backlog:
    """The memory of a tenant's streams and requests, and the streams that wait for others to free memory.

    The server still reads from the first waiting stream, because its incomplete message must complete before any memory
    is freed.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.pending_bytes = 0
        self._waiting: dict[Holder, None] = {}

    def update(self, stream: Holder, pending_bytes: int) -> None:
        """Set the memory of a stream."""
        less = pending_bytes < stream.pending_bytes
        self.pending_bytes += pending_bytes - stream.pending_bytes
        stream.pending_bytes = pending_bytes
        if less and self._waiting:
            if pending_bytes <= SMALL_BYTES:
                self._waiting.pop(stream, None)
            self._wake()

    def may_read(self, stream: Holder) -> bool:
        """Whether the server may read from a stream. If not, the stream waits and is called back."""
        if self.pending_bytes <= self.most or stream.pending_bytes <= SMALL_BYTES:
            self._waiting.pop(stream, None)
            return True
        self._waiting.setdefault(stream)
        return next(iter(self._waiting)) is stream

    def fits(self, request: Holder, pending_bytes: int) -> bool:
        """Whether a request, which cannot wait, may hold this many bytes."""
        return pending_bytes <= SMALL_BYTES or self.pending_bytes - request.pending_bytes <= self.most

    def leave(self, stream: Holder) -> None:
        """Remove a stream or a request."""
        self._waiting.pop(stream, None)
        self.pending_bytes -= stream.pending_bytes
        stream.pending_bytes = 0
        self._wake()

    def _wake(self) -> None:
        waiting = list(self._waiting)
        for stream in waiting if self.pending_bytes <= self.most else waiting[:1]:
            asyncio.get_running_loop().call_soon(stream.resume_reading)


class Backlogs:
    """The backlogs of all tenants."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_tenant: WeakValueDictionary[str, Backlog] = WeakValueDictionary()

    def of(self, tenant: str) -> Backlog:
        """The backlog of a tenant."""
        found = self._by_tenant.get(tenant)
        if found is None:
            found = self._by_tenant[tenant] = Backlog(self._most)
        return found
