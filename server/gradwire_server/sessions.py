"""The sessions of this server: who owns them, how long they live, how many there may be.

A session with a folder outlives the server. When it starts, it finds such sessions *dormant*: they are listed, count
their time, and wake at their first use. One that nobody uses for ``park_after_s`` becomes dormant again.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from gradwire_engine.backends import available_devices
from gradwire_engine.memory import Limits
from gradwire_protocol.errors import (
    GradwireError,
    InvalidRequest,
    NotFound,
    SessionGone,
    TooManyRequests,
    Unavailable,
)
from gradwire_protocol.frames import MAX_ID

from .access.audit import AuditLog
from .durable.spec import Durability, SessionSpec
from .durable.store import DamagedSession, Store, last_use, note_use
from .hosts import Host
from .idempotency import Repeats
from .inline_host import InlineHost
from .keeper import Keeper
from .metrics import Metrics, Standing
from .runner import How
from .scraping import MemoryWatch
from .settings import Settings, variable
from .timestamps import timestamp
from .workers.host import ProcessHost
from .workers.pool import Death, Pool

if TYPE_CHECKING:
    from .streams.stream import Stream

CULL_EVERY_S: Final = 1.0
CLOSE_PATIENCE_S: Final = 5.0
USE_SAVED_EVERY_S: Final = 30.0
"""How exactly a session's last use is known after the server was killed; a session of a short ttl is saved oftener."""

ENDS: Final = {"was deleted": "deleted", "expired": "expired", "was lost": "lost"}
"""How sessions end, and what the metrics call it."""

GONE_REMEMBERED: Final = 10_000

log = structlog.get_logger("gradwire.sessions")


@dataclass(eq=False)
class Session:
    """A session as the server sees it. Tensors and graph are the host's.

    Attributes:
        spec: how it was asked for.
        host: where it runs, or will when somebody uses it.
        folder: where it is kept on disk.
        damaged: nobody can read what it is; whoever uses it is told why.
        used: when it was last used, by the monotonic clock.
        streams: open streams by client number. While there is one, the session is in use.
    """

    spec: SessionSpec
    host: Keeper
    folder: Path | None = None
    damaged: bool = False
    used: float = field(default_factory=time.monotonic)
    streams: dict[int, Stream] = field(default_factory=dict)
    saved: float = 0.0

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def tenant(self) -> str:
        """The owner; everybody else is told that there is no such session."""
        return self.spec.tenant

    @property
    def device(self) -> str:
        return self.spec.device

    @property
    def default_dtype(self) -> str:
        return self.spec.default_dtype

    @property
    def limits(self) -> Limits:
        return self.spec.engine_limits()

    @property
    def in_use(self) -> bool:
        """Whether somebody uses it at this moment."""
        return bool(self.streams or self.host.pending)

    async def cancel(self, client: int | None = None, first: int = 0, last: int = MAX_ID) -> int:
        """Cancel the frames with these numbers that wait or run, of one client or of all; how many there were."""
        found = sum([
            stream.cancel_waiting(first, last)
            for number, stream in self.streams.items() if client in (None, number)
        ])  # fmt: skip
        return found + await self.host.cancel(client, first, last)

    def touch(self) -> None:
        """Count this moment as use."""
        self.used = time.monotonic()

    @property
    def remaining(self) -> float:
        """Seconds until it expires, if nobody uses it from now on."""
        if self.in_use:
            return self.spec.ttl_s
        return self.used + self.spec.ttl_s - time.monotonic()

    def summary(self) -> dict[str, Any]:
        """What can be told without asking the host."""
        spec = self.spec
        return {
            "id": self.id,
            "device": spec.device,
            "default_dtype": spec.default_dtype,
            "ttl_s": spec.ttl_s,
            "durability": spec.durability,
            "state": "damaged" if self.damaged else "running" if self.host.awake else "dormant",
            "created_at": timestamp(spec.created),
            "expires_at": timestamp(time.time() + self.remaining),
            "streams": len(self.streams),
            "limits": {name: most for name, most in asdict(self.limits).items() if name != "plans"},
        }

    def save_use(self) -> None:
        """Note on disk when it was last used."""
        if self.in_use:
            self.touch()
        if self.folder is not None and self.used > self.saved and not self.damaged:
            at = time.time() - (time.monotonic() - self.used)
            try:
                note_use(self.folder, at)
            except OSError as error:  # the session expires too early then, in the worst case
                log.warning("a session's last use was not saved", session=self.id, reason=str(error))
            self.saved = self.used


