"""One reading of what the server does, as ``GET /v1/activity``, its stream and the console show it.

A reading only sums up what the server knows anyway. It asks loaded sessions for their memory, if they ran frames since
the last time, and waits for busy ones 0.1 s at most; dormant sessions stay dormant. Readers of the same half second
share a reading.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import msgspec

from gradwire_engine.runtime.devices import describe_devices
from gradwire_protocol.errors import NotFound

from ..auth import AccessControl, Key
from ..auth.scopes import ADMIN
from ..hosting import compute_semaphore
from ..observability.session_log import RECENT
from ..sessions.session import Session
from ..sessions.sessions import SessionRegistry
from ..settings.settings import Settings
from ..settings.timestamps import timestamp
from ..settings.version import VERSION

SHARED_S: Final = 0.5
"""How long a reading is shared."""

DEVICES_S: Final = 5.0
"""How long the description of the devices is."""

ROWS_AT_ONCE: Final = 50
"""Rows made in one turn of the event loop: about a millisecond."""

MEMORY: Final = ("live_bytes", "saved_bytes", "pooled_bytes", "peak_bytes", "limit_bytes")


class Activity:
    """Reads what the server does."""

    def __init__(self, settings: Settings, access: AccessControl, registry: SessionRegistry) -> None:
        self.settings = settings
        self.access = access
        self.registry = registry
        self._started = time.monotonic()
        self._lock = asyncio.Lock()
        self._rows: list[tuple[Session, dict[str, Any]]] = []
        self._read_at = -SHARED_S
        self._devices: list[dict[str, Any]] = []
        self._devices_at = -DEVICES_S

    async def read(self, key: Key, session: str | None = None) -> dict[str, Any]:
        """One reading for a key: its tenant's sessions, or all for a key with the scope ``admin``.

        Args:
            session: the session of the tenant to describe in detail.

        Raises:
            NotFound: when the tenant has no such session.
        """
        everything = key.may(ADMIN)
        async with self._lock:
            now = time.monotonic()
            if now - self._read_at > SHARED_S:
                await self.registry.refresh()
                self._rows = await self._read_rows(now)
                self._read_at = now
            if now - self._devices_at > DEVICES_S:
                self._devices, self._devices_at = await asyncio.to_thread(describe_devices), now
        rows = [row for each, row in self._rows if everything or each.tenant == key.tenant]
        if everything:
            rows = [row if row["tenant"] == key.tenant else _without_text(row) for row in rows]
        found: dict[str, Any] = {
            "at": timestamp(time.time()),
            "version": VERSION,
            "uptime_s": round(time.monotonic() - self._started, 1),
            "session_host": self.settings.session_host,
            "draining": self.registry.draining,
            "caller": {
                "key": key.id, "name": key.name, "tenant": key.tenant, "scopes": list(key.scopes), "all": everything,
            },
            "totals": _totals(rows),
            "queue": self._queue(rows),
            "devices": self._devices,
            "workers": self._workers(rows, everything),
            "quotas": self._quotas(key, everything),
            "sessions": rows,
        }  # fmt: skip
        if session is not None:
            found["detail"] = self._detail(key, session)
        return found

    async def encoded(self, key: Key, session: str | None = None) -> bytes:
        """:meth:`read` as JSON."""
        return msgspec.json.encode(await self.read(key, session))

    async def _read_rows(self, now: float) -> list[tuple[Session, dict[str, Any]]]:
        """A row for each session, oldest first. Frames get their turn after every few rows."""
        found = []
        for count, each in enumerate(sorted(self.registry.all(), key=lambda session: session.spec.created), 1):
            found.append((each, self._row(each, now)))
            if count % ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    def _row(self, session: Session, now: float) -> dict[str, Any]:
        spec, activity, host = session.spec, session.activity, session.host
        rates = activity.rates()
        memory = self.registry.watch.memory(session.id) or {}
        state = session.state
        if state == "running":
            state = "busy" if host.pending or (activity.frames and now - activity.last < 1) else "idle"
        return {
            "id": session.id,
            "name": spec.name,
            "tenant": session.tenant,
            "device": spec.device,
            "durability": spec.durability,
            "state": state,
            "created_at": timestamp(spec.created),
            "age_s": round(time.time() - spec.created, 1),
            "idle_s": 0.0 if host.pending else round(max(0.0, now - max(session.used, activity.last)), 1),
            "expires_in_s": round(session.remaining, 1),
            "streams": len(session.streams),
            "pending_frames": host.pending,
            "memory": {name: memory.get(name, 0) for name in MEMORY} if memory else None,
            "frames_per_second": round(rates.frames, 2),
            "ops_per_second": round(rates.ops, 1),
            "busy": round(rates.busy, 3),
            "frames": activity.frames,
            "ops": activity.ops,
            "planned_frames": activity.planned,
            "errors": activity.errors,
            "last_error": activity.describe_error(),
        }

    def _queue(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The queue for computing. Workers have their own, so the server knows only how many sessions have frames."""
        pending = sum(row["pending_frames"] for row in rows)
        if self.settings.session_host != "inline":
            computing = sum(row["state"] == "busy" for row in rows)
            return {"slots": None, "computing": computing, "waiting": None, "pending_frames": pending}
        shared = compute_semaphore.SHARED
        return {
            "slots": shared.most, "computing": shared.running, "waiting": shared.waiting, "pending_frames": pending
        }  # fmt: skip

    def _workers(self, rows: list[dict[str, Any]], everything: bool) -> list[dict[str, Any]]:
        """The worker processes that hold sessions of the caller; for an administrator, all."""
        if self.registry.pool is None:
            return []
        mine = {row["id"] for row in rows}
        found = []
        for worker in self.registry.pool.describe():
            held = [name for name in worker.pop("sessions") if name in mine]
            if everything or held:
                found.append(worker | {"sessions": len(held)})
        return found

    def _quotas(self, key: Key, everything: bool) -> list[dict[str, Any]]:
        """Use and limit of each limited quota, the fullest first: of the caller's key, for an administrator also those
        of all other keys that are in use."""
        keys = [key]
        if everything:
            keys += [each for each in self.access.keys.all() if not each.end() and each.id != key.id]
        granted: dict[str, list[int]] = {}
        for each, _ in self._rows:
            granted.setdefault(each.tenant, []).append(each.limits.max_session_bytes)
        found = []
        for each_key in keys:
            held = granted.get(each_key.tenant, [])
            used = {"max_key_sessions": float(len(held)), "max_key_bytes": float(sum(held))}
            limits = {name: (use, each_key.quota(name, self.settings)) for name, use in used.items()}
            for name, (use, limit) in (self.access.rates.recent(each_key) | limits).items():
                if limit and (use or each_key.id == key.id):
                    found.append({
                        "key": each_key.id, "name": each_key.name, "tenant": each_key.tenant, "quota": name,
                        "used": round(use, 1), "limit": limit,
                    })  # fmt: skip
        return sorted(found, key=lambda row: -row["used"] / row["limit"])

    def _detail(self, key: Key, session_id: str) -> dict[str, Any]:
        """The last frames and log lines of the tenant's session."""
        session = self.registry.here(session_id)
        if session is None or session.tenant != key.tenant:
            raise NotFound(f"session {session_id!r:.80} does not exist")
        return {"id": session.id, "frames": session.activity.describe_recent(), "log": RECENT.of(session.id)}


def _without_text(row: dict[str, Any]) -> dict[str, Any]:
    """A row of another tenant's session, without text of its program: its name, and that of its last error."""
    error = row["last_error"]
    hidden = row | {"name": ""}
    return hidden if error is None else hidden | {"last_error": {k: v for k, v in error.items() if k != "detail"}}


def _totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    memory = [row["memory"] for row in rows if row["memory"] is not None]
    return {
        "sessions": len(rows),
        "loaded": sum(row["state"] in ("busy", "idle") for row in rows),
        "busy": sum(row["state"] == "busy" for row in rows),
        "streams": sum(row["streams"] for row in rows),
        "frames_per_second": round(sum(row["frames_per_second"] for row in rows), 2),
        "ops_per_second": round(sum(row["ops_per_second"] for row in rows), 1),
        "live_bytes": sum(each["live_bytes"] for each in memory),
        "saved_bytes": sum(each["saved_bytes"] for each in memory),
        "pooled_bytes": max((each["pooled_bytes"] for each in memory), default=0),
        "errors": sum(row["errors"] for row in rows),
    }
