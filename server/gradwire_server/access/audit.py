"""The audit log: who did what, when, to which session, how much of it, and what came of it.

An entry has the fields below and no others, and none of them can hold what a client wrote freely: there are no names,
no values, no keys. It is one line of JSON in a file of its own, or, without one, a line of the server's log under the
name ``gradwire.audit``.
"""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from ..settings import Settings
from ..timestamps import timestamp
from .caller import Caller

OLDER_KEPT: Final = 8
SELDOM_S: Final = 60.0
SELDOM_KEPT: Final = 10_000

ACTIONS: Final[dict[str, str]] = {
    "key_created": "a key was made",
    "key_revoked": "a key was revoked",
    "key_expired": "a key expired",
    "key_ended": "the streams of a key were ended, since it was revoked or has expired",
    "key_refused": "a key was presented that is not known, or opens nothing any more",
    "address_turned_away": "an address has tried too many wrong keys",
    "scope_refused": "a key lacks the scope for what it asked",
    "origin_refused": "a web page of another origin wanted to open a stream",
    "ticket_issued": "a ticket was given out",
    "ticket_used": "a ticket opened a stream",
    "ticket_refused": "a ticket opened nothing",
    "limit_hit": "something was refused because of a limit",
    "session_created": "a session began",
    "session_deleted": "a session was deleted",
    "session_expired": "a session expired",
    "session_recovered": "a session was recovered from disk",
    "session_exported": "a session was exported",
    "session_imported": "a session was imported",
    "stream_opened": "a stream was opened",
    "stream_closed": "a stream ended, with what it carried",
}

caller: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
"""Who the running request or stream belongs to: whatever it leads to is on its account."""

log = structlog.get_logger("gradwire.audit")


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A line of the log.

    Attributes:
        at: the time, RFC 3339 in UTC.
        action: one of :data:`ACTIONS`.
        outcome: ``ok``, or the code of the error.
        key, tenant, address, request_id: who did it; without a key, the server itself or somebody unknown.
        session: which session it was done to; the tenant is then the session's.
        about: the key that it was done to.
        setting: the limit that was hit.
        frames, ops, bytes_in, bytes_out, seconds: how much.
        code: with which a stream was closed.
    """

    at: str
    action: str
    outcome: str
    key: str = ""
    tenant: str = ""
    address: str = ""
    request_id: str = ""
    session: str = ""
    about: str = ""
    setting: str = ""
    frames: int = 0
    ops: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0
    code: int = 0


class _File(RotatingFileHandler):
    """The log's file: begun anew when it is large, for the server's user only."""

    def __init__(self, path: Path, most: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, maxBytes=most, backupCount=OLDER_KEPT, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        def private(name: str, flags: int) -> int:
            # A pipe that nobody reads is an error, and not waited for.
            descriptor = os.open(name, flags | os.O_NONBLOCK, 0o600)
            os.set_blocking(descriptor, True)
            return descriptor

        return open(self.baseFilename, "a", encoding="utf-8", opener=private)

    def handleError(self, record: logging.LogRecord) -> None:
        # A full disk costs lines of the log, not the service: the server's own log has them instead.
        log.error("the audit log cannot be written", entry=record.msg)


class AuditLog:
    """Where entries go.

    Args:
        path: the file, or ``None`` for the server's log.

    Raises:
        OSError: when the file cannot be written.
    """

    def __init__(self, path: Path | None, most: int = 1 << 26) -> None:
        self.path = path
        self._file = None if path is None else _File(path, most)
        self._seldom: OrderedDict[tuple[str, ...], float] = OrderedDict()

    @classmethod
    def configured(cls, settings: Settings) -> AuditLog:
        """The log of a server with these settings."""
        path = settings.audit_log
        if path is None and settings.data_dir is not None:
            path = settings.data_dir / "audit.log"
        return cls(path, settings.max_audit_bytes)

    def note(self, action: str, outcome: str = "ok", *, seldom: tuple[str, ...] | None = None, **facts: Any) -> None:
        """Write an entry, on the account of the running request's caller.

        Args:
            action: one of :data:`ACTIONS`.
            outcome: the code of the error, where it is one.
            seldom: what makes this one of many alike: of those, one a minute is written.
            facts: further fields of :class:`Entry`.
        """
        assert action in ACTIONS, action
        if seldom is not None and not self._due((action, *seldom)):
            return
        who = caller.get()
        if who is not None:
            facts = {
                "key": who.key.id, "tenant": who.key.tenant, "address": who.address, "request_id": who.request_id,
            } | facts  # fmt: skip
        entry = Entry(at=timestamp(time.time()), action=action, outcome=outcome, **facts)
        if self._file is None:
            log.info(action, **{k: v for k, v in msgspec.to_builtins(entry).items() if k not in ("at", "action")})
        else:
            line = msgspec.json.encode(entry).decode()
            self._file.handle(logging.makeLogRecord({"msg": line, "levelno": logging.INFO, "levelname": "INFO"}))

    def _due(self, alike: tuple[str, ...]) -> bool:
        now = time.monotonic()
        if now - self._seldom.get(alike, -SELDOM_S) < SELDOM_S:
            return False
        self._seldom[alike] = now
        self._seldom.move_to_end(alike)
        if len(self._seldom) > SELDOM_KEPT:
            self._seldom.popitem(last=False)
        return True

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


@contextmanager
def on_account_of(who: Caller) -> Iterator[None]:
    """Whatever is noted inside is on this caller's account."""
    token = caller.set(who)
    try:
        yield
    finally:
        caller.reset(token)
