"""The journal of a session while it runs: records are appended in memory and written in groups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from gradwire_protocol.errors import Unavailable

from .disk import Disk, Piece, write_whole
from .manifest import Manifest
from .records import HEADER_BYTES, Header, Kind, Notes, encode_header, encode_record, new_header
from .snapshots import Snapshot

SUFFIX: Final = ".log"
PREFIX: Final = "journal-"

log = structlog.get_logger("gradwire.journal")


def journal_path(folder: Path, base: int) -> Path:
    """The journal whose first record is ``base + 1``. Names sort in the order of their journals."""
    return folder / f"{PREFIX}{base:020d}{SUFFIX}"


class Journal:
    """One file, open for appending.

    Args:
        manifest: is told of each commit.
        last: the number of the last record that it holds.
        end: the offset behind that.
        durable: whether a commit waits for the medium.

    Attributes:
        failing: the last commit could not write everything. What it could not write waits here, and goes first.
    """

    def __init__(
        self,
        disk: Disk,
        path: Path,
        header: Header,
        durable: bool,
        manifest: Manifest,
        last: int,
        end: int = HEADER_BYTES,
    ) -> None:
        self.path = path
        self.last = last
        self.failing = False
        self._manifest = manifest
        self._disk = disk
        self._header = header
        self._durable = durable
        self._end = end
        self._waiting: list[Piece] = []
        self._waiting_bytes = 0
        self._descriptor = disk.reopen(path)

    @classmethod
    def begin(
        cls,
        disk: Disk,
        folder: Path,
        session_id: str,
        base: int,
        durable: bool,
        manifest: Manifest,
        snapshot: Snapshot | None = None,
    ) -> Journal:
        """A new file, which the manifest tells of before anything is written to it.

        Args:
            snapshot: the one that it follows.

        Raises:
            OSError: when the disk is full or broken.
        """
        path, header = journal_path(folder, base), new_header(session_id, base)
        write_whole(disk, path, [encode_header(header)])
        self = cls(disk, path, header, durable, manifest, base)
        try:
            self.announce(snapshot)
        except BaseException:
            self.close()
            raise
        return self

    def announce(self, snapshot: Snapshot | None) -> None:
        """Tell the manifest that this is the journal which is written to, and what is read before it.

        Raises:
            OSError: when the disk is broken.
        """
        base = self._header.base
        if snapshot is None:
            self._manifest.follow(base)
        else:
            self._manifest.follow(base, snapshot.seq, bytes.fromhex(snapshot.digest))
        if self.last != base:
            self.sync()

    @property
    def base(self) -> int:
        """The number of the last record before this file."""
        return self._header.base

    @property
    def dirty(self) -> bool:
        """Whether records wait to be written."""
        return bool(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """What waits to be written."""
        return self._waiting_bytes

    @property
    def nbytes(self) -> int:
        """The length of the file, with what waits."""
        return self._end + self._waiting_bytes

    def append(self, kind: Kind, notes: Notes, message: Sequence[Piece]) -> None:
        """Add a record. The message is not copied, and must not change before it is committed."""
        pieces, size = encode_record(self._header, self.last + 1, kind, notes, message)
        self.last += 1
        self._waiting += pieces
        self._waiting_bytes += size

    def commit(self) -> int:
        """Write what waits, and return how many bytes that was.

        Raises:
            Unavailable: when the disk is full or broken. Nothing is lost: the same records are written next time.
        """
        if not self._waiting:
            return 0
        try:
            # From the same offset each time: after a failed attempt, what it left behind is overwritten. After a failed
            # fdatasync the kernel may have dropped the pages, so these are written again, too.
            end = self._disk.write(self._descriptor, self._waiting, self._end)
            if self._durable:
                self._disk.sync_data(self._descriptor)
        except OSError as error:
            if not self.failing:
                log.error("a journal cannot be written", file=str(self.path), error=str(error))
            self.failing = True
            raise disk_refuses(error) from None
        if self.failing:
            log.warning("a journal is written again", file=str(self.path))
            self.failing = False
        written, self._end = end - self._end, end
        self._waiting.clear()
        self._waiting_bytes = 0
        self._note(self.last if self._durable else self._manifest.mark.synced)
        return written

    def _note(self, synced: int) -> None:
        """Tell the manifest. One that is behind hides damage later, and is no reason to refuse what was committed."""
        try:
            self._manifest.commit(self.last, synced)
        except OSError as error:
            log.warning("a manifest cannot be written", file=str(self._manifest.path), error=str(error))

    def cut(self) -> None:
        """Remove whatever the file has behind its last record.

        Raises:
            OSError: when the disk is broken.
        """
        self._disk.truncate(self._descriptor, self._end)
        self._disk.sync(self._descriptor)

    def sync(self) -> None:
        """Wait until the medium has what was written."""
        self._disk.sync_data(self._descriptor)
        if not self._waiting:
            self._note(self.last)

    def close(self) -> None:
        """Close the file. What waits is not written."""
        self._disk.close(self._descriptor)


def disk_refuses(error: OSError) -> Unavailable:
    """The error to tell clients when the disk is full or broken."""
    return Unavailable(
        f"the disk that holds the server's sessions does not take what is written ({error.strerror}): the session "
        "goes on when it does",
        reason="disk",
    )
