"""The store of a server whose sessions live on shared storage. It takes the place of :class:`..store.Store`."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import structlog

from gradwire_protocol.errors import JournalDamaged

from ...settings.session_spec import SessionSpec
from ..disk import Disk
from ..store import DamagedSession
from . import tombstones
from .claims import SESSIONS, is_free, newest_claim
from .directory_storage import DirectoryStorage
from .epochs import DirectoryEpochs, EpochFiles, newest_published
from .home import Home
from .in_parallel import in_parallel
from .mirrored_epochs import MirroredEpochs
from .object_storage import ObjectStorage
from .ownership import LEASE_S, Observer, OwnerLease, OwnershipLost, certify
from .storage import Storage, open_storage
from .storage_use import StorageUse
from .tombstones import Tombstone, bury, tombstone

_ID: Final = re.compile(r"s_[A-Za-z0-9_-]{1,100}")

SWEEP_EVERY_S: Final = 600.0
"""How often one of all servers sweeps the storage."""

EXPIRY_SLACK_S: Final = 60.0
"""How much the clocks of machines may differ when sessions expire that no server has loaded."""

log = structlog.get_logger("gradwire.shared")


class SharedStore:
    """Sessions on shared storage, as one of many servers sees them. Methods may be called from any thread, and block.

    Args:
        lease: the started lease of this server.
        scratch: a local folder for the sessions of an object store; removed at the end.
        disk: writes the files of sessions in a directory; for tests.

    Attributes:
        lease: one lease serves all sessions of this server.
        use: of the storage, by all servers.
        observer: knows which other owners have ended.
    """

    def __init__(
        self, storage: Storage, lease: OwnerLease, scratch: Path, observer: Observer | None = None,
        disk: Disk | None = None, max_data_bytes: int = 0,
    ) -> None:  # fmt: skip
        self.storage = storage
        self.lease = lease
        self.observer = observer or Observer(storage, lease.owner)
        self.use = StorageUse(storage, max_data_bytes)
        self._scratch = scratch
        self._disk = disk
        self._homes: dict[str, Home] = {}
        self._remains: dict[str, float] = {}
        """Sessions without any claim, and when a sweep saw them first."""

    @classmethod
    def open(
        cls, url: str, lease_s: float = LEASE_S, scratch: Path | None = None, max_data_bytes: int = 0
    ) -> Self:  # fmt: skip
        """Open a storage and become one of its owners.

        Args:
            url: a directory that all servers mount, or ``s3://bucket/prefix``.
            scratch: the parent of the local folder; default: the system's temporary folder.
            max_data_bytes: the limit for the whole storage; 0 for no limit.

        Raises:
            ValueError: for another kind of URL, or a missing library.
            OSError: when the storage is unreachable.
        """
        storage = open_storage(url)
        lease = OwnerLease(storage, lease_s)
        lease.start()
        if scratch is not None:
            scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="gradwire-scratch-", dir=scratch)
        return cls(storage, lease, Path(folder), max_data_bytes=max_data_bytes)

    @property
    def owner(self) -> str:
        """The id of this server's incarnation."""
        return self.lease.owner

    @property
    def root(self) -> str:
        """Where the sessions are, for messages."""
        return self.storage.url

    def on_lapse(self, callback: Callable[[str], None]) -> None:
        """Have this called, from any thread, when this server's lease has ended, or at once if it has already: no
        session is its own then. It may be called twice."""
        self.lease.on_lapse = callback
        if (why := self.lease.lapsed) is not None:
            callback(why)

    # Sessions

    def home(self, session_id: str) -> Home:
        """The session's home on this server; the same object while this server uses it."""
        home = self._homes.get(session_id)
        if home is None:
            home = Home(self.storage, session_id, self.lease, self.observer, self._files(session_id), self.use)
            home = self._homes.setdefault(session_id, home)
        return home

    def _files(self, session_id: str) -> EpochFiles:
        if isinstance(self.storage, DirectoryStorage):
            return DirectoryEpochs(self.storage, session_id, self._disk)
        assert isinstance(self.storage, ObjectStorage)
        return MirroredEpochs(self.storage, session_id, self._scratch)

    def forget(self, session_id: str) -> None:
        """Forget the home of a session that this server does not own."""
        home = self._homes.get(session_id)
        if home is not None and not home.epoch:
            del self._homes[session_id]

    def folder(self, session_id: str) -> Path:
        """A name for the session's place in messages; its home knows the folder of its epoch."""
        return Path(self.storage.url if isinstance(self.storage, DirectoryStorage) else self._scratch) / session_id

    def find(self, session_id: str) -> SessionSpec | Tombstone | None:
        """The parameters of a session, wherever it runs; its tombstone if it was deleted; ``None`` if it is unknown.

        Raises:
            JournalDamaged: when its newest record of an epoch is unreadable.
            OSError: when the storage is unreachable.
        """
        if not _ID.fullmatch(session_id):
            return None
        found = newest_published(self.storage, session_id)
        buried = tombstone(self.storage, session_id)
        if buried is not None:
            return buried
        return None if found is None else found[1].spec

    def specs(self) -> Iterator[tuple[str, SessionSpec | DamagedSession]]:
        """The ids and parameters of all sessions, many read at once; unreadable ones with the error.

        Raises:
            OSError: when the storage is unreachable.
        """
        for found in in_parallel(self._spec_of, self.storage.children(SESSIONS)):
            if found is not None:
                yield found

    def _spec_of(self, session_id: str) -> tuple[str, SessionSpec | DamagedSession] | None:
        try:
            found = newest_published(self.storage, session_id)
        except JournalDamaged as error:
            return session_id, DamagedSession(error, None)
        return None if found is None else (session_id, found[1].spec)

    def owner_of(self, session_id: str) -> str | None:
        """The owner that has a session now, as far as it is known; ``None`` if it is free.

        Raises:
            OSError: when the storage is unreachable.
        """
        held = newest_claim(self.storage, session_id)
        free = held.tenant is not None or is_free(self.storage, session_id, held, self.observer)
        return None if free else held.owner

    def remove(self, session_id: str) -> None:
        """Delete a session that this server owns or that is free.

        Raises:
            Unavailable: when another server owns it.
            OSError: when the storage is unreachable.
        """
        found = self.find(session_id)
        if isinstance(found, SessionSpec):
            self.home(session_id).remove(found.tenant)
        self._homes.pop(session_id, None)

    def check_room(self, nbytes: int = 0) -> None:
        """Check that the limit of the storage allows a new session.

        Raises:
            LimitExceeded: when it does not.
        """
        self.use.check(nbytes)

    # Owners

    def certify_ended(self, owner: str) -> None:
        """Certify that the process of an owner has ended, known for certain, so that nobody waits for its lease.

        Raises:
            OSError: when the storage is unreachable.
        """
        certify(self.storage, owner, self.lease.owner)

    def close(self) -> None:
        """End the lease, after all sessions were closed."""
        self.lease.end()
        shutil.rmtree(self._scratch, ignore_errors=True)

    # Sweeping

    def sweep(self) -> bool:
        """Remove expired sessions and the remains of others, if no server did so lately. Returns whether it was done.

        Raises:
            OSError: when the storage is unreachable.
            OwnershipLost: when this server's lease has ended.
        """
        now = time.time()
        turn = int(now // SWEEP_EVERY_S)
        if not self.storage.create(f"sweeps/{turn}", self.owner.encode()):
            return False
        old = [name for name in self.storage.children("sweeps/") if name.isdecimal() and int(name) < turn - 1]
        self.storage.delete(*(f"sweeps/{name}" for name in old))
        self.sweep_now(now)
        return True

    def sweep_now(self, now: float) -> None:
        """As :meth:`sweep`, whoever did so lately."""
        self.observer.sweep(now)
        tombstones.sweep(self.storage, now)
        for session_id in self.storage.children(SESSIONS):
            self.lease.check()
            if session_id in self._homes:
                continue
            with suppress(JournalDamaged, OwnershipLost):  # if its lease is over, the next check says so
                self._sweep_session(session_id, now)

    def _sweep_session(self, session_id: str, now: float) -> None:
        held = newest_claim(self.storage, session_id)
        if held.tenant is not None:  # its deletion was interrupted
            bury(self.storage, session_id, held.tenant)
            return
        if not is_free(self.storage, session_id, held, self.observer):
            return
        found = newest_published(self.storage, session_id)
        if found is None:
            # Its creation was interrupted, or a former owner wrote after the deletion. Without a claim it may also be a
            # creation that has just begun.
            if not held.epoch and now - self._remains.setdefault(session_id, now) < SWEEP_EVERY_S / 2:
                return
            self._remains.pop(session_id, None)
            self._remove_unused(session_id, "", "its creation was interrupted", self._is_unpublished)
            return
        _, record = found
        used = self._used(session_id)
        last = max(record.at, float(used.decode()) if used else 0.0)
        if now - last > record.spec.ttl_s + EXPIRY_SLACK_S:
            self._remove_unused(session_id, record.spec.tenant, "expired", lambda each: self._used(each) == used)

    def _remove_unused(self, session_id: str, tenant: str, reason: str, is_unused: Callable[[str], bool]) -> None:
        """Delete a session that nobody owns, unless somebody has owned and used it since it was looked at."""
        home = self.home(session_id)
        if not home.claim_anew():
            return
        try:
            if is_unused(session_id):
                log.info("session ended", session=session_id, reason=reason)
                home.remove(tenant)
        finally:
            home.abandon()
            self.forget(session_id)

    def _used(self, session_id: str) -> bytes | None:
        return self.storage.get(f"{SESSIONS}{session_id}/used")

    def _is_unpublished(self, session_id: str) -> bool:
        return newest_published(self.storage, session_id) is None
