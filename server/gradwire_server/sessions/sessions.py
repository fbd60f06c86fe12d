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
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final

import structlog

from gradwire_engine.runtime.backends import available_devices
from gradwire_protocol.errors import GradwireError, InvalidRequest, NotFound, SessionGone, TooManyRequests, Unavailable

from ..auth.audit import AuditLog
from ..durable.journal import disk_refuses
from ..durable.shared.home import Home
from ..durable.shared.ownership import OwnershipLost, ownership_lost
from ..durable.shared.shared_store import SWEEP_EVERY_S, SharedStore
from ..durable.shared.tombstones import Tombstone
from ..durable.store import DamagedSession, Store, last_use
from ..groups.rendezvous import LocalRendezvous, Rendezvous
from ..hosting.hosts import Counting, Host
from ..hosting.inline_host import InlineHost
from ..hosting.runner import How
from ..observability.metrics import Metrics, SessionState
from ..observability.scraping import MemoryWatch
from ..observability.session_activity import SessionActivity
from ..settings.session_spec import Durability, SessionSpec
from ..settings.settings import Settings, variable
from ..settings.timestamps import timestamp
from ..workers.host import ProcessHost
from ..workers.pool import Death, WorkerPool
from . import moving
from .idempotency import Repeats
from .session import Session
from .session_supervisor import SessionSupervisor

CULL_EVERY_S: Final = 1.0
CLOSE_PATIENCE_S: Final = 5.0
USE_SAVED_EVERY_S: Final = 30.0
"""How often a session's last use is saved. Sessions with a short ttl save it more often."""

ENDS: Final = {"was deleted": "deleted", "expired": "expired", "was lost": "lost"}
"""The ends of sessions and their names in the metrics."""

MAX_GONE: Final = 10_000
DROP_AFTER_S: Final = 10.0
"""How long a session of the shared storage is remembered that this server does not own."""

log = structlog.get_logger("gradwire.sessions")


