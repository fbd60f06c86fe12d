"""The registry of sessions: owners, lifetimes and limits.

A session with a folder outlives the server. After a start such sessions are *dormant*: they are listed, their time to
live runs, and their next use loads them. A session that is idle for ``park_after_s`` becomes dormant again.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from gradwire_engine.runtime.backends import available_devices
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import GradwireError, InvalidRequest, NotFound, SessionGone, TooManyRequests, Unavailable
from gradwire_protocol.frames import MAX_ID

from ..auth.audit import AuditLog
from ..durable.store import DamagedSession, Store, last_use, note_use
from ..groups.rendezvous import LocalRendezvous, Rendezvous
from ..hosting.hosts import Host
from ..hosting.inline_host import InlineHost
from ..hosting.runner import How
from ..observability.metrics import Metrics, SessionState
from ..observability.scraping import MemoryWatch
from ..settings.session_spec import Durability, SessionSpec
from ..settings.settings import Settings, variable
from ..settings.timestamps import timestamp
from ..workers.host import ProcessHost
from ..workers.pool import Death, WorkerPool
from .idempotency import Repeats
from .session_supervisor import SessionSupervisor

CULL_EVERY_S: Final = 1.0
CLOSE_PATIENCE_S: Final = 5.0
USE_SAVED_EVERY_S: Final = 30.0
"""How often a session's last use is saved. Sessions with a short ttl save it more often."""

ENDS: Final = {"was deleted": "deleted", "expired": "expired", "was lost": "lost"}
"""The ends of sessions and their names in the metrics."""

MAX_GONE: Final = 10_000

log = structlog.get_logger("gradwire.sessions")


class OpenStream(Protocol):
    """An open stream of a session.

    Attributes:
        instance: the id of the client's process.
        epoch: counts the streams of one instance.
    """

    instance: str
    epoch: int

    def cancel_waiting(self, first: int, last: int) -> int:
        """Cancel queued frames in this range; returns their number."""

    def end_resumed(self) -> None:
        """End the stream because its client resumed on another one."""

    def end_with_session(self, text: str) -> None:
        """End the stream because the session ended."""

    def end_unavailable(self, error: GradwireError) -> None:
        """End the stream because the session is unavailable."""

    def end_with_server(self) -> None:
        """End the stream because the server is stopping."""


@dataclass(eq=False)
class Session:
    """A session in the registry. Its host has the tensors and the graph.

    Attributes:
        spec: its parameters.
        host: its host.
        folder: its folder on disk.
        damaged: its description on disk is unreadable; each use fails with the reason.
        used: when it was last used, by the monotonic clock.
        streams: open streams by client number. An open stream counts as use.
    """

    spec: SessionSpec
    host: SessionSupervisor
    folder: Path | None = None
    damaged: bool = False
    used: float = field(default_factory=time.monotonic)
    streams: dict[int, OpenStream] = field(default_factory=dict)
    saved: float = 0.0

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def tenant(self) -> str:
        """The owner. For other tenants the session does not exist."""
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
        """Whether it has open streams or pending frames."""
        return bool(self.streams or self.host.pending)

    async def cancel(self, client: int | None = None, first: int = 0, last: int = MAX_ID) -> int:
        """Cancel queued and running frames in this range, of one client or of all; returns their number."""
        found = sum(
            [stream.cancel_waiting(first, last) for number, stream in self.streams.items() if client in (None, number)]
        )
        return found + await self.host.cancel(client, first, last)

    def touch(self) -> None:
        """Record a use."""
        self.used = time.monotonic()

    @property
    def remaining(self) -> float:
        """Seconds until it expires if it stays idle."""
        if self.in_use:
            return self.spec.ttl_s
        return self.used + self.spec.ttl_s - time.monotonic()

    def summary(self) -> dict[str, Any]:
        """The data that requires no query of the host."""
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
        """Save its last use on disk."""
        if self.in_use:
            self.touch()
        if self.folder is not None and self.used > self.saved and not self.damaged:
            at = time.time() - (time.monotonic() - self.used)
            try:
                note_use(self.folder, at)
            except OSError as error:  # at worst, the session expires too early
                log.warning("cannot save a session's last use", session=self.id, reason=str(error))
            self.saved = self.used


