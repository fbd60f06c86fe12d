"""The application of a worker, on a thread of its own with its own event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
import ray
import structlog

from gradwire_protocol.errors import Unavailable

from ..app import create_app
from ..auth.passes import PassVerifier
from ..durable.shared.shared_store import SharedStore
from ..groups import listener
from ..groups.rendezvous import GroupHost
from ..hosting.hosts import warm_up
from ..http.serving import DrainingServer, listen
from ..http.state import Server
from ..observability.logging import configure
from ..sessions.moving import give_away
from ..settings import tuning
from ..settings.session_spec import SessionSpec
from ..settings.settings import Settings
from ..settings.version import VERSION
from .group_messages import Seat, parsed
from .messages import DIRECTORY, NAMESPACE, REPORT_EVERY_S, WORKER_PREFIX, Facts, Report, Shared, answered, pack, unpack
from .rendezvous import FleetRendezvous, call_directory
from .reporting import Reports

START_TIMEOUT_S: Final = 60.0
REPORT_TIMEOUT_S: Final = 5.0
DEPARTED_S: Final = 3.0
"""How long a session that was handed over is not taken again: who asks for it here is behind the Directory."""

T = TypeVar("T")
log = structlog.get_logger("gradwire.fleet")


class ServingWorker:
    """A listening application.

    Args:
        name: the worker's id, which passes must name.
        packed: the fleet's settings; ``secret`` is the secret of passes.
        ended: set when the application has stopped.
    """

    def __init__(
        self, name: str, packed: dict[str, Any], secret: bytes, resources: dict[str, Any], ended: threading.Event
    ) -> None:
        self.name = name
        self.resources = resources
        self.secret = secret
        self.node = ray.get_runtime_context().get_node_id()
        self.assigned = ""
        self.settings = Settings(**packed, host=ray.util.get_node_ip_address(), port=0)
        configure(self.settings)
        self.url = ""
        self._ended = ended
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening = threading.Event()
        app = create_app(self.settings, passes=PassVerifier(secret, name), running=self._running)
        self._server: Server = app.state.server
        self._rates = self._server.access.rates
        self._server.registry.departed_s = DEPARTED_S
        self._rendezvous = self._server.registry.rendezvous = FleetRendezvous(name, self._host_of)
        listener.SHARED.host = self.settings.host  # ranks on other nodes connect to it
        store = self._server.registry.store
        self.owner = store.owner if isinstance(store, SharedStore) else ""
        self._uvicorn = DrainingServer(app, self.settings, self._started)
        self._socket = listen(self.settings)
        warm_up()
        tuning.after_start()
        threading.Thread(target=self._run, name="gradwire-server", daemon=True).start()
        if not self._listening.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the worker did not listen within {START_TIMEOUT_S:g} s")

    def _run(self) -> None:
        try:
            self._uvicorn.run([self._socket])
        except BaseException as error:
            log.error("worker failed", worker=self.name, exc_info=error)
        finally:
            self._ended.set()

    def _started(self, url: str) -> None:
        self.url = url
        self._listening.set()

    @asynccontextmanager
    async def _running(self, server: Server) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        reporting = self._loop.create_task(self._report())
        try:
            yield
        finally:
            reporting.cancel()

    def stop(self) -> None:
        """Finish running frames and stop. Blocks."""
        self._uvicorn.stop()
        self._ended.wait(self.settings.drain_timeout_s + 5)

    # Facts

    async def facts(self) -> Facts:
        """The worker, as it describes itself."""
        return Facts(
            worker=self.name, node=self.node, url=self.url, pid=os.getpid(), assigned=self.assigned,
            resources=self.resources, version=VERSION, secret=self.secret, sessions=await self._inside(self._rows()),
            owner=self.owner, groups=self._rendezvous.announced(),
        )  # fmt: skip

    async def _rows(self) -> list[dict[str, Any]]:
        return [each.summary() | {"tenant": each.tenant} for each in self._server.registry.all()]

    async def _inside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the application's event loop."""
        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # Reports

    async def _report(self) -> None:
        """Tell the Directory what changes here. Without a Directory the sessions go on."""
        directory: Any = None
        announced_to = ""
        reports = Reports(lambda: Report(process=self.name, worker=True, version=VERSION, url=self.url))
        while True:
            started = time.monotonic()
            try:
                if directory is None:
                    directory = ray.get_actor(DIRECTORY, namespace=NAMESPACE)
                gone = self._server.registry.ends()
                told = reports.next(await self._rows(), gone, self._rates.take_use())
                if told is not None:
                    async with asyncio.timeout(REPORT_TIMEOUT_S):
                        shared = unpack(answered(await directory.report.remote(pack(told))), Shared)
                    reports.answered(told, gone, shared)
                    self._rates.set_shares(shared.shares)
                    self._server.access.end_keys(shared.ended)
                    if shared.incarnation != announced_to:
                        await call_directory("groups_open", self._rendezvous.announced())
                        announced_to = shared.incarnation
            except (ValueError, TimeoutError, ray.exceptions.RayError) as error:
                log.warning("the directory is away", worker=self.name, reason=str(error)[:200])
                directory = None
                reports.lost()
            except Exception as error:
                reports.lost()
                log.error("reporting failed", worker=self.name, exc_info=error)
            await asyncio.sleep(max(0.05, REPORT_EVERY_S - (time.monotonic() - started)))

    # Moving

    async def hand_over(self, session: str) -> dict[str, Any]:
        """Finish a session's running frames and release it to other workers."""
        return {"released": await self._inside(self._server.registry.hand_over(session))}

    async def move(self, session: str, worker: str) -> dict[str, Any]:
        """Give a session that is only in memory to another worker, through the object store of Ray."""

        async def send(spec: SessionSpec, image: bytes | memoryview) -> None:
            try:
                target: Any = await asyncio.to_thread(ray.get_actor, WORKER_PREFIX + worker, namespace=NAMESPACE)
                held = await asyncio.to_thread(ray.put, image)
                try:
                    answered(await target.take_in.remote(msgspec.to_builtins(spec), held))
                except ray.exceptions.RayError:
                    # It may have the session without this worker knowing; nobody would ask it for the session.
                    async with asyncio.timeout(REPORT_TIMEOUT_S):
                        await target.give_up.remote(session)
                    raise
            except (ValueError, AttributeError, TimeoutError, ray.exceptions.RayError) as error:
                raise Unavailable(f"worker {worker} has not taken the session: {str(error)[-300:]}") from None

        return {"moved": await self._inside(give_away(self._server.registry, session, send))}

    async def take_in(self, spec: dict[str, Any], image: bytes) -> None:
        """Go on with a session of another worker."""
        await self._inside(self._server.registry.take_in(msgspec.convert(spec, SessionSpec), image))

    async def give_up(self, session: str) -> None:
        """Forget a session that was taken in."""

        async def end() -> None:
            if (found := self._server.registry.here(session)) is not None:
                self._server.registry.departed(found)
                await found.host.close()

        await self._inside(end())

    # Groups

    def _host_of(self, session: str) -> GroupHost | None:
        found = self._server.registry.here(session)
        return None if found is None else found.host

    async def group_moved(self, session: str, group: str, meeting: str, seat: dict[str, Any]) -> None:
        """Another rank of a session's group listens elsewhere from now on."""
        await self._inside(self._rendezvous.moved(session, group, meeting, parsed(seat, Seat)))

    async def group_lost(self, session: str, group: str, meeting: str, rank: int, reason: str) -> None:
        """Another rank of a session's group will not come any more."""
        await self._inside(self._rendezvous.lost(session, group, meeting, rank, reason))