class SessionRegistry:
    """All sessions of the server, of all tenants.

    Args:
        store: the data directory or the shared storage, if any. The sessions of shared storage are not loaded at the
            start: :meth:`find` attaches them at their first use.
        audit: the audit log.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        store: Store | SharedStore | None = None,
        audit: AuditLog | None = None,
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
        self._departed: dict[str, float] = {}
        """Sessions that were handed over, until when this server refuses to take them again."""
        self.departed_s = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        """Tasks that close or unload sessions; the event loop holds only weak references to tasks."""
        self.store = store
        self.pool: WorkerPool | None = None
        if settings.session_host == "process":
            self.pool = WorkerPool(settings, metrics)
        self.rendezvous: Rendezvous = LocalRendezvous()
        self._alone = asyncio.Lock()
        self.on_lapse: Callable[[str], None] = lambda why: None
        """Called when this server lost all sessions of the shared storage, for good."""
        self._lost: OwnershipLost | None = None
        self._swept = time.monotonic()
        if isinstance(store, Store):
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

        home = self.store.home(spec.id) if folder is not None and isinstance(self.store, SharedStore) else None
        activity = SessionActivity(self.metrics)
        make, alone = self._host_factory(spec, home, activity), self._crash_lock(spec)
        host = SessionSupervisor(spec, folder, make, alone, admit, on_unavailable)
        session = Session(spec, host, activity, folder, home)
        session.host.recovered = lambda: self._recovered(spec)
        return session

    def _recovered(self, spec: SessionSpec) -> None:
        self.audit.note("session_recovered", session=spec.id, tenant=spec.tenant)
        self._spawn(self.rendezvous.recovered(spec.id))

    def _host_factory(
        self, spec: SessionSpec, home: Home | None, counts: Counting
    ) -> Callable[[Callable[[Any, Death], None]], Host]:
        pool = self.pool
        if pool is None:
            policy, spin_s = self.settings.journal_policy(), self.settings.spin_s
            return lambda _: InlineHost(spec.id, counts, policy, spin_s=spin_s, home=home)
        key = self._worker_key(spec)
        return lambda died: ProcessHost(spec.id, pool, key, counts, died)

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
        if self._lost is not None:
            raise self._lost
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
        name: str = "",
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
        for setting, requested in (limits or {}).items():
            allowed = getattr(settings, setting)
            if allowed and requested > allowed:  # 0 is no limit
                raise _over(f"limits.{setting}", requested, setting, allowed)
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
            durability=granted, name=name,
        )  # fmt: skip
        session = await self.add(spec, "new" if image is None else "adopt", image or b"")
        log.info("session created", session=spec.id, tenant=tenant, device=chosen, durability=granted)
        return session

    async def add(self, spec: SessionSpec, how: How, image: bytes | memoryview) -> Session:
        """Open a new session with these parameters, which were checked.

        Raises:
            LimitExceeded, TooManyRequests, Unavailable, DeviceError: as :meth:`create`.
        """
        self.check_capacity(spec.tenant)
        self._opening += 1
        try:
            session = await self._open(spec, how, image)
        finally:
            self._opening -= 1
        if self.draining:  # since the check above
            await self._end(session)
            raise Unavailable("the server is stopping and accepts no new sessions")
        session.touch()  # the start of a worker process may have taken longer than the ttl
        self._sessions[spec.id] = session
        return session

    async def _open(self, spec: SessionSpec, how: How, image: bytes | memoryview) -> Session:
        folder = None
        if self.store is not None and spec.durability != "none":
            await asyncio.to_thread(self.store.check_room)
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
            if session.moving:
                raise moving.refusal(session_id)
            if session.remaining > 0 or session.stored_elsewhere:
                session.touch()
                return session
            self._forget(session, "expired")
        owner, end = self._gone.get(session_id, ("", ""))
        if owner == tenant:
            raise SessionGone(f"session {session_id} {end}")
        self._check_departed(session_id)
        raise NotFound(f"session {session_id!r:.80} does not exist")

    def _check_departed(self, session_id: str) -> None:
        """Refuse a session that was just handed over: who asks for it here does not know it yet."""
        if session_id in self._departed and time.monotonic() < self._departed[session_id]:
            raise moving.refusal(session_id)

    def here(self, session_id: str) -> Session | None:
        """The session with this id, whoever has it, if this server does. The call does not count as use."""
        return self._sessions.get(session_id)

    async def take_in(self, spec: SessionSpec, image: bytes | memoryview) -> Session:
        """Go on with a session that another server had in its memory. Raises if that is impossible here."""
        self.check_capacity(spec.tenant)
        session = await self._open(spec, "go_on", image)
        self._sessions[spec.id] = session
        self._departed.pop(spec.id, None)
        self._recovered(spec)
        return session

    # Shared storage

    async def find(self, session_id: str, tenant: str) -> Session:
        """As :meth:`get`, and attaches the session if it is in shared storage and this server does not know it.

        Raises:
            NotFound: when the session does not exist or belongs to another tenant.
            SessionGone: when the tenant's session has ended.
            Unavailable: when the shared storage is unreachable.
        """
        if isinstance(self.store, SharedStore) and session_id not in self._sessions and session_id not in self._gone:
            self._check_departed(session_id)
            await self.attach(session_id, tenant)
        return self.get(session_id, tenant)

    async def attach(self, session_id: str, tenant: str | None = None) -> Session:
        """Make a session of the shared storage usable here. Its first use claims it and takes it over.

        Args:
            tenant: the owner that it must have.

        Raises:
            NotFound: when the session does not exist, or another tenant has it.
            SessionGone: when the session was deleted.
            JournalDamaged: when the storage's record of the session is unreadable.
            Unavailable: when this server has no shared storage, has lost it, or does not reach it.
        """
        store = self.store
        if not isinstance(store, SharedStore):
            raise Unavailable(f"this server has no shared storage ({variable('store')})")
        if session_id not in self._sessions:
            if self._lost is not None:
                raise self._lost
            try:
                spec = await asyncio.to_thread(store.find, session_id)
            except OSError as error:
                raise error if isinstance(error, Unavailable) else disk_refuses(error) from None
            if spec is None or (tenant is not None and spec.tenant != tenant):
                raise NotFound(f"session {session_id!r:.80} does not exist")
            if isinstance(spec, Tombstone):
                raise SessionGone(f"session {session_id} was deleted at {timestamp(spec.at)}")
            if session_id not in self._sessions:
                spec = spec.with_plans(self.settings.engine_limits().plans)
                self._sessions[session_id] = self._session(spec, store.folder(session_id))
        return self._sessions[session_id]

    async def hand_over(self, session_id: str) -> bool:
        """Release a session of the shared storage for another server (:func:`.moving.hand_over`)."""
        return await moving.hand_over(self, session_id)

    def departed(self, session: Session) -> None:
        """Forget a session that another server has from now on, and have its clients reconnect."""
        now = time.monotonic()
        self._departed = {name: until for name, until in self._departed.items() if until > now}
        self._departed[session.id] = now + self.departed_s
        self._drop(session)
        for stream in list(session.streams.values()):
            stream.end_with_server()

    def _drop(self, session: Session) -> None:
        """Forget a session that lives on elsewhere."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self.rendezvous.gone(session.id)
            if isinstance(self.store, SharedStore):
                self.store.forget(session.id)

    @property
    def lost(self) -> bool:
        """Whether this server has lost all sessions of the shared storage."""
        return self._lost is not None

    def _lapse(self, why: str) -> None:
        """Drop all sessions of the shared storage without touching their files: they may be another server's now."""
        if self._lost is not None:
            return
        self._lost = error = ownership_lost(why)
        for session in [each for each in self._sessions.values() if each.home is not None]:
            self._drop(session)
            for stream in list(session.streams.values()):
                stream.end_unavailable(error)
            session.host.fail_permanently(error)
            self._spawn(session.host.close(keep=True))
        self.on_lapse(why)

    def _maintain_shared(self, session: Session, home: Home) -> None:
        """Unload an idle session of the shared storage, and save its last use."""
        now, park = time.monotonic(), self.settings.park_after_s
        if session.stored_elsewhere:
            if now - session.used > DROP_AFTER_S:
                self._drop(session)
        elif park and not session.in_use and now - session.used > park:
            self._spawn(self._park_shared(session))
        elif now - session.saved > max(USE_SAVED_EVERY_S, session.spec.ttl_s / 4) and session.used > session.saved:
            session.saved = session.used
            self._spawn(self._in_thread(lambda: home.note_use(time.time())))

    async def _park_shared(self, session: Session) -> None:
        if await session.host.park() and session.stored_elsewhere:
            self._drop(session)

    async def _in_thread(self, work: Callable[[], Any]) -> None:
        """Run background work on the shared storage."""
        try:
            await asyncio.to_thread(work)
        except (OSError, GradwireError) as error:
            log.warning("the shared storage fails", reason=str(error))

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
        """Update the memory of loaded sessions for metrics and activity, without waiting for busy ones."""
        awake = [each for each in self._sessions.values() if each.host.awake]
        await self.watch.refresh(
            {each.id: each.host for each in awake}, {each.id: each.activity.frames for each in awake}
        )

    def of(self, tenant: str) -> list[Session]:
        """The tenant's sessions, dormant ones included, oldest first."""
        found = [each for each in self._sessions.values() if each.tenant == tenant and each.remaining > 0]
        return sorted(found, key=lambda each: each.spec.created)

    def all(self) -> list[Session]:
        """The sessions of all tenants, dormant ones included."""
        return [each for each in self._sessions.values() if each.remaining > 0]

    def ends(self, most: int = 200) -> dict[str, str]:
        """The sessions that ended last, and how."""
        return {each: self._gone[each][1] for each in list(islice(reversed(self._gone), most))}

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
            except OSError as error:  # the next start of the server, or a sweep, retries it
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
        if isinstance(self.store, SharedStore):
            loop = asyncio.get_running_loop()

            def on_lapse(why: str) -> None:
                loop.call_soon_threadsafe(self._lapse, why)

            self.store.on_lapse(on_lapse)
        workers = asyncio.create_task(self.pool.watch()) if self.pool is not None else None
        try:
            while True:
                await asyncio.sleep(CULL_EVERY_S)
                for session in list(self._sessions.values()):
                    self._maintain(session)
                if isinstance(self.store, SharedStore) and time.monotonic() - self._swept > SWEEP_EVERY_S / 2:
                    self._swept = time.monotonic()
                    self._spawn(self._in_thread(self.store.sweep))
        finally:
            if workers is not None:
                workers.cancel()

    def _maintain(self, session: Session) -> None:
        if session.remaining <= 0 and not session.stored_elsewhere:
            self._forget(session, "expired")
            return
        now = time.monotonic()
        if session.folder is None or self.draining or session.moving:
            return
        if session.home is not None:
            self._maintain_shared(session, session.home)
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
            await asyncio.to_thread(self.store.close)


def _over(name: str, value: float, setting: str, limit: float) -> InvalidRequest:
    return InvalidRequest(
        f"{name} is {value:,}; the limit is {limit:,} ({variable(setting)})",
        setting=variable(setting), limit=limit, value=value,
    )  # fmt: skip
