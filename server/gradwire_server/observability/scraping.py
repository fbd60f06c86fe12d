"""The memory of sessions for a scrape, queried from their hosts with a short timeout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

import structlog

from gradwire_protocol.errors import GradwireError

PATIENCE_S: Final = 0.1
"""How long a scrape waits for sessions. For a busy session it reports the last known value."""

REFRESH_EVERY_S: Final = 5.0
"""Counting a graph's memory uses the session's thread, so frequent scrapes get the same value."""

log = structlog.get_logger("gradwire.metrics")


class MemorySource(Protocol):
    """The part of a host that this module uses."""

    async def memory(self, reset_peak: bool = False) -> dict[str, int]:
        """The memory of the session's tensors."""


class MemoryWatch:
    """The last known memory of sessions. At most one query per session is in progress."""

    def __init__(self) -> None:
        self._memory: dict[str, dict[str, int]] = {}
        self._queries: dict[str, tuple[float, asyncio.Task[None]]] = {}
        self._marks: dict[str, int] = {}
        """The mark of each session at its last query."""

    def memory(self, session: str) -> dict[str, int] | None:
        """The last known memory of a session; ``None`` if unknown."""
        return self._memory.get(session)

    async def refresh(self, hosts: Mapping[str, Any], marks: Mapping[str, int] | None = None) -> None:
        """Query these hosts, by session id, and forget all others. Returns after a short timeout.

        Args:
            marks: numbers that change whenever a session does. One that did not change is not queried again.
        """
        marks = marks or {}
        now = time.monotonic()
        for gone in [name for name in self._queries if name not in hosts]:
            self._queries.pop(gone)[1].cancel()
            self._memory.pop(gone, None)
            self._marks.pop(gone, None)
        for name, host in hosts.items():
            query = self._queries.get(name)
            if query is not None and name in self._memory and self._marks.get(name, -1) == marks.get(name):
                continue
            if query is None or (query[1].done() and now - query[0] > REFRESH_EVERY_S):
                if name in marks:
                    self._marks[name] = marks[name]
                self._queries[name] = now, asyncio.create_task(self._query(name, host))
        waiting = [task for _, task in self._queries.values() if not task.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_S)

    async def _query(self, name: str, host: MemorySource) -> None:
        try:
            self._memory[name] = await host.memory()
        except GradwireError as error:  # the session ended meanwhile
            log.debug("memory query failed", session=name, code=error.code)
