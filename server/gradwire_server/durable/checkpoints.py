"""Checkpoints: named states of a session to which it can return.

A checkpoint is a snapshot under another name, so no compaction removes it, and a row in ``checkpoints.json``, which is
written after the file. While there is a checkpoint, compactions leave the journals since the oldest one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from gradwire_engine.snapshot import Image
from gradwire_protocol.errors import LimitExceeded, NotFound

from . import snapshots
from .disk import Disk, Piece, write_whole
from .records import damaged, read_small
from .snapshots import Snapshot

INDEX: Final = "checkpoints.json"
PREFIX: Final = "checkpoint-"
MAX_CHECKPOINTS: Final = 100
MAX_INDEX_BYTES: Final = 1 << 20


class Checkpoint(msgspec.Struct, frozen=True):
    """A checkpoint.

    Attributes:
        record: the last record of the journal that it includes.
        frame: how many frames the session had applied.
        digest: of the file, in hexadecimal.
        bytes: the file's size.
        created: Unix time.
        used: the last record that rewinds to it; 0 for none.
        retired: it was forgotten, and its file is there for journals with such a record.
    """

    name: str
    record: int
    frame: int
    digest: str
    bytes: int
    created: float
    used: int = 0
    retired: bool = False

    def snapshot(self, folder: Path) -> Snapshot:
        """Its file, as a snapshot to read."""
        return Snapshot(folder / f"{PREFIX}{self.record:020d}-{self.digest}.safetensors", self.record, self.digest)


class _Index(msgspec.Struct):
    """The content of ``checkpoints.json``. The digest covers the rows."""

    digest: str
    checkpoints: msgspec.Raw


def listed(folder: Path) -> list[Checkpoint]:
    """The checkpoints of a session, oldest first.

    Raises:
        JournalDamaged: when the index is damaged.
    """
    return [each for each in _rows(folder) if not each.retired]


def _rows(folder: Path) -> list[Checkpoint]:
    path = folder / INDEX
    if not os.path.lexists(path):
        return []
    try:
        index = msgspec.json.decode(read_small(path, MAX_INDEX_BYTES), type=_Index)
        if index.digest != _digest([bytes(index.checkpoints)]):
            raise damaged(path, 0, "its digest does not match")
        return msgspec.json.decode(index.checkpoints, type=list[Checkpoint])
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise damaged(path, 0, f"the file is unreadable: {error}") from None


def find(folder: Path, name: str) -> Checkpoint:
    """The checkpoint of this name.

    Raises:
        NotFound: when there is none.
        JournalDamaged: when the index is damaged.
    """
    there = listed(folder)
    for each in there:
        if each.name == name:
            return each
    names = ", ".join(repr(each.name) for each in there[-8:]) or "none"
    raise NotFound(f"the session has no checkpoint {name!r:.80}; it has {names}")


def check_room(folder: Path, name: str) -> None:
    """Check that the session may have another checkpoint of this name.

    Raises:
        LimitExceeded: when it may not.
    """
    others = [each for each in listed(folder) if each.name != name]
    if len(others) >= MAX_CHECKPOINTS:
        raise LimitExceeded(
            f"the session has {len(others)} checkpoints, the maximum; delete one", limit=MAX_CHECKPOINTS,
            value=len(others),
        )  # fmt: skip


def write(
    disk: Disk, folder: Path, session_id: str, name: str, record: int, frame: int, image: Image, created: float
) -> Checkpoint:
    """Write a checkpoint to the medium. It replaces the one of the same name.

    Raises:
        OSError: when the disk is full or broken.
    """
    pieces = snapshots.encode(image, session=session_id, record=str(record))
    made = Checkpoint(name, record, frame, _digest(pieces), sum(map(len, pieces)), created)
    path = made.snapshot(folder).path
    if not path.exists():
        write_whole(disk, path, pieces)
    _save(disk, folder, [*_without(_rows(folder), name), made])
    return made


def note_use(disk: Disk, folder: Path, name: str, record: int) -> None:
    """Note that a record rewinds to a checkpoint, before it is written.

    Raises:
        OSError: when the disk is full or broken.
    """
    rows = _rows(folder)
    for i, row in enumerate(rows):
        if row.name == name and not row.retired:
            rows[i] = msgspec.structs.replace(row, used=record)
    _save(disk, folder, rows)


def remove(disk: Disk, folder: Path, name: str) -> Checkpoint:
    """Remove a checkpoint.

    Raises:
        NotFound: when there is none of this name.
        OSError: when the disk is broken.
    """
    gone = find(folder, name)
    _save(disk, folder, _without(_rows(folder), name))
    return gone


def _without(rows: list[Checkpoint], name: str) -> list[Checkpoint]:
    """The rows without the checkpoint of this name, which retires if a record rewinds to it."""
    return [
        msgspec.structs.replace(row, retired=True) if row.name == name else row
        for row in rows
        if row.name != name or row.used
    ]


def _save(disk: Disk, folder: Path, rows: list[Checkpoint]) -> None:
    # Journals are kept since the oldest checkpoint, so no record before it counts.
    since = min((row.record for row in rows if not row.retired), default=None)
    rows = [row for row in rows if not row.retired or (since is not None and row.used > since)]
    encoded = msgspec.json.encode(rows)
    write_whole(disk, folder / INDEX, [msgspec.json.encode(_Index(_digest([encoded]), msgspec.Raw(encoded)))])
    kept = {each.snapshot(folder).path for each in rows}
    for path in sorted(folder.glob(f"{PREFIX}*.safetensors")):
        if path not in kept:
            disk.remove(path)


def _digest(pieces: Sequence[Piece]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()