class Registry:
    """All sessions of the server, of all tenants.

    Args:
        store: the data directory, where there is one.
        audit: where it is written down what becomes of sessions.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, store: Store | None = None, audit: AuditLog | None = None
    ) -> None:
        self.settings = settings
        self.audit = audit if audit is not None else AuditLog(None)
        self.metrics = metrics
        self.devices = available_devices()
        self.repeats = Repeats()
        self.draining = False
        self.watch = MemoryWatch()
        metrics.gauges.look = self.standings
        self._sessions: dict[str, Session] = {}
        self._ending: dict[str, Session] = {}
        """Sessions that have ended for their owners, and may compute on: until that ends, they count."""
        self._opening = 0
        self._gone: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Why sessions ended, for their owners: id -> (tenant, what happened)."""
        self._tasks: set[asyncio.Task[Any]] = set()
        """Sessions that are being closed or put away: the event loop itself holds tasks only weakly."""
        self.store = store
        self.pool: Pool | None = None
        if settings.session_host == "process":
            self.pool = Pool(settings, metrics)
        self._alone = asyncio.Lock()
        if store is not None:
            self._find(store)

    def __len__(self) -> int:
        return len(self._sessions)

    # Beginning

    def _find(self, store: Store) -> None:
        """Take up the sessions of the data directory, as dormant ones."""
        now, monotonic = time.time(), time.monotonic()
        store.sweep()
        for name, spec in store.specs():
            folder = store.folder(name)
            if isinstance(spec, DamagedSession):
                session = self._damaged(name, folder, spec)
                if session is None:
                    continue
            else:
                # Limits were promised, but how frames are run is the operator's choice of today.
                session = self._session(spec.with_plans(self.settings.engine_limits().plans), folder)
            try:
                session.saved = session.used = monotonic - max(0.0, now - last_use(folder))
            except OSError as error:
                log.warning("a session's last use is not known", session=name, reason=str(error))
            self._sessions[name] = session
        if self._sessions:
            log.info("sessions found", count=len(self._sessions), directory=str(store.root))

    def _damaged(self, name: str, folder: Path, found: DamagedSession) -> Session | None:
        """A session of which only the owner is known; ``None`` where nobody can be told, as not even that is."""
        log.error("a session cannot be offered", session=name, tenant=found.tenant, reason=found.error.message)
        if found.tenant is None:
            return None
        # How long it was to live is not known either.
        ttl = max(self.settings.max_session_ttl_s, self.settings.session_ttl_s)
        session = self._session(SessionSpec(id=name, tenant=found.tenant, durability="applied", ttl_s=ttl), folder)
        session.damaged = True
        session.host.condemn(found.error)
        return session

    def _session(self, spec: SessionSpec, folder: Path | None) -> Session:
        def admit() -> None:
            self._admit(spec.tenant, session)

        def troubled(error: GradwireError) -> None:
            self._troubled(session, error)

        session = Session(spec, Keeper(spec, folder, self._maker(spec), self._turn(spec), admit, troubled), folder)
        session.host.recovered = lambda: self.audit.note("session_recovered", session=spec.id, tenant=spec.tenant)
        return session

    def _maker(self, spec: SessionSpec) -> Callable[[Callable[[Any, Death], None]], Host]:
        pool = self.pool
        if pool is None:
            policy, spin_s = self.settings.journal_policy(), self.settings.spin_s
            return lambda _: InlineHost(spec.id, self.metrics, policy, spin_s=spin_s)
        key = self._worker_key(spec)
        return lambda died: ProcessHost(spec.id, pool, key, self.metrics, died)

    def _worker_key(self, spec: SessionSpec) -> str:
        return spec.id if self.settings.worker_per == "session" else spec.tenant

    def _turn(self, spec: SessionSpec) -> Callable[[], asyncio.Lock]:
        pool = self.pool
        if pool is None:
            return lambda: self._alone
        return lambda: pool.slot(self._worker_key(spec)).alone

    def check_room(self, tenant: str) -> None:
        """Raise, if a new session would be refused now whatever it is like: before a large body is read."""
        if self.draining:
            raise Unavailable("the server is stopping: it takes no new sessions")
        self._admit(tenant)

    def _admit(self, tenant: str, session: Session | None = None) -> None:
        """Check that there may be a further live session beside the others.

        Raises:
            TooManyRequests: for a tenant that can make room by deleting a session of its own.
            Unavailable: for one that can only wait until others do.
        """
        live = [each for each in self._sessions.values() if each.host.awake and each is not session]
        live += self._ending.values()
        if len(live) + self._opening < self.settings.max_sessions:
            return
        full = f"the server has {self.settings.max_sessions} sessions, as many as it may ({variable('max_sessions')})"
        facts = {"setting": variable("max_sessions"), "limit": self.settings.max_sessions}
        if any(each.tenant == tenant for each in live):
            raise TooManyRequests(f"{full}: delete one, or wait for one to expire", **facts)
        raise Unavailable(f"{full}, none of them yours: wait for one to end", **facts)

    async def create(
        self,
        tenant: str,
        device: str | None = None,
        default_dtype: str = "float32",
        limits: dict[str, int] | None = None,
        ttl_s: float | None = None,
        seed: int | None = None,
        durability: Durability | None = None,
        image: bytes | memoryview | None = None,
    ) -> Session:
        """Start a session; with the tensors and names of an exported one, if its file is given.

        Raises:
            InvalidRequest: for a limit or a ttl above the server's, or a durability that it does not offer.
            MalformedFrame: for a file that is no exported session.
            LimitExceeded: when the data directory is full.
            TooManyRequests: when the server has as many sessions as it may, some of them the tenant's.
            Unavailable: when the server is stopping, or is full of others' sessions.
            DeviceError: for a device that the server lacks.
        """
        settings = self.settings
        self.check_room(tenant)
        ttl = settings.session_ttl_s if ttl_s is None else ttl_s
        if ttl > max(settings.max_session_ttl_s, settings.session_ttl_s):
            raise _over("ttl_s", ttl, "max_session_ttl_s", settings.max_session_ttl_s)
        for name, wanted in (limits or {}).items():
            allowed = getattr(settings, name)
            if allowed and wanted > allowed:  # 0 is no limit
                raise _over(f"limits.{name}", wanted, name, allowed)
        promised = settings.promised_durability() if durability is None else durability
        if promised != "none" and self.store is None:
            raise InvalidRequest(
                f"this server keeps nothing on disk, so sessions cannot be {promised!r}: it has no "
                f"{variable('data_dir')}",
                setting=variable("data_dir"),
            )
        chosen = settings.default_device if device is None else device
        spec = SessionSpec(
            id="s_" + secrets.token_urlsafe(12), tenant=tenant, device="cuda:0" if chosen == "cuda" else chosen,
            default_dtype=default_dtype, limits=asdict(settings.engine_limits(limits)), ttl_s=ttl, seed=seed or 0,
            durability=promised,
        )  # fmt: skip
        self._opening += 1
        try:
            session = await self._begin(spec, "new" if image is None else "adopt", image or b"")
        finally:
            self._opening -= 1
        if self.draining:  # by now
            await self._end(session)
            raise Unavailable("the server is stopping: it takes no new sessions")
        session.touch()  # making it may take longer than it lives unused: a worker process has to start
        self._sessions[spec.id] = session
        log.info("session created", session=spec.id, tenant=tenant, device=chosen, durability=promised)
        return session

    async def _begin(self, spec: SessionSpec, how: How, image: bytes | memoryview) -> Session:
        folder = None
        if self.store is not None and spec.durability != "none":
            self.store.check_room()
            folder = self.store.folder(spec.id)
        session = self._session(spec, folder)
        try:
            await session.host.open(spec, folder, how, image)
        except BaseException:
            await self._end(session)
            raise
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

    def standings(self) -> list[Standing]:
        """The sessions as the metrics tell them."""
        return [
            Standing(
                "live" if each.host.awake else "dormant",
                each.spec.durability,
                each.device,
                each.host.pending,
                self.watch.seen(each.id),
            )
            for each in self._sessions.values()
        ]

    async def refresh(self) -> None:
        """Look at the sessions' memory, before the metrics tell it. Busy ones are not waited for, nor are dormant ones
        woken."""
        await self.watch.refresh({each.id: each.host for each in self._sessions.values() if each.host.awake})

    def of(self, tenant: str) -> list[Session]:
        """The tenant's sessions, oldest first, dormant ones among them."""
        found = [each for each in self._sessions.values() if each.tenant == tenant and each.remaining > 0]
        return sorted(found, key=lambda each: each.spec.created)

    def promised(self, tenant: str) -> list[int]:
        """The memory limits of the tenant's sessions, in bytes: what they may come to use together. Those that have
        ended and still compute are among them.
        """
        ending = [each for each in self._ending.values() if each.tenant == tenant]
        return [each.limits.max_session_bytes for each in (*self.of(tenant), *ending)]

    def ending(self, tenant: str) -> int:
        """How many sessions of the tenant have ended, and still compute."""
        return sum(each.tenant == tenant for each in self._ending.values())

    async def delete(self, session: Session) -> None:
        """End a session and release what it holds."""
        self._forget(session, "was deleted")
        await self._end(session)

    async def _end(self, session: Session) -> None:
        # What it computes is cancelled by this. Until that has stopped, or its worker was ended, it is its tenant's.
        self._ending[session.id] = session
        try:
            over = await session.host.close(keep=False)
        except BaseException:
            self._ending.pop(session.id, None)
            raise
        if over:
            self._ending.pop(session.id, None)
        else:
            self._do(self._outlast(session))
        await self._remove(session)

    async def _outlast(self, session: Session) -> None:
        """Wait for the end of what a session computes that was deleted or has expired."""
        try:
            while not await session.host.close(keep=False):
                pass  # it has waited for a while
        finally:
            self._ending.pop(session.id, None)

    async def _remove(self, session: Session) -> None:
        if self.store is not None and session.folder is not None:
            try:
                await asyncio.to_thread(self.store.remove, session.id)
            except OSError as error:  # the next start of the server tries it again
                log.error("the files of a session cannot be removed", session=session.id, reason=str(error))

    def _forget(self, session: Session, end: str) -> None:
        if self._sessions.pop(session.id, None) is None:
            return
        self._gone[session.id] = (session.tenant, end + " at " + timestamp(time.time()))
        if len(self._gone) > GONE_REMEMBERED:
            self._gone.popitem(last=False)
        self.metrics.session_ends.labels(ENDS[end]).inc()
        log.info("session ended", session=session.id, reason=end)
        for stream in list(session.streams.values()):
            stream.end_with_session(f"session {session.id} {end}")
        if end == "expired":
            self.audit.note("session_expired", session=session.id, tenant=session.tenant, key="", address="")
            self._do(self._end(session))

    def _troubled(self, session: Session, error: GradwireError) -> None:
        """A session cannot go on, at all or for now: whoever is connected to it is told."""
        if isinstance(error, SessionGone):
            self._forget(session, "was lost")
        for stream in list(session.streams.values()):
            stream.end_with_trouble(error)

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def cull(self) -> None:
        """End sessions whose time is over, put away those that nobody uses, and look after the workers; forever."""
        workers = asyncio.create_task(self.pool.watch()) if self.pool is not None else None
        try:
            while True:
                await asyncio.sleep(CULL_EVERY_S)
                for session in list(self._sessions.values()):
                    self._look_after(session)
        finally:
            if workers is not None:
                workers.cancel()

    def _look_after(self, session: Session) -> None:
        if session.remaining <= 0:
            self._forget(session, "expired")
            return
        now = time.monotonic()
        if session.folder is None or self.draining:
            return
        if now - session.saved > min(USE_SAVED_EVERY_S, session.spec.ttl_s / 4):
            session.save_use()
        park = self.settings.park_after_s
        if park and session.host.awake and not session.in_use and now - session.used > park:
            self._do(session.host.park())

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
        """End all sessions, when the server stops. Those with a folder are put away."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            session.save_use()
        closing = [session.host.close(keep=session.folder is not None) for session in sessions]
        for session, outcome in zip(sessions, await asyncio.gather(*closing, return_exceptions=True)):
            if isinstance(outcome, BaseException):
                log.error("a session was not closed in order", session=session.id, exc_info=outcome)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_PATIENCE_S)
        if self.pool is not None:
            await self.pool.close()
        if self.store is not None:
            self.store.close()


def _over(name: str, value: float, setting: str, limit: float) -> InvalidRequest:
    return InvalidRequest(
        f"{name} is {value:,}, the server allows {limit:,} ({variable(setting)})",
        setting=variable(setting), limit=limit, value=value,
    )  # fmt: skip
