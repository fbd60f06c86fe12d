"""The Directory's table of sessions, with the quotas of the whole fleet. Without Ray."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from gradwire_protocol.errors import InvalidRequest, NotFound, SessionGone, TooManyRequests, Unavailable

from ..auth.keys import Key
from ..auth.quotas import Quotas
from ..settings.session_spec import SessionSpec
from ..settings.settings import Settings, variable
from ..settings.timestamps import timestamp
from .resources import Resources

MAX_GONE: Final = 100_000
MAX_REPEATS: Final = 100_000
RESERVED_S: Final = 120.0
"""After this time a gateway that has reported neither success nor failure is taken to be dead."""

COUNTED: Final = {"gpus": "GPUs", "cpus": "CPUs", "memory": "bytes of memory"}
"""What has a quota for each key: the fields of :class:`Resources` that a setting ``max_key_...`` bounds."""

SWEEP_EVERY_S: Final = 30.0
MISSED_REPORTS: Final = 2
"""A report may have left the worker before a session that was created meanwhile."""


@dataclass(eq=False)
class FleetSession:
    """A session somewhere in the fleet.

    Attributes:
        worker: the id of its worker; ``None`` when it is dormant in the shared storage.
        resources: what its worker needs.
        summary: its public description, as of its worker's last report.
        missed: consecutive reports of its worker without it.
        expires: Unix time, while it is dormant.
        durable: it survives its worker.
        stale: the summary is not of its worker.
        also: another worker that reports it: it was moving there when the Directory was restarted.
    """

    id: str
    tenant: str
    worker: str | None
    resources: Resources
    summary: dict[str, Any]
    missed: int = 0
    expires: float = 0.0
    stale: bool = False
    also: str = ""

    @property
    def durable(self) -> bool:
        return bool(self.summary.get("durability", "none") != "none")

    @property
    def granted(self) -> int:
        """Its memory limit in bytes."""
        return int(self.summary.get("limits", {}).get("max_session_bytes", 0))


@dataclass(eq=False)
class Reservation:
    """A session under construction. It counts for its tenant."""

    tenant: str
    resources: Resources
    held: ExitStack
    repeat: tuple[str, str] | None
    made: float = field(default_factory=time.monotonic)
    placed: Callable[[], None] | None = None
    """Ends the reservation at the worker."""

    def end(self) -> None:
        """Free what is reserved."""
        self.held.close()
        if self.placed is not None:
            self.placed()


@dataclass(eq=False)
class _Repeat:
    request: str
    session: str = ""


class FleetSessions:
    """All sessions of the fleet."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.quotas = Quotas(settings)
        self.sessions: dict[str, FleetSession] = {}
        self.on_end: Callable[[str, str], None] = lambda session, end: None
        """Called with a session that has ended, and how."""
        self._by_tenant: dict[str, dict[str, FleetSession]] = {}
        self._by_worker: dict[str, dict[str, FleetSession]] = {}
        self._reservations: dict[str, Reservation] = {}
        self._swept = time.monotonic()
        self._gone: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._repeats: OrderedDict[tuple[str, str], _Repeat] = OrderedDict()

    # Creation

    def repeated(self, tenant: str, repeat: str, request: str) -> str | None:
        """The session that an earlier request with this Idempotency-Key created; ``None`` for a new key.

        Raises:
            InvalidRequest: when the key was used with a different request.
            Unavailable: when the earlier request is still being answered.
        """
        known = self._repeats.get((tenant, repeat))
        if known is None:
            return None
        if known.request != request:
            raise InvalidRequest("the Idempotency-Key was used with a different request; use a new key")
        if not known.session:
            raise Unavailable("the first request with this Idempotency-Key is still in progress; retry")
        return known.session if known.session in self.sessions else None

    def reserve(
        self, key: Key, limits: dict[str, int] | None, resources: Resources, repeat: str, request: str
    ) -> tuple[str, dict[str, int] | None]:
        """Reserve quota for a session. Returns the reservation and the limits of the session.

        Raises:
            TooManyRequests: when a quota is exceeded.
            Unavailable: when the fleet is full of other tenants' sessions.
        """
        self.sweep()
        self._check_room(key.tenant)
        self._check_machines(key, resources)
        held = ExitStack()
        granted = held.enter_context(self.quotas.reserve(key, self.granted(key.tenant), limits))
        name = secrets.token_urlsafe(12)
        self._reservations[name] = Reservation(key.tenant, resources, held, (key.tenant, repeat) if repeat else None)
        if repeat:
            self._repeats[(key.tenant, repeat)] = _Repeat(request)
            if len(self._repeats) > MAX_REPEATS:
                self._repeats.popitem(last=False)
        return name, granted

    def _check_room(self, tenant: str) -> None:
        most = self.settings.max_sessions
        if len(self.sessions) + len(self._reservations) < most:
            return
        full = f"the fleet has {most} sessions, the maximum ({variable('max_sessions')})"
        facts = {"setting": variable("max_sessions"), "limit": most}
        if tenant in self._by_tenant:
            raise TooManyRequests(f"{full}; delete a session or wait until one expires", **facts)
        raise Unavailable(f"{full}, all of other tenants; retry later", **facts)

    def _check_machines(self, key: Key, wanted: Resources) -> None:
        """Check the quotas of what a key's sessions take of machines."""
        mine: list[FleetSession | Reservation] = list(self._by_tenant.get(key.tenant, {}).values())
        mine += [each for each in self._reservations.values() if each.tenant == key.tenant]
        for kind, name in COUNTED.items():
            setting, more = f"max_key_{kind}", float(getattr(wanted, kind))
            most = key.quota(setting, self.settings)
            if not most or not more:
                continue
            has = sum(float(getattr(each.resources, kind)) for each in mine)
            if has + more > most + 1e-6:
                raise TooManyRequests(
                    f"the new session asks for {_shown(more)} {name}, the sessions of this key have asked for "
                    f"{_shown(has)}, and the limit of their sum is {most:,} ({variable(setting)}); delete a session or "
                    "ask for less",
                    setting=variable(setting), limit=most, value=has + more,
                )  # fmt: skip

    def made(self, reservation: str, worker: str, summary: dict[str, Any]) -> FleetSession | None:
        """Replace a reservation by the session that was created on a worker, and return it."""
        found = self._reservations.pop(reservation, None)
        session = str(summary["id"])
        if found is None:  # the reservation of a Directory that died, or one that took too long; the worker reports it
            return None
        self._add(FleetSession(session, found.tenant, None, found.resources, summary), worker)
        if found.repeat is not None and (known := self._repeats.get(found.repeat)) is not None:
            known.session = session
        found.end()
        return self.sessions[session]

    def on_worker(self, reservation: str, worker: str, end: Callable[[], None]) -> None:
        """A reservation has got a worker. ``end`` frees its place there."""
        if reservation in self._reservations:
            self._reservations[reservation].placed = end
        else:  # the placement took too long
            end()

    def failed(self, reservation: str) -> None:
        """Free a reservation."""
        found = self._reservations.pop(reservation, None)
        if found is not None:
            found.end()
            if found.repeat is not None:
                self._repeats.pop(found.repeat, None)

    def sweep(self) -> None:
        """Free the reservations of gateways that died."""
        now = time.monotonic()
        for name, each in list(self._reservations.items()):
            if now - each.made > RESERVED_S:
                self.failed(name)
        if now - self._swept > SWEEP_EVERY_S:
            self._swept = now
            for session in [each for each in self.sessions.values() if each.worker is None]:
                if session.expires < time.time():
                    self.forget(session.id, "expired")

    # Look-up

    def get(self, session: str, tenant: str) -> FleetSession:
        """The tenant's session with this id.

        Raises:
            NotFound: when the session does not exist or belongs to another tenant.
            SessionGone: when the tenant's session has ended.
        """
        found = self.sessions.get(session)
        if found is not None and found.tenant == tenant:
            return found
        owner, end = self._gone.get(session, ("", ""))
        if owner == tenant:
            raise SessionGone(f"session {session} {end}")
        raise NotFound(f"session {session!r:.80} does not exist")

    def knows(self, session: str) -> bool:
        """Whether the session exists or has ended, as far as the table knows."""
        return session in self.sessions or session in self._gone

    def of(self, tenant: str) -> list[FleetSession]:
        """The tenant's sessions, oldest first."""
        return sorted(
            self._by_tenant.get(tenant, {}).values(), key=lambda each: str(each.summary.get("created_at", ""))
        )

    def granted(self, tenant: str) -> list[int]:
        """The memory limits of the tenant's sessions."""
        return [each.granted for each in self._by_tenant.get(tenant, {}).values()]

    def on(self, worker: str) -> list[FleetSession]:
        """The sessions of a worker."""
        return list(self._by_worker.get(worker, {}).values())

    def count(self, worker: str) -> int:
        """How many sessions a worker has."""
        return len(self._by_worker.get(worker, ()))

    # Changes

    def _add(self, session: FleetSession, worker: str | None) -> None:
        self.sessions[session.id] = session
        self._by_tenant.setdefault(session.tenant, {})[session.id] = session
        self.move(session, worker)

    def move(self, session: FleetSession, worker: str | None) -> None:
        """Record where a session is now."""
        if session.worker is not None and (former := self._by_worker.get(session.worker)) is not None:
            former.pop(session.id, None)
            if not former:
                del self._by_worker[session.worker]
        session.worker, session.missed, session.also = worker, 0, ""
        if worker is not None:
            self._by_worker.setdefault(worker, {})[session.id] = session

    def sleep(self, session: FleetSession) -> None:
        """A session is in the shared storage only."""
        self.move(session, None)
        session.stale = True
        session.expires = time.time() + float(session.summary.get("ttl_s", 0.0))
        session.summary = session.summary | {
            "state": "dormant", "activity": "idle", "streams": 0, "expires_at": timestamp(session.expires)
        }  # fmt: skip

    def found(self, spec: SessionSpec, resources: Resources) -> FleetSession:
        """Take in a session that was found in the shared storage."""
        known = self.sessions.get(spec.id)
        if known is not None:
            return known
        summary = {
            "id": spec.id, "device": spec.device, "default_dtype": spec.default_dtype, "ttl_s": spec.ttl_s,
            "durability": spec.durability, "created_at": timestamp(spec.created),
            "limits": {name: most for name, most in spec.limits.items() if name != "plans"},
        }  # fmt: skip
        session = FleetSession(spec.id, spec.tenant, None, resources, summary)
        self._add(session, None)
        self.sleep(session)
        return session

    def forget(self, session: str, end: str, at: bool = True) -> None:
        """Record the end of a session. ``at``: add the time."""
        found = self.sessions.pop(session, None)
        if found is None:
            return
        self.move(found, None)
        of_tenant = self._by_tenant[found.tenant]
        del of_tenant[session]
        if not of_tenant:
            del self._by_tenant[found.tenant]
        self._gone[session] = (found.tenant, f"{end} at {timestamp(time.time())}" if at else end)
        if len(self._gone) > MAX_GONE:
            self._gone.popitem(last=False)
        self.on_end(session, end)

    def reported(
        self,
        worker: str,
        resources: Resources,
        rows: list[dict[str, Any]],
        gone: Mapping[str, str] = MappingProxyType({}),
        here: list[str] | None = None,
    ) -> bool:
        """Bring the table up to date with a worker's report. Returns whether facts of some session are missing.

        Args:
            rows: sessions, all or those that changed.
            gone: sessions that ended there, and how.
            here: the ids of all sessions there; default: those of ``rows``.
        """
        reported = {str(row.get("id")): row for row in rows}
        present = reported.keys() if here is None else set(here)
        for each in self.on(worker):
            if each.id in gone:
                self.forget(each.id, gone[each.id], at=False)
            elif each.id in present:
                each.missed = 0
            else:
                each.missed += 1
                if each.missed < MISSED_REPORTS:
                    continue
                if each.durable:  # the worker has unloaded it
                    self.sleep(each)
                elif each.also:
                    self.move(each, each.also)
                    each.stale = True
                else:
                    self.forget(each.id, "expired or was deleted")
        for name in present:
            if (found := self.sessions.get(name)) is not None and found.worker not in (None, worker):
                found.also = worker
        for session, row in reported.items():
            found = self.sessions.get(session)
            tenant = str(row.pop("tenant", ""))
            if found is None:
                if session not in self._gone and tenant:
                    self._add(FleetSession(session, tenant, None, resources, row), worker)
            elif found.worker == worker:
                found.summary, found.missed, found.stale = row, 0, False
        return any(self._lacks(each, worker) for each in present if each not in reported)

    def _lacks(self, session: str, worker: str) -> bool:
        found = self.sessions.get(session)
        if found is None:
            return session not in self._gone
        return found.worker == worker and found.stale

    def lost(self, worker: str, reason: str) -> list[FleetSession]:
        """Record the end of a worker. Returns its sessions that live on in the shared storage."""
        kept = []
        for each in self.on(worker):
            if each.durable:
                self.sleep(each)
                kept.append(each)
            else:
                self.forget(each.id, f"was lost with its worker ({reason})")
        return kept


def _shown(amount: float) -> str:
    return f"{int(amount):,}" if amount == int(amount) else f"{amount:g}"
