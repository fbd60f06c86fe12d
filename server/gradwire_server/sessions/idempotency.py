"""Idempotent creation: a client can retry a request whose response was lost.

A request with an ``Idempotency-Key`` takes effect once. A repeated request of the tenant with the same key returns the
result of the first one, even while that is in progress. Failed requests are not stored.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from gradwire_protocol.errors import InvalidRequest

KEYS_KEPT: Final = 1000
"""The limit per tenant. Clients retry within seconds."""


@dataclass(frozen=True)
class _Made:
    """A request and the id of its result."""

    request: str
    outcome: asyncio.Task[str]


class Repeats:
    """The recently used keys and their results."""

    def __init__(self) -> None:
        self._tenants: dict[str, OrderedDict[str, _Made]] = {}

    async def once(
        self, tenant: str, key: str | None, request: str, make: Callable[[], Coroutine[Any, Any, str]]
    ) -> str:
        """The id that ``make`` returns, or returned for this key before. Without a key, ``make`` always runs.

        Raises:
            InvalidRequest: when the key was used with a different request.
        """
        if key is None:
            return await make()
        known = self._tenants.setdefault(tenant, OrderedDict())
        before = known.get(key)
        if before is None:
            # A separate task survives the disconnect of the first request, for a repeated one.
            before = known[key] = _Made(request, asyncio.create_task(make()))
            before.outcome.add_done_callback(lambda task: self._settle(tenant, key, task))
            if len(known) > KEYS_KEPT:
                known.popitem(last=False)
        elif before.request != request:
            raise InvalidRequest("the Idempotency-Key was used with a different request; use a new key")
        return await asyncio.shield(before.outcome)

    def _settle(self, tenant: str, key: str, task: asyncio.Task[str]) -> None:
        if task.cancelled() or task.exception() is not None:
            known = self._tenants.get(tenant, OrderedDict())
            if key in known and known[key].outcome is task:
                del known[key]
