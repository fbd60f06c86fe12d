"""Requests that make something, and may be sent again by a client that did not hear the answer.

A request with an ``Idempotency-Key`` has its effect once: the same key of the same tenant, a second time, is answered
with what the first one made, also while that is still being made. A request that failed is not remembered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from gradwire_protocol.errors import InvalidRequest

KEYS_KEPT: Final = 1000
"""Of each tenant. A client sends a request again within seconds, if at all."""


@dataclass(frozen=True)
class _Made:
    """What a request asked for, and the id of what it made, once it is made."""

    request: str
    outcome: asyncio.Task[str]


class Repeats:
    """The keys that were used lately, and what was made for them."""

    def __init__(self) -> None:
        self._tenants: dict[str, OrderedDict[str, _Made]] = {}

    async def once(
        self, tenant: str, key: str | None, request: str, make: Callable[[], Coroutine[Any, Any, str]]
    ) -> str:
        """The id of what ``make`` makes, or has made for this key before. Without a key it is made each time.

        Raises:
            InvalidRequest: when the key came before, with a request for something else.
        """
        if key is None:
            return await make()
        known = self._tenants.setdefault(tenant, OrderedDict())
        before = known.get(key)
        if before is None:
            # A task of its own: whoever asks again waits for it, also when the one who asked first has gone.
            before = known[key] = _Made(request, asyncio.create_task(make()))
            before.outcome.add_done_callback(lambda task: self._settle(tenant, key, task))
            if len(known) > KEYS_KEPT:
                known.popitem(last=False)
        elif before.request != request:
            raise InvalidRequest("the Idempotency-Key was used before, for a request that was not the same")
        return await asyncio.shield(before.outcome)

    def _settle(self, tenant: str, key: str, task: asyncio.Task[str]) -> None:
        if task.cancelled() or task.exception() is not None:
            known = self._tenants.get(tenant, OrderedDict())
            if key in known and known[key].outcome is task:
                del known[key]
