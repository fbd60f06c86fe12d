"""The memory of sessions, as a scrape tells it: asked of their hosts, and never waited for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

import structlog

from gradwire_protocol.errors import GradwireError

PATIENCE_S: Final = 0.1
"""How long a scrape waits for sessions. One that is busy is told as it was seen last."""

ASKED_EVERY_S: Final = 5.0
"""Counting what a graph keeps takes a session's thread; scrapers that come often are told the same again."""

log = structlog.get_logger("gradwire.metrics")


class Asked(Protocol):
    """The part of a host that is needed here."""

    async def memory(self, reset_peak: bool = False) -> dict[str, int]:
        """What the session's tensors occupy."""


class MemoryWatch:
    """What sessions' memory was when it was seen last. At most one question a session is under way."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, int]] = {}
        self._asked: dict[str, tuple[float, asyncio.Task[None]]] = {}

    def seen(self, session: str) -> dict[str, int] | None:
        """The memory of a session; ``None`` if it has not been seen yet."""
        return self._seen.get(session)

    async def refresh(self, hosts: Mapping[str, Any]) -> None:
        """Ask these hosts, by id of their session; forget all others. Returns after a moment, whoever has answered."""
        now = time.monotonic()
        for gone in [name for name in self._asked if name not in hosts]:
            self._asked.pop(gone)[1].cancel()
            self._seen.pop(gone, None)
        for name, host in hosts.items():
            asked = self._asked.get(name)
            if asked is None or (asked[1].done() and now - asked[0] > ASKED_EVERY_S):
                self._asked[name] = now, asyncio.create_task(self._ask(name, host))
        waiting = [task for _, task in self._asked.values() if not task.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_S)

    async def _ask(self, name: str, host: Asked) -> None:
        try:
            self._seen[name] = await host.memory()
        except GradwireError as error:  # it ended meanwhile
            log.debug("not seen", session=name, code=error.code)
