"""The journal of a running session: records are appended in memory and written in groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from gradwire_protocol.errors import Unavailable

from .disk import Disk, Piece, write_whole
from .manifest import Manifest
from .records import HEADER_BYTES, Header, Kind, Notes, encode_header, encode_record, new_header
from .snapshots import Snapshot, snapshots

SUFFIX: Final = ".log"
PREFIX: Final = "journal-"
_NAME: Final = re.compile(re.escape(PREFIX) + r"(\d{20})" + re.escape(SUFFIX))

log = structlog.get_logger("gradwire.journal")


def journal_path(folder: Path, base: int) -> Path:
    """The path of the journal whose first record is ``base + 1``. Names sort in the order of journals."""
    return folder / f"{PREFIX}{base:020d}{SUFFIX}"


def journals(folder: Path) -> dict[int, Path]:
    """The journals of a session by the number of the last record before them, from their names."""
    matches = ((path, _NAME.fullmatch(path.name)) for path in folder.iterdir())
    return {int(match[1]): path for path, match in matches if match is not None}


def superseded(folder: Path, newest: Snapshot, since: int | None = None) -> list[Path]:
    """The files that a snapshot with its journal supersedes, including those left over by a crash.

    Args:
        since: keep the journals with later records than this one, which a checkpoint includes.
    """
    journals = sorted(folder.glob(f"{PREFIX}*{SUFFIX}"))
    kept = {newest.path, journal_path(folder, newest.seq)}
    if since is not None:
        first = journal_path(folder, since)
        before = [path for path in journals if path.name <= first.name]
        kept |= {path for path in journals if not before or path.name >= before[-1].name}
    return [path for path in [*journals, *(each.path for each in snapshots(folder))] if path not in kept]


class Journal:
    """One journal file, open for appending.

    Args:
        manifest: records each commit.
        last: the number of the last record in the file.
        end: the offset after that record.
        durable: whether a commit flushes to the medium.

    Attributes:
        failing: the last commit failed. Its records are kept and written first by the next commit.
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
        """Create a journal. The manifest records it before any record is written.

        Args:
            snapshot: the snapshot that it follows.

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
        """Record in the manifest that this is the current journal and which snapshot precedes it.

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
        """Whether records are not written yet."""
        return bool(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """The bytes not written yet."""
        return self._waiting_bytes

    @property
    def nbytes(self) -> int:
        """The length of the file, including bytes not written yet."""
        return self._end + self._waiting_bytes

    def append(self, kind: Kind, notes: Notes, message: Sequence[Piece]) -> None:
        """Append a record. The message is not copied and must not change before the commit."""
        pieces, size = encode_record(self._header, self.last + 1, kind, notes, message)
        self.last += 1
        self._waiting += pieces
        self._waiting_bytes += size

    def commit(self) -> int:
        """Write the pending records; returns the number of bytes.

        Raises:
            Unavailable: when the disk is full or broken. The records are kept for the next commit.
        """
        if not self._waiting:
            return 0
        try:
            # A retry writes from the same offset and overwrites the failed attempt. It also rewrites all records after
            # a failed fdatasync, because the kernel may have dropped their pages.
            end = self._disk.write(self._descriptor, self._waiting, self._end)
            if self._durable:
                self._disk.sync_data(self._descriptor)
        except OSError as error:
            if not self.failing:
                log.error("cannot write a journal", file=str(self.path), error=str(error))
            self.failing = True
            raise disk_refuses(error) from None
        if self.failing:
            log.warning("writing a journal succeeds again", file=str(self.path))
            self.failing = False
        written, self._end = end - self._end, end
        self._waiting.clear()
        self._waiting_bytes = 0
        self._note(self.last if self._durable else self._manifest.mark.synced)
        return written

    def _note(self, synced: int) -> None:
        """Record the commit in the manifest. A stale manifest only weakens later checks, so an error is not fatal."""
        try:
            self._manifest.commit(self.last, synced)
        except OSError as error:
            log.warning("cannot write a manifest", file=str(self._manifest.path), error=str(error))

    def cut(self) -> None:
        """Truncate the file after its last record.

        Raises:
            OSError: when the disk is broken.
        """
        self._disk.truncate(self._descriptor, self._end)
        self._disk.sync(self._descriptor)

    def sync(self) -> None:
        """Flush the written records to the medium."""
        self._disk.sync_data(self._descriptor)
        if not self._waiting:
            self._note(self.last)

    def close(self) -> None:
        """Close the file without writing pending records."""
        self._disk.close(self._descriptor)


def disk_refuses(error: OSError) -> Unavailable:
    """The error for clients when the disk is full or broken."""
    return Unavailable(
        f"the server cannot write the session to disk ({error.strerror}); retry when the disk works again",
        reason="disk",
    )
