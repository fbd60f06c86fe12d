"""A worker: a Ray actor whose process runs the ordinary application, with sessions inside of it.

The actor's methods are for the Directory. Clients and gateways reach the application by its own listener.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

from ..settings import tuning
from .messages import pack, refused

if TYPE_CHECKING:
    from .serving_worker import ServingWorker


class FleetWorker:
    """The actor. Its libraries are imported by :meth:`start`, so that :meth:`ping` tells when Ray has found a place.

    Args:
        name: its id.
        packed: the settings.
        secret: the secret of passes.
        resources: what it takes of its node.
    """

    def __init__(self, name: str, packed: dict[str, Any], secret: bytes, resources: dict[str, Any]) -> None:
        tuning.before_numpy()
        self.name = name
        self._packed = packed
        self._secret = secret
        self._resources = resources
        self._serving: ServingWorker | None = None
        self._starting = asyncio.Lock()
        self._ended = threading.Event()

    async def ping(self) -> str:
        """Answer, with the name of this worker."""
        return self.name

    async def start(self) -> dict[str, Any]:
        """Listen, unless it does already. Returns :class:`~.messages.Facts`."""
        async with self._starting:
            if self._serving is None:
                self._serving = await asyncio.to_thread(self._serve)
        return pack(await self._serving.facts())

    def _serve(self) -> ServingWorker:
        from .serving_worker import ServingWorker

        return ServingWorker(self.name, self._packed, self._secret, self._resources, self._ended)

    async def run(self) -> str:
        """Return when the worker has ended. While it runs, Ray's word on this call is its word on the process."""
        await asyncio.to_thread(self._ended.wait)
        return "stopped"

    async def hand_over(self, session: str) -> dict[str, Any]:
        """Give up a session, so that another worker can take it."""
        if self._serving is None:
            return {"released": False}
        try:
            return await self._serving.hand_over(session)
        except Exception as error:
            return refused(_as_problem(error))

    async def move(self, session: str, worker: str) -> dict[str, Any]:
        """Give a session that is only in memory to another worker."""
        if self._serving is None:
            return {"moved": False}
        try:
            return await self._serving.move(session, worker)
        except Exception as error:
            return refused(_as_problem(error))

    async def take_in(self, spec: dict[str, Any], image: bytes) -> dict[str, Any]:
        """Go on with a session of another worker."""
        try:
            await self.start()
            assert self._serving is not None
            await self._serving.take_in(spec, image)
            return {}
        except Exception as error:
            return refused(_as_problem(error))

    async def give_up(self, session: str) -> dict[str, Any]:
        """Forget a session that was taken in, although the other worker does not know that."""
        if self._serving is not None:
            await self._serving.give_up(session)
        return {}

    async def group_moved(self, session: str, group: str, meeting: str, seat: dict[str, Any]) -> dict[str, Any]:
        """Another rank of a session's group listens elsewhere from now on."""
        return await self._about_group("group_moved", session, group, meeting, seat)

    async def group_lost(self, session: str, group: str, meeting: str, rank: int, reason: str) -> dict[str, Any]:
        """Another rank of a session's group will not come any more."""
        return await self._about_group("group_lost", session, group, meeting, rank, reason)

    async def _about_group(self, method: str, *arguments: Any) -> dict[str, Any]:
        if self._serving is not None:
            try:
                await getattr(self._serving, method)(*arguments)
            except Exception as error:
                return refused(_as_problem(error))
        return {}

    async def stop(self) -> None:
        """Finish running frames, close streams and sessions, and end."""
        if self._serving is not None:
            await asyncio.to_thread(self._serving.stop)
        self._ended.set()

    async def pid(self) -> int:
        """The process."""
        return os.getpid()


def _as_problem(error: Exception) -> Any:
    from gradwire_protocol.errors import GradwireError, InternalError

    return error if isinstance(error, GradwireError) else InternalError(repr(error))
