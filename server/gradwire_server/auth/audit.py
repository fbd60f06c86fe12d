"""The audit log: who did what to which session, when, how much, and with which outcome.

An entry has only the fields below. None holds free text of a client: no names, no values, no keys. An entry is one line
of JSON in the audit file. Without a file, it goes to the server's log under the name ``gradwire.audit``.
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

from ..settings.settings import Settings
from ..settings.timestamps import timestamp
from .caller import Caller

OLD_FILES: Final = 8
THROTTLE_S: Final = 60.0
MAX_THROTTLED: Final = 10_000

ACTIONS: Final[dict[str, str]] = {
    "key_created": "a key was created",
    "key_revoked": "a key was revoked",
    "key_expired": "a key expired",
    "key_ended": "the streams of a revoked or expired key were closed",
    "key_refused": "an unknown, revoked or expired key was used",
    "address_turned_away": "an address was blocked after too many wrong keys",
    "scope_refused": "a key lacked the scope of a request",
    "origin_refused": "a web page of another origin tried to open a stream, or to use the console's cookie",
    "ticket_issued": "a ticket was issued",
    "ticket_used": "a ticket opened a stream",
    "ticket_refused": "an invalid ticket was used",
    "signed_in": "a key signed in to the console",
    "signed_out": "a sign-in of the console was ended",
    "pass_refused": "a worker of a fleet refused a pass",
    "node_drained": "the sessions of a node of a fleet were moved away",
    "limit_hit": "a limit refused a request or a frame",
    "session_created": "a session was created",
    "session_deleted": "a session was deleted",
    "session_expired": "a session expired",
    "session_recovered": "a session was recovered from disk",
    "session_exported": "a session was exported",
    "session_forked": "a session was forked",
    "session_rewound": "a session was rewound to a checkpoint",
    "checkpoint_created": "a checkpoint of a session was kept",
    "checkpoint_deleted": "a checkpoint of a session was deleted",
    "session_imported": "a session was imported",
    "stream_opened": "a stream was opened",
    "stream_closed": "a stream was closed; the entry has its traffic",
}

caller: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
"""The caller of the current request or stream. Entries name it by default."""

log = structlog.get_logger("gradwire.audit")


class AuditEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An entry of the log.

    Attributes:
        at: the time, RFC 3339 in UTC.
        action: one of :data:`ACTIONS`.
        outcome: ``ok``, or an error code.
        key, tenant, address, request_id: the caller; without a key, the server itself or an unknown caller.
        session: the session concerned; ``tenant`` is then its owner.
        about: the key, the checkpoint or the forked session concerned.
        setting: the exceeded limit.
        frames, ops, bytes_in, bytes_out, seconds: the amount.
        code: the close code of a stream.
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
    """The log's file: rotated by size, readable for the server's user only."""

    def __init__(self, path: Path, most: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, maxBytes=most, backupCount=OLD_FILES, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        def private(name: str, flags: int) -> int:
            # Fail on a pipe without a reader instead of blocking.
            descriptor = os.open(name, flags | os.O_NONBLOCK, 0o600)
            os.set_blocking(descriptor, True)
            return descriptor

        return open(self.baseFilename, "a", encoding="utf-8", opener=private)

    def handleError(self, record: logging.LogRecord) -> None:
        # A full disk must not stop the service: the server's own log gets the entry.
        log.error("cannot write the audit log", entry=record.msg)


class AuditLog:
    """Writes entries.

    Args:
        path: the file, or ``None`` for the server's log.

    Raises:
        OSError: when the file is not writable.
    """

    def __init__(self, path: Path | None, most: int = 1 << 26) -> None:
        self.path = path
        self._file = None if path is None else _File(path, most)
        self._throttled: OrderedDict[tuple[str, ...], float] = OrderedDict()

    @classmethod
    def configured(cls, settings: Settings) -> AuditLog:
        """The log of a server with these settings."""
        path = settings.audit_log
        if path is None and settings.data_dir is not None:
            path = settings.data_dir / "audit.log"
        return cls(path, settings.max_audit_bytes)

    def note(self, action: str, outcome: str = "ok", *, throttle: tuple[str, ...] | None = None, **facts: Any) -> None:
        """Write an entry for the current caller.

        Args:
            action: one of :data:`ACTIONS`.
            outcome: ``ok``, or an error code.
            throttle: a key; at most one entry per minute is written for an action and a key.
            facts: further fields of :class:`AuditEntry`.
        """
        assert action in ACTIONS, action
        if throttle is not None and not self._due((action, *throttle)):
            return
        who = caller.get()
        if who is not None:
            facts = {
                "key": who.key.id, "tenant": who.key.tenant, "address": who.address, "request_id": who.request_id,
            } | facts  # fmt: skip
        entry = AuditEntry(at=timestamp(time.time()), action=action, outcome=outcome, **facts)
        if self._file is None:
            log.info(action, **{k: v for k, v in msgspec.to_builtins(entry).items() if k not in ("at", "action")})
        else:
            line = msgspec.json.encode(entry).decode()
            self._file.handle(logging.makeLogRecord({"msg": line, "levelno": logging.INFO, "levelname": "INFO"}))

    def _due(self, alike: tuple[str, ...]) -> bool:
        now = time.monotonic()
        if now - self._throttled.get(alike, -THROTTLE_S) < THROTTLE_S:
            return False
        self._throttled[alike] = now
        self._throttled.move_to_end(alike)
        if len(self._throttled) > MAX_THROTTLED:
            self._throttled.popitem(last=False)
        return True

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


@contextmanager
def on_account_of(who: Caller) -> Iterator[None]:
    """Attribute the entries written inside to this caller."""
    token = caller.set(who)
    try:
        yield
    finally:
        caller.reset(token)