class SessionRegistry:
    """All sessions of the server, of all tenants.

    Args:
        store: the data directory, if any.
        audit: the audit log.
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
        metrics.gauges.states = self.session_states
        self._sessions: dict[str, Session] = {}
        self._ending: dict[str, Session] = {}
        """Ended sessions that may still compute. They count towards quotas."""
        self._opening = 0
        self._gone: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Ended sessions: id -> (tenant, reason)."""
        self._tasks: set[asyncio.Task[Any]] = set()
        """Tasks that close or unload sessions; the event loop holds only weak references to tasks."""
        self.store = store
        self.pool: WorkerPool | None = None
        if settings.session_host == "process":
            self.pool = WorkerPool(settings, metrics)
        self.rendezvous: Rendezvous = LocalRendezvous()
        self._alone = asyncio.Lock()
        if store is not None:
            self._load_dormant(store)

    def __len__(self) -> int:
        return len(self._sessions)

    # Creation

    def _load_dormant(self, store: Store) -> None:
        """Register the sessions of the data directory as dormant."""
        now, monotonic = time.time(), time.monotonic()
        store.sweep()
        for name, spec in store.specs():
            folder = store.folder(name)
            if isinstance(spec, DamagedSession):
                session = self._damaged(name, folder, spec)
                if session is None:
                    continue
            else:
                # The stored limits stay valid, but the mode of plans is the operator's current choice.
                session = self._session(spec.with_plans(self.settings.engine_limits().plans), folder)
            try:
                session.saved = session.used = monotonic - max(0.0, now - last_use(folder))
            except OSError as error:
                log.warning("a session's last use is unknown", session=name, reason=str(error))
            self._sessions[name] = session
        if self._sessions:
            log.info("sessions found", count=len(self._sessions), directory=str(store.root))

    def _damaged(self, name: str, folder: Path, found: DamagedSession) -> Session | None:
        """A session with an unreadable description; ``None`` if even its owner is unknown."""
        log.error("a session's description is damaged", session=name, tenant=found.tenant, reason=found.error.message)
        if found.tenant is None:
            return None
        # Its ttl is unknown, so use the longest one.
        ttl = max(self.settings.max_session_ttl_s, self.settings.session_ttl_s)
        session = self._session(SessionSpec(id=name, tenant=found.tenant, durability="applied", ttl_s=ttl), folder)
        session.damaged = True
        session.host.fail_permanently(found.error)
        return session

    def _session(self, spec: SessionSpec, folder: Path | None) -> Session:
        def admit() -> None:
            self._admit(spec.tenant, session)

        def on_unavailable(error: GradwireError) -> None:
            self._on_unavailable(session, error)

        make, alone = self._host_factory(spec), self._crash_lock(spec)
        session = Session(spec, SessionSupervisor(spec, folder, make, alone, admit, on_unavailable), folder)
        session.host.recovered = lambda: self._recovered(spec)
        return session

    def _recovered(self, spec: SessionSpec) -> None:
        self.audit.note("session_recovered", session=spec.id, tenant=spec.tenant)
        self._spawn(self.rendezvous.recovered(spec.id))

    def _host_factory(self, spec: SessionSpec) -> Callable[[Callable[[Any, Death], None]], Host]:
        pool = self.pool
        if pool is None:
            policy, spin_s = self.settings.journal_policy(), self.settings.spin_s
            return lambda _: InlineHost(spec.id, self.metrics, policy, spin_s=spin_s)
        key = self._worker_key(spec)
        return lambda died: ProcessHost(spec.id, pool, key, self.metrics, died)

    def _worker_key(self, spec: SessionSpec) -> str:
        return spec.id if self.settings.worker_per == "session" else spec.tenant

    def _crash_lock(self, spec: SessionSpec) -> Callable[[], asyncio.Lock]:
        pool = self.pool
        if pool is None:
            return lambda: self._alone
        return lambda: pool.slot(self._worker_key(spec)).alone

    def check_capacity(self, tenant: str) -> None:
        """Raise if any new session would be refused now. Call this before a large body is read."""
        if self.draining:
            raise Unavailable("the server is stopping and accepts no new sessions")
        self._admit(tenant)

    def _admit(self, tenant: str, session: Session | None = None) -> None:
        """Check that another session may be loaded.

        Raises:
            TooManyRequests: when the tenant can free capacity by deleting its own session.
            Unavailable: when only other tenants can free capacity.
        """
        live = [each for each in self._sessions.values() if each.host.awake and each is not session]
        live += self._ending.values()
        if len(live) + self._opening < self.settings.max_sessions:
            return
        full = f"the server has {self.settings.max_sessions} sessions, the maximum ({variable('max_sessions')})"
        facts = {"setting": variable("max_sessions"), "limit": self.settings.max_sessions}
        if any(each.tenant == tenant for each in live):
            raise TooManyRequests(f"{full}; delete a session or wait until one expires", **facts)
        raise Unavailable(f"{full}, all of other tenants; retry later", **facts)

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
        """Create a session, optionally from an exported file (``image``).

        Raises:
            InvalidRequest: for a limit or a ttl above the server's, an unsupported durability, or an invalid file.
            LimitExceeded: when the data directory is full.
            TooManyRequests: when the server is full, and some of the sessions are the tenant's.
            Unavailable: when the server is stopping, or full of other tenants' sessions.
            DeviceError: when the server does not have the device.
        """
        settings = self.settings
        self.check_capacity(tenant)
        ttl = settings.session_ttl_s if ttl_s is None else ttl_s
        if ttl > max(settings.max_session_ttl_s, settings.session_ttl_s):
            raise _over("ttl_s", ttl, "max_session_ttl_s", settings.max_session_ttl_s)
        for name, requested in (limits or {}).items():
            allowed = getattr(settings, name)
            if allowed and requested > allowed:  # 0 is no limit
                raise _over(f"limits.{name}", requested, name, allowed)
        granted = settings.promised_durability() if durability is None else durability
        if granted != "none" and self.store is None:
            raise InvalidRequest(
                f"durability {granted!r} requires a data directory; this server has none ({variable('data_dir')})",
                setting=variable("data_dir"),
            )
        chosen = settings.default_device if device is None else device
        spec = SessionSpec(
            id="s_" + secrets.token_urlsafe(12), tenant=tenant, device="cuda:0" if chosen == "cuda" else chosen,
            default_dtype=default_dtype, limits=asdict(settings.engine_limits(limits)), ttl_s=ttl, seed=seed or 0,
            durability=granted,
        )  # fmt: skip
        self._opening += 1
        try:
            session = await self._open(spec, "new" if image is None else "adopt", image or b"")
        finally:
            self._opening -= 1
        if self.draining:  # since the check above
            await self._end(session)
            raise Unavailable("the server is stopping and accepts no new sessions")
        session.touch()  # the start of a worker process may have taken longer than the ttl
        self._sessions[spec.id] = session
        log.info("session created", session=spec.id, tenant=tenant, device=chosen, durability=granted)
        return session

    async def _open(self, spec: SessionSpec, how: How, image: bytes | memoryview) -> Session:
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
        """The tenant's session with this id. The call counts as use.

        Raises:
            NotFound: when the session does not exist or belongs to another tenant.
            SessionGone: when the tenant's session has ended.
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
        raise NotFound(f"session {session_id!r:.80} does not exist")

    def session_states(self) -> list[SessionState]:
        """The states of all sessions, for the metrics."""
        return [
            SessionState(
                "live" if each.host.awake else "dormant",
                each.spec.durability,
                each.device,
                each.host.pending,
                self.watch.memory(each.id),
            )
            for each in self._sessions.values()
        ]

    async def refresh(self) -> None:
        """Update the memory of loaded sessions for the metrics, without waiting for busy ones."""
        await self.watch.refresh({each.id: each.host for each in self._sessions.values() if each.host.awake})

    def of(self, tenant: str) -> list[Session]:
        """The tenant's sessions, dormant ones included, oldest first."""
        found = [each for each in self._sessions.values() if each.tenant == tenant and each.remaining > 0]
        return sorted(found, key=lambda each: each.spec.created)

    def granted(self, tenant: str) -> list[int]:
        """The memory limits of the tenant's sessions in bytes, including ended sessions that still compute."""
        ending = [each for each in self._ending.values() if each.tenant == tenant]
        return [each.limits.max_session_bytes for each in (*self.of(tenant), *ending)]

    def ending(self, tenant: str) -> int:
        """How many ended sessions of the tenant still compute."""
        return sum(each.tenant == tenant for each in self._ending.values())

    async def delete(self, session: Session) -> None:
        """End a session and release its memory and files."""
        self._forget(session, "was deleted")
        await self._end(session)

    async def _end(self, session: Session) -> None:
        # This cancels its frames. The session counts for its tenant until they stop or its worker is replaced.
        self._ending[session.id] = session
        try:
            over = await session.host.close(keep=False)
        except BaseException:
            self._ending.pop(session.id, None)
            raise
        if over:
            self._ending.pop(session.id, None)
        else:
            self._spawn(self._wait_until_closed(session))
        await self._remove(session)

    async def _wait_until_closed(self, session: Session) -> None:
        """Wait until an ended session stops computing."""
        try:
            while not await session.host.close(keep=False):
                pass  # close() waits
        finally:
            self._ending.pop(session.id, None)

    async def _remove(self, session: Session) -> None:
        if self.store is not None and session.folder is not None:
            try:
                await asyncio.to_thread(self.store.remove, session.id)
            except OSError as error:  # the next start of the server retries it
                log.error("cannot remove a session's files", session=session.id, reason=str(error))

    def _forget(self, session: Session, end: str) -> None:
        if self._sessions.pop(session.id, None) is None:
            return
        self._gone[session.id] = (session.tenant, end + " at " + timestamp(time.time()))
        if len(self._gone) > MAX_GONE:
            self._gone.popitem(last=False)
        self.metrics.session_ends.labels(ENDS[end]).inc()
        self._spawn(self.rendezvous.left(session.id, f"its session {end}"))
        log.info("session ended", session=session.id, reason=end)
        for stream in list(session.streams.values()):
            stream.end_with_session(f"session {session.id} {end}")
        if end == "expired":
            self.audit.note("session_expired", session=session.id, tenant=session.tenant, key="", address="")
            self._spawn(self._end(session))

    def _on_unavailable(self, session: Session, error: GradwireError) -> None:
        """End the streams of a session that is lost or unavailable."""
        if isinstance(error, SessionGone):
            self._forget(session, "was lost")
        for stream in list(session.streams.values()):
            stream.end_unavailable(error)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def cull(self) -> None:
        """Expire sessions, unload idle ones and watch the workers, forever."""
        workers = asyncio.create_task(self.pool.watch()) if self.pool is not None else None
        try:
            while True:
                await asyncio.sleep(CULL_EVERY_S)
                for session in list(self._sessions.values()):
                    self._maintain(session)
        finally:
            if workers is not None:
                workers.cancel()

    def _maintain(self, session: Session) -> None:
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
            self._spawn(session.host.park())

    def drain(self) -> None:
        """Refuse new sessions and frames, and close streams after their running frames."""
        self.draining = True
        for session in self._sessions.values():
            session.host.drain()
            for stream in list(session.streams.values()):
                stream.end_with_server()

    async def idle(self) -> None:
        """Wait until no frame is pending and no stream is open."""
        while True:
            busy = [each for each in self._sessions.values() if each.host.pending or each.streams]
            if not busy:
                return
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """Close all sessions at the server's stop. Sessions with a folder stay on disk."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            session.save_use()
        closing = [session.host.close(keep=session.folder is not None) for session in sessions]
        for session, outcome in zip(sessions, await asyncio.gather(*closing, return_exceptions=True)):
            if isinstance(outcome, BaseException):
                log.error("closing a session failed", session=session.id, exc_info=outcome)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_PATIENCE_S)
        if self.pool is not None:
            await self.pool.close()
        if self.store is not None:
            self.store.close()


def _over(name: str, value: float, setting: str, limit: float) -> InvalidRequest:
    return InvalidRequest(
        f"{name} is {value:,}; the limit is {limit:,} ({variable(setting)})",
        setting=variable(setting), limit=limit, value=value,
    )  # fmt: skip
