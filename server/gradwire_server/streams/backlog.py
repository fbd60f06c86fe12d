"""What the streams and the requests of one tenant hold in memory together: each alone has its own bound, many have
this one."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol
from weakref import WeakValueDictionary

SMALL_BYTES: Final = 256 << 10
"""A stream that holds less than this is read from all the same: ordinary frames are small, and answered soon."""


class Holder(Protocol):
    """A stream or a request, as far as it matters here."""

    held: int

    def read_on(self) -> None:
        """There may be room again."""


class Backlog:
    """The streams and requests of a tenant, and those streams that wait until the others hold less.

    Of those that wait, the first is read from nevertheless: it has a part of a message, and the rest of it has to come
    before any memory is free again.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._waiting: dict[Holder, None] = {}

    def tell(self, stream: Holder, held: int) -> None:
        """A stream holds so many bytes from now on."""
        less = held < stream.held
        self.held += held - stream.held
        stream.held = held
        if less and self._waiting:
            if held <= SMALL_BYTES:
                self._waiting.pop(stream, None)
            self._wake()

    def room(self, stream: Holder) -> bool:
        """Whether a stream may be read from; else it is told when that may have changed."""
        if self.held <= self.most or stream.held <= SMALL_BYTES:
            self._waiting.pop(stream, None)
            return True
        self._waiting.setdefault(stream)
        return next(iter(self._waiting)) is stream

    def fits(self, request: Holder, held: int) -> bool:
        """Whether a request, which cannot wait, may hold so much: it is little, or the others leave room for some."""
        return held <= SMALL_BYTES or self.held - request.held <= self.most

    def leave(self, stream: Holder) -> None:
        """A stream or a request has ended."""
        self._waiting.pop(stream, None)
        self.held -= stream.held
        stream.held = 0
        self._wake()

    def _wake(self) -> None:
        waiting = list(self._waiting)
        for stream in waiting if self.held <= self.most else waiting[:1]:
            asyncio.get_running_loop().call_soon(stream.read_on)


class Backlogs:
    """Those of all tenants."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_tenant: WeakValueDictionary[str, Backlog] = WeakValueDictionary()

    def of(self, tenant: str) -> Backlog:
        """What a tenant's streams and requests hold."""
        found = self._by_tenant.get(tenant)
        if found is None:
            found = self._by_tenant[tenant] = Backlog(self._most)
        return found
