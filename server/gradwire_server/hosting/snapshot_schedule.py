"""When a session's journal is replaced by a snapshot, and how long it may become until then."""

from __future__ import annotations

import time
from typing import Final

from gradwire_protocol.errors import LimitExceeded

from ..durable.journal import Journal
from ..durable.records import MAX_RECORD_BYTES
from ..durable.store import DiskUse

LARGE_BYTES: Final = 64 << 10
"""Smaller messages are accepted without a check of the disk space."""

MAX_OVERRUN: Final = 16
"""While no snapshot is possible, data is refused once the journal is this many times longer than its threshold. At four
times that length, all frames but tiny ones are refused."""

SMALL_BYTES: Final = 512
"""Smaller frames are always accepted, because one of them may make a snapshot possible again."""

PAUSE_S: Final = 5.0
"""The pause between attempts to write a snapshot to a full disk."""


class SnapshotSchedule:
    """The schedule of one session's snapshots.

    Attributes:
        snapshot_bytes: the size of the last snapshot; 0 without one.
        uncertain: an op failed halfway for a transient reason, so a snapshot is due.
        postponed: why no snapshot could be taken; empty if one can.
    """

    def __init__(self, journal_bytes: int) -> None:
        self.snapshot_bytes = 0
        self.uncertain = False
        self.postponed = ""
        self._journal_bytes = journal_bytes
        self._not_before = (0, 0.0)

    @property
    def threshold_bytes(self) -> int:
        """The journal's length at which a snapshot is due: at least the last snapshot's size, so that snapshots cost no
        more than the journal."""
        return max(self._journal_bytes, self.snapshot_bytes)

    def due(self, journal: Journal) -> bool:
        """Whether a snapshot is due."""
        nbytes, moment = self._not_before
        if time.monotonic() < moment:
            return False
        return self.uncertain or journal.nbytes >= max(self.threshold_bytes, nbytes)

    def taken(self, nbytes: int) -> None:
        """A snapshot of this size was written."""
        self.snapshot_bytes = nbytes
        self.uncertain, self.postponed, self._not_before = False, "", (0, 0.0)

    def impossible(self, journal: Journal, reason: str) -> None:
        """The session's state cannot become a snapshot now."""
        self.postponed = reason
        self._not_before = journal.nbytes + self.threshold_bytes // 8, 0.0

    def failed(self, reason: str) -> None:
        """The disk refused a snapshot."""
        self.postponed = reason
        self._not_before = 0, time.monotonic() + PAUSE_S

    def check_room(self, journal: Journal, disk_use: DiskUse, nbytes: int, brings_data: bool) -> None:
        """Check that a message may be added to the journal.

        Raises:
            LimitExceeded: when the message, the data directory or the journal would be too large.
        """
        if nbytes > MAX_RECORD_BYTES:
            raise LimitExceeded(
                f"the message has {nbytes:,} bytes; the limit of a journal record is {MAX_RECORD_BYTES:,}; send the "
                "payloads in chunks",
                limit=MAX_RECORD_BYTES, value=nbytes,
            )  # fmt: skip
        if nbytes >= LARGE_BYTES:
            disk_use.check(nbytes)
        most = MAX_OVERRUN * self.threshold_bytes * (1 if brings_data else 4)
        if journal.nbytes > most and (brings_data or nbytes >= SMALL_BYTES):
            raise LimitExceeded(
                f"the journal of the session has {journal.nbytes:,} bytes, and no snapshot can replace it "
                f"({self.postponed or 'the disk is not writable'}); the limit is {most:,} bytes, "
                f"{most // self.threshold_bytes} times the larger of GRADWIRE_JOURNAL_BYTES and the last snapshot",
                setting="GRADWIRE_JOURNAL_BYTES", limit=most, value=journal.nbytes,
            )  # fmt: skip
