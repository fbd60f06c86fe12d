"""Tombstones of deleted sessions, so that no former owner recreates one."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from .claims import SESSIONS
from .storage import Storage

DELETED: Final = "deleted/"
KEPT_S: Final = 7 * 86400.0
"""How long a tombstone is kept. What a former owner writes later is never published, and the sweep removes it."""


class Tombstone(msgspec.Struct, frozen=True):
    """The content of ``deleted/<id>``. ``at``: Unix time."""

    tenant: str
    at: float


def tombstone(storage: Storage, session_id: str) -> Tombstone | None:
    """The tombstone of a session, if it was deleted.

    Raises:
        OSError: when the storage is unreachable.
    """
    data = storage.get(DELETED + session_id)
    return None if data is None else msgspec.json.decode(data, type=Tombstone)


def is_buried(storage: Storage, session_id: str) -> bool:
    """Whether a session was deleted."""
    return storage.get(DELETED + session_id) is not None


def bury(storage: Storage, session_id: str, tenant: str) -> None:
    """Remove a session whose newest claim is nobody's. After an interruption, the next contender or a sweep goes on.

    Raises:
        OSError: when the storage is unreachable.
    """
    storage.create(DELETED + session_id, msgspec.json.encode(Tombstone(tenant, time.time())))
    clear(storage, session_id)


def clear(storage: Storage, session_id: str) -> None:
    """Remove all files of a deleted session: first those that make it exist, last the claim that keeps owners out."""
    top = f"{SESSIONS}{session_id}/"
    storage.delete(*storage.keys(f"{top}published/"))
    claims = storage.keys(f"{top}claims/")
    storage.delete(*(key for key in storage.keys(top) if key not in claims))
    storage.delete(*claims[:-1])
    storage.delete(*claims[-1:])


def sweep(storage: Storage, now: float) -> None:
    """Finish interrupted deletions, and remove old tombstones; ``now`` is Unix time.

    Raises:
        OSError: when the storage is unreachable.
    """
    for session_id in storage.children(DELETED):
        clear(storage, session_id)
        found = tombstone(storage, session_id)
        if found is not None and now - found.at > KEPT_S:
            storage.delete(DELETED + session_id)
