"""The home of one session on this server: from the claim to its release."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from gradwire_protocol.errors import NotFound, SessionGone, Unavailable

from ...settings.session_spec import SessionSpec
from ..journal import disk_refuses
from ..store import DiskUse
from . import claims, epochs
from .claims import SESSIONS, ClaimHeld
from .epochs import EpochFiles, Place
from .ownership import Observer, OwnerLease, OwnershipLost, ownership_lost
from .storage import Storage
from .tombstones import bury, is_buried

HAND_OVER_S: Final = 3.0
"""How long a load waits for an owner that is alive, and may be handing the session over."""

LOOK_EVERY_S: Final = 0.1

ELSEWHERE: Final = "elsewhere"

log = structlog.get_logger("gradwire.home")


class Home:
    """A session's place in the shared storage, while this server owns it. Methods may be called from any thread.

    Attributes:
        epoch: the epoch that this server owns; 0 for none.
        use: of the whole storage.
    """

    def __init__(
        self, storage: Storage, session_id: str, lease: OwnerLease, observer: Observer, files: EpochFiles,
        use: DiskUse | None = None,
    ) -> None:  # fmt: skip
        self.session_id = session_id
        self.use = use or DiskUse(Path(), 0)
        self.epoch = 0
        self._storage = storage
        self._lease = lease
        self._observer = observer
        self._files = files
        self._taken_from = 0
        self._published = False
        self._gone = False
        self._lock = threading.Lock()

    # For the thread that runs the session

    def open(self, new: bool) -> Place:
        """Claim the session and take its files over. Waits for the certain end of an owner that does not answer.

        Raises:
            Unavailable: when another server owns the session, or the storage is unreachable.
            OwnershipLost: when this server's lease has ended.
            NotFound: when the session does not exist.
            SessionGone: when it was deleted.
            JournalDamaged: when files of its newest epoch are missing.
        """
        if self.epoch:
            raise Unavailable(f"session {self.session_id} is being unloaded; try again", reason=ELSEWHERE)
        try:
            self._gone = False
            self.epoch = self._claim()
            self._published = False
            try:
                if is_buried(self._storage, self.session_id):
                    raise SessionGone(f"session {self.session_id} was deleted")
                if new:
                    self._taken_from = 0
                    return self._files.fresh(self.epoch)
                self._taken_from, place = epochs.copied(self._files, self._newest, self.epoch)
                return place
            except BaseException:
                self.abandon()
                raise
        except OSError as error:
            if isinstance(error, Unavailable):
                raise
            raise disk_refuses(error) from None

    def _newest(self) -> int:
        found = epochs.newest_published(self._storage, self.session_id)
        if found is None:
            raise NotFound(f"session {self.session_id!r:.80} does not exist")
        return found[0]

    def _claim(self, wait: bool = True) -> int:
        began = time.monotonic()
        counters: dict[str, int | None] = {}
        while True:
            try:
                return claims.claim(self._storage, self.session_id, self._lease, self._observer)
            except ClaimHeld as error:
                held = error.held
            if held.tenant is not None:  # its deletion may have been interrupted
                bury(self._storage, self.session_id, held.tenant)
                raise SessionGone(f"session {self.session_id} was deleted")
            epoch, owner = held
            if owner == self._lease.owner:  # its release failed
                claims.release(self._storage, self.session_id, epoch)
                continue
            waited = time.monotonic() - began
            if owner:
                alive = counters.setdefault(owner, self._observer.counter(owner)) != self._observer.counter(owner)
                if not wait or waited > (HAND_OVER_S if alive else self._observer.watch_s(owner) + HAND_OVER_S):
                    raise Unavailable(
                        f"session {self.session_id} runs on another server; connect again",
                        reason=ELSEWHERE, owner=owner,
                    )  # fmt: skip
            time.sleep(LOOK_EVERY_S)

    def claim_anew(self) -> bool:
        """Claim the session for a sweep, without its files. Returns False if it is not free.

        Raises:
            OSError: when the storage is unreachable.
        """
        if self.epoch:
            return False
        try:
            self.epoch = self._claim(wait=False)
        except (Unavailable, SessionGone):
            return False
        return True

    def publish(self, spec: SessionSpec, record: int) -> None:
        """Make this epoch the session, after its files were written. Only then may anything be acknowledged.

        Raises:
            OwnershipLost: when this server's lease has ended.
            OSError: when the storage is unreachable.
        """
        self._files.settle(self.epoch)
        self.check()
        self._published = True  # even if this fails, because the write may take effect later
        epochs.publish(self._storage, spec, self.epoch, self._taken_from, record, self._lease.owner)
        # If the lease is valid now, every successor sees this epoch, so older ones are of no more use.
        self.check()
        try:
            epochs.remove_older(self._storage, self.session_id, self.epoch)
        except OSError as error:  # the next takeover or a sweep removes them
            log.warning("cannot remove a session's older epochs", session=self.session_id, reason=str(error))
        if self._taken_from:
            log.info(
                "session taken over", session=self.session_id, epoch=self.epoch, source=self._taken_from, record=record
            )

    def check(self) -> None:
        """Check that this server owns the session now. What was written before may be acknowledged then, and what it
        replaces be removed.

        Raises:
            OwnershipLost: when it does not.
        """
        self._lease.check()
        if self._gone or not self.epoch:
            raise ownership_lost("the session was released")

    @property
    def lost(self) -> bool:
        """Whether this server no longer owns the session."""
        return self._gone or not self.epoch or not self._lease.valid

    def tidy(self) -> None:
        """Join small pieces of the session's files. Errors are logged."""
        try:
            self._files.tidy(self.check)
        except OwnershipLost:
            raise
        except OSError as error:
            log.warning("cannot merge the segments of a journal", session=self.session_id, reason=str(error))

    # Ends

    def release(self) -> None:
        """Give the session up for another server, after its files were closed.

        Raises:
            OSError: when the storage is unreachable; the session is free when this server ends.
        """
        with self._lock:
            epoch, self.epoch = self.epoch, 0
            lost = self._gone or not epoch or not self._lease.valid
        if not lost:
            self.note_use(time.time())
            claims.release(self._storage, self.session_id, epoch)
        self._files.leave()

    def abandon(self) -> None:
        """Give an epoch up that was not published. Errors are logged."""
        with self._lock:
            epoch, self.epoch = self.epoch, 0
        with suppress(Unavailable):
            try:
                self._lease.check()
                if epoch and not self._published:
                    self._storage.delete(*self._storage.keys(f"{SESSIONS}{self.session_id}/epochs/{epoch:010d}/"))
                if epoch:
                    claims.release(self._storage, self.session_id, epoch)
            except OwnershipLost:
                raise
            except OSError as error:
                log.warning("cannot release a session", session=self.session_id, reason=str(error))
        self._files.leave()

    def remove(self, tenant: str) -> None:
        """Delete the session, which this server owns or which is free.

        Args:
            tenant: whose session it is, for its tombstone.

        Raises:
            Unavailable: when another server owns it.
            OwnershipLost: when this server owns it no longer.
            OSError: when the storage is unreachable. This server has given the session up then, deleted or not.
        """
        with self._lock:
            if self._gone:
                return
            try:
                if not self.epoch:
                    self.epoch = self._claim(wait=False)
                self.check()
                # From here on this server is no owner, whatever the answers: what was sent may take effect later.
                epoch, self.epoch = self.epoch, 0
                claims.claim_for_nobody(self._storage, self.session_id, epoch, tenant)
                bury(self._storage, self.session_id, tenant)
            except SessionGone:
                pass
            except ClaimHeld:
                if not is_buried(self._storage, self.session_id):  # else somebody has finished this deletion already
                    raise ownership_lost("another server has it") from None
            self._gone = True
        self._files.leave()

    def leave(self) -> None:
        """Remove what only this machine has, after the ownership was lost."""
        self.epoch = 0
        self._files.leave()

    def note_use(self, at: float) -> None:
        """Save the Unix time of the last use.

        Raises:
            OSError: when the storage is unreachable.
        """
        self._storage.put(f"{SESSIONS}{self.session_id}/used", repr(at).encode())
