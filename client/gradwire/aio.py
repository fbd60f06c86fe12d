"""Asynchronous sessions: awaiting values without blocking an event loop."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from ._core.session.batched_read import fetch
from ._core.session.current_session import connect
from ._core.session.session import Session
from ._core.tensor.tensor import Tensor


class AsyncSession:
    """``async with AsyncSession(url, api_key=...) as session: ... await session.fetch(loss)``.

    Recording never waits, so tensors are used as ever; only reading is awaited. The arguments are those of
    :func:`gradwire.connect`.
    """

    def __init__(self, url: str | None = None, api_key: str | None = None, **options: Any) -> None:
        self._arguments: tuple[Any, ...] = (url, api_key)
        self._options = options
        self.session: Session | None = None

    async def __aenter__(self) -> AsyncSession:
        self.session = await asyncio.to_thread(connect, *self._arguments, **self._options)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.session is not None:
            await asyncio.to_thread(self.session.close)

    async def fetch(self, *tensors: Tensor) -> tuple[Any, ...]:
        """The values of several tensors in one round trip."""
        return await asyncio.to_thread(fetch, *tensors)

    async def synchronize(self) -> None:
        """Wait until everything recorded so far is done, and raise its first error."""
        if self.session is not None:
            await asyncio.to_thread(self.session.synchronize)
