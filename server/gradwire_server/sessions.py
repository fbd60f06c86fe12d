"""The sessions of this server: who owns them, how long they live, how many there may be."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import structlog

from gradwire_engine.backends import available_devices
from gradwire_engine.memory import Limits
from gradwire_protocol.errors import InvalidRequest, NotFound, SessionGone, TooManyRequests, Unavailable

from .hosts import Host, InlineHost
from .metrics import Metrics
from .settings import Settings, variable

if TYPE_CHECKING:
    from .stream import Stream

CULL_EVERY_S: Final = 1.0
GONE_REMEMBERED: Final = 10_000

log = structlog.get_logger("gradwire.sessions")


@dataclass(eq=False)
class Session:
    """A session as the server sees it. Tensors and graph are the host's.

    Attributes:
        tenant: the owner; everybody else is told that there is no such session.
        ttl_s: seconds of disuse after which it expires.
        streams: open streams by client number. While there is one, the session is in use.
    """

    id: str
    tenant: str
    device: str
    default_dtype: str
    limits: Limits
    ttl_s: float
    host: Host
    created: float = field(default_factory=time.time)
    used: float = field(default_factory=time.monotonic)
    streams: dict[int, Stream] = field(default_factory=dict)

    def touch(self) -> None:
        """Count this moment as use."""
        self.used = time.monotonic()

    @property
    def remaining(self) -> float:
        """Seconds until it expires, if nobody uses it from now on."""
        if self.streams or self.host.pending:
            return self.ttl_s
        return self.used + self.ttl_s - time.monotonic()

    def summary(self) -> dict[str, Any]:
        """What can be told without asking the host."""
        return {
            "id": self.id,
            "device": self.device,
            "default_dtype": self.default_dtype,
            "ttl_s": self.ttl_s,
            "created_at": timestamp(self.created),
            "expires_at": timestamp(time.time() + self.remaining),
            "streams": len(self.streams),
            "limits": asdict(self.limits),
        }


def timestamp(seconds: float) -> str:
    """Unix time as RFC 3339 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Registry:
    """All sessions of the server, of all tenants."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self.devices = available_devices()
        self.draining = False
        self._sessions: dict[str, Session] = {}
        self._opening = 0
        self._gone: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Why sessions ended, for their owners: id -> (tenant, what happened)."""
        self._closing: set[asyncio.Task[None]] = set()
        """Sessions that are being closed: the event loop itself holds tasks only weakly."""

    def __len__(self) -> int:
        return len(self._sessions)

    async def create(
        self,
        tenant: str,
        device: str | None = None,
        default_dtype: str = "float32",
        limits: dict[str, int] | None = None,
        ttl_s: float | None = None,
        seed: int | None = None,
    ) -> Session:
        """Start a session.

        Raises:
            InvalidRequest: for a limit or a ttl above the server's.
            TooManyRequests: when the server has as many sessions as it may.
            Unavailable: when the server is stopping.
            DeviceError: for a device that the server lacks.
        """
        settings = self.settings
        if self.draining:
            raise Unavailable("the server is stopping: it takes no new sessions")
        ttl = settings.session_ttl_s if ttl_s is None else ttl_s
        if ttl > max(settings.max_session_ttl_s, settings.session_ttl_s):
            raise _over("ttl_s", ttl, "max_session_ttl_s", settings.max_session_ttl_s)
        for name, wanted in (limits or {}).items():
            if wanted > getattr(settings, name):
                raise _over(f"limits.{name}", wanted, name, getattr(settings, name))
        if len(self._sessions) + self._opening >= settings.max_sessions:
            raise TooManyRequests(
                f"the server has {settings.max_sessions} sessions, as many as it may "
                f"({variable('max_sessions')}): delete one, or wait for one to expire",
                setting=variable("max_sessions"), limit=settings.max_sessions,
            )  # fmt: skip
        session_id = "s_" + secrets.token_urlsafe(12)
        chosen = settings.default_device if device is None else device
        allowed = settings.engine_limits(limits)
        host = InlineHost(session_id, self.metrics)
        self._opening += 1
        try:
            await host.open(allowed, "cuda:0" if chosen == "cuda" else chosen, default_dtype, seed)
        finally:
            self._opening -= 1
        if self.draining:  # by now
            await host.close()
            raise Unavailable("the server is stopping: it takes no new sessions")
        session = Session(session_id, tenant, chosen, default_dtype, allowed, ttl, host)
        self._sessions[session_id] = session
        self.metrics.sessions.set(len(self._sessions))
        log.info("session created", session=session_id, tenant=tenant, device=chosen)
        return session

    def get(self, session_id: str, tenant: str) -> Session:
        """The tenant's session of this id; asking for it counts as use.

        Raises:
            NotFound: the same for an id that never was and for somebody else's.
            SessionGone: to its owner, when it has ended.
        """
        session = self._sessions.get(session_id)
        if session is not None and session.tenant == tenant:
            if session.remaining > 0:
                session.touch()
                return session
            self._forget(session, "expired")
        owner, end = self._gone.get(session_id, ("", ""))
        if owner == tenant:
            raise SessionGone(f"session {session_id} {end}")
        raise NotFound(f"there is no session {session_id!r:.80} for this key")

    def of(self, tenant: str) -> list[Session]:
        """The tenant's live sessions, oldest first."""
        return [each for each in self._sessions.values() if each.tenant == tenant and each.remaining > 0]

    async def delete(self, session: Session) -> None:
        """End a session and release what it holds."""
        self._forget(session, "was deleted")
        await session.host.close()

    def _forget(self, session: Session, end: str) -> None:
        if self._sessions.pop(session.id, None) is None:
            return
        self._gone[session.id] = (session.tenant, end + " at " + timestamp(time.time()))
        if len(self._gone) > GONE_REMEMBERED:
            self._gone.popitem(last=False)
        self.metrics.sessions.set(len(self._sessions))
        self.metrics.session_ends.labels(end.removeprefix("was ")).inc()
        log.info("session ended", session=session.id, reason=end)
        for stream in list(session.streams.values()):
            stream.end_with_session(f"session {session.id} {end}")
        if end == "expired":
            task = asyncio.create_task(session.host.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def cull(self) -> None:
        """End sessions whose time is over, forever."""
        while True:
            await asyncio.sleep(CULL_EVERY_S)
            for session in [each for each in self._sessions.values() if each.remaining <= 0]:
                self._forget(session, "expired")

    def drain(self) -> None:
        """Take no new sessions and no new frames; let streams finish what runs and close."""
        self.draining = True
        for session in self._sessions.values():
            session.host.drain()
            for stream in list(session.streams.values()):
                stream.end_with_server()

    async def idle(self) -> None:
        """Wait until no frame runs and no stream is open."""
        while True:
            busy = [each for each in self._sessions.values() if each.host.pending or each.streams]
            if not busy:
                return
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """End all sessions, when the server stops."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(session.host.close() for session in sessions))


def _over(name: str, value: float, setting: str, limit: float) -> InvalidRequest:
    return InvalidRequest(
        f"{name} is {value:,}, the server allows {limit:,} ({variable(setting)})",
        setting=variable(setting), limit=limit, value=value,
    )  # fmt: skip
