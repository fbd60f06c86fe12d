"""The gateway: the application that clients of a fleet talk to. It has no sessions of its own."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx
import structlog
from starlette.websockets import WebSocket

from gradwire_protocol.errors import GradwireError, Unavailable
from gradwire_protocol.frames import Hello, Redirect

from ..auth import KeyStore
from ..auth.caller import Caller
from ..auth.keys import Key
from ..auth.passes import PassMint
from ..http.backlog import Backlogs
from ..http.state import Server
from ..settings.settings import Settings
from ..settings.version import VERSION
from . import relay
from .fleet_tickets import FleetTickets
from .gauges import FleetGauges
from .joining import DirectoryHandle
from .messages import REPORT_EVERY_S, Joined, Placement, Report, Shared, pack, unpack

KNOWN_S: Final = 5.0
"""How long a gateway trusts what it knows of a session's place. A worker refuses sessions that it does not have."""

MAX_KNOWN: Final = 100_000
CONNECT_TIMEOUT_S: Final = 3.0
LEAST_ANSWER_S: Final = 60.0

log = structlog.get_logger("gradwire.fleet")


def answer_timeout_s(settings: Settings) -> float | None:
    """How long a worker may be silent to a request: as long as a frame may wait and run; ``None`` for any time."""
    if not settings.max_frame_seconds:
        return None
    return max(2 * settings.max_frame_seconds, LEAST_ANSWER_S)


@dataclass(slots=True)
class _Known:
    tenant: str
    placement: Placement
    at: float


class Gateway:
    """What the gateway's routes and middleware share.

    Args:
        directory: default: the one of the Ray cluster.
    """

    def __init__(self, settings: Settings, directory: DirectoryHandle | None = None) -> None:
        self.settings = settings
        self.name = "gateway-" + secrets.token_hex(6)
        self.url = ""
        self.directory = directory if directory is not None else DirectoryHandle(settings)
        self.http = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S, read=answer_timeout_s(settings)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=1000), trust_env=False,
        )  # fmt: skip
        self.secret = b""
        self.gauges = FleetGauges(lambda: self.directory.call("fleet"))
        self.keys = KeyStore(None)
        self.backlogs = Backlogs(settings.max_key_backlog_bytes)
        self._mint: PassMint | None = None
        self._incarnation = ""
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._joining = asyncio.Lock()

    # Look-up

    async def find(self, session_id: str, tenant: str, /) -> object:
        """Check that the tenant has this session."""
        return await self.locate(session_id, tenant)

    async def locate(self, session: str, tenant: str, silent: str = "", fresh: bool = False) -> Placement:
        """Where a session is.

        Args:
            silent: a worker that did not answer.
            fresh: ask the Directory, because what was known was wrong.

        Raises:
            NotFound, SessionGone: when the tenant has no such session.
            Unavailable: when it has no worker.
        """
        known = self._known.get(session)
        if known is not None and not silent and not fresh and time.monotonic() - known.at < KNOWN_S:
            if known.tenant == tenant:
                return known.placement
        try:
            found = unpack(await self.directory.call("locate", session, tenant, silent), Placement)
        except GradwireError:
            self.forget(session)
            raise
        await self._saw(found.incarnation)
        self.remember(session, tenant, found)
        return found

    def remember(self, session: str, tenant: str, placement: Placement) -> None:
        """Note where a session is."""
        self._known[session] = _Known(tenant, placement, time.monotonic())
        self._known.move_to_end(session)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def forget(self, session: str) -> None:
        """What was known of a session is wrong."""
        self._known.pop(session, None)

    async def _saw(self, incarnation: str) -> None:
        if incarnation != self._incarnation:
            await self._join()

    async def _join(self) -> None:
        async with self._joining:
            joined = unpack(await self.directory.call("join"), Joined)
            self._incarnation = joined.incarnation
            self.secret = joined.secret
            self._mint = PassMint(joined.secret)

    async def mint(self) -> PassMint:
        """Signs passes."""
        if self._mint is None:
            await self._join()
        assert self._mint is not None
        return self._mint

    async def request_pass(self, key: Key, session: str, worker: str) -> str:
        """A pass for a forwarded request."""
        return (await self.mint()).request(key, session, worker)

    # Streams

    async def redirect(self, session: str, caller: Caller, hello: Hello) -> Redirect | None:
        """Where a client that follows redirects finds the session; ``None`` to relay it."""
        if not self.settings.direct:
            return None
        found = await self.locate(session, caller.key.tenant, fresh=True)
        return Redirect(found.url, (await self.mint()).stream(caller.key, session, found.worker))

    async def relay(self, socket: WebSocket, session: str, caller: Caller, first: bytes | str) -> None:
        """Relay an accepted stream to the worker that has the session, until it ends."""
        await relay.run(self, socket, session, caller, first, self.backlogs.of(caller.key.tenant))

    # Reports

    @asynccontextmanager
    async def running(self, server: Server) -> AsyncIterator[None]:
        """Part of the application's lifespan."""
        await self._join()
        self.keys, self.backlogs = server.access.keys, server.backlogs
        server.metrics.registry.register(self.gauges)
        server.access.tickets = FleetTickets(self.settings, lambda: self.secret, self.keys)
        reporting = asyncio.create_task(self._report(server))
        try:
            yield
        finally:
            reporting.cancel()
            await self.http.aclose()

    async def _report(self, server: Server) -> None:
        access = server.access
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            try:
                told = Report(
                    process=self.name, use=access.rates.take_use(), version=VERSION, url=self.url,
                    ended=[key.id for key in access.keys.all() if key.end()],
                )  # fmt: skip
                shared = unpack(await self.directory.call("report", pack(told)), Shared)
                access.rates.set_shares(shared.shares)
                if access.keys.refuse(shared.ended):  # revoked at another gateway
                    access.end_streams()
                server.registry.devices = shared.devices or server.registry.devices
                await self._saw(shared.incarnation)
            except Unavailable as error:
                log.warning("the directory is away", reason=error.message)
            except Exception as error:
                log.error("reporting failed", exc_info=error)


def gateway_of(app: Any) -> Gateway:
    """The gateway of an application."""
    found: Gateway = app.state.gateway
    return found
