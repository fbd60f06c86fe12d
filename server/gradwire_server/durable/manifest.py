"""The manifest of a session's folder: which files must be there, and up to which record they were written.

A journal that is missing, or shorter than it was, looks like one to which nothing was ever written. The manifest
tells them apart. It is one small file: two slots that are overwritten in turn, so that one of them is whole whenever
the machine stops, and behind them whose session it is. A slot is written after each commit without waiting for the
medium, and waited for when a journal is begun. So what it says never runs ahead of what this machine has kept; after
the loss of power only what had been synced is relied on.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from gradwire_protocol.errors import JournalDamaged

from .disk import Disk, write_whole
from .records import damaged, read_small, session_digest

MANIFEST: Final = "manifest"
MAGIC: Final = b"GWIREMAN"
SLOT_BYTES: Final = 512
"""A slot has a sector of the disk to itself: they are not damaged together."""

MAX_BYTES: Final = 64 << 10

_SLOT: Final = struct.Struct("<8s16sQQQQQ16s16s?")
_IDENTITY: Final = struct.Struct("<II")
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Mark(NamedTuple):
    """What a slot says.

    Attributes:
        number: how many were written before it.
        base: the journal that is written to is the one that follows this record.
        last: the last record that was committed.
        synced: the last record that is on the medium for certain.
        snapshot, digest: number and digest of the snapshot that is read first; no digest where there is none.
        boot: what run of the machine wrote it; empty where that is not known.
        begun: the session was complete; its folder is not left over from one that was being made.
    """

    number: int = 0
    base: int = 0
    last: int = 0
    synced: int = 0
    snapshot: int = 0
    digest: bytes = b""
    boot: bytes = b""
    begun: bool = False

    @property
    def required(self) -> int:
        """The last record that must be there. Another run of the machine may have lost what was not synced."""
        return self.last if self.boot and self.boot == boot_id() else self.synced


class Owner(msgspec.Struct, frozen=True):
    """Whose folder it is, for when ``session.json`` cannot tell."""

    session: str
    tenant: str


class Manifest:
    """The manifest of a session that runs.

    Attributes:
        mark: what was written last.
    """

    def __init__(self, disk: Disk, path: Path, session_id: str, mark: Mark) -> None:
        self.path = path
        self.mark = mark
        self._disk = disk
        self._session = session_digest(session_id)
        self._descriptor = disk.reopen(path)

    @classmethod
    def begin(cls, disk: Disk, folder: Path, owner: Owner, mark: Mark) -> Self:
        """Write a new one.

        Raises:
            OSError: when the disk is full or broken.
        """
        mark = mark._replace(number=0, boot=boot_id())
        identity = msgspec.json.encode(owner)
        pieces = [
            _packed(mark, session_digest(owner.session)).ljust(SLOT_BYTES, b"\0"), bytes(SLOT_BYTES),
            _IDENTITY.pack(len(identity), zlib.crc32(identity)), identity,
        ]  # fmt: skip
        path = folder / MANIFEST
        write_whole(disk, path, pieces)
        return cls(disk, path, owner.session, mark)

    @classmethod
    def open(cls, disk: Disk, folder: Path, session_id: str) -> Self:
        """The one of a folder.

        Raises:
            JournalDamaged: for one that is missing, damaged or another session's.
            OSError: when the disk is broken.
        """
        return cls(disk, folder / MANIFEST, session_id, read_mark(folder, session_id))

    def commit(self, last: int, synced: int) -> None:
        """Note that the journal holds these records, after it does. What was noted before stays readable.

        Raises:
            OSError: when the disk is broken.
        """
        self._write(self.mark._replace(last=last, synced=synced))

    def follow(self, base: int, snapshot: int = 0, digest: bytes = b"") -> None:
        """Note that from here on a new journal is written to; when this returns, that is on the medium.

        Raises:
            OSError: when the disk is broken. The next :meth:`commit` is to the journal of before.
        """
        before = self.mark
        try:
            self._write(before._replace(base=base, last=base, synced=base, snapshot=snapshot, digest=digest))
            self._disk.sync_data(self._descriptor)
        except OSError:
            self.mark = before._replace(number=self.mark.number)
            raise

    def complete(self) -> None:
        """Note that the session is there.

        Raises:
            OSError: when the disk is broken.
        """
        self._write(self.mark._replace(begun=True))

    def close(self) -> None:
        """Close the file."""
        self._disk.close(self._descriptor)

    def _write(self, mark: Mark) -> None:
        mark = mark._replace(number=self.mark.number + 1, boot=boot_id())
        self._disk.write(self._descriptor, [_packed(mark, self._session)], mark.number % 2 * SLOT_BYTES)
        self.mark = mark


def read_mark(folder: Path, session_id: str) -> Mark:
    """What the manifest of a folder says.

    Raises:
        JournalDamaged: for one that is missing, damaged or another session's.
        OSError: when the disk is broken.
    """
    path = folder / MANIFEST
    data = read_small(path, MAX_BYTES)
    owner = _owner(data)
    slots = (data[at : at + _SLOT.size + 4] for at in (0, SLOT_BYTES))
    found = [slot for slot in map(_unpacked, slots) if slot is not None]
    if owner is None or not found:
        raise damaged(path, 0, "the manifest is not what was written")
    session, mark = max(found, key=lambda each: each[1].number)
    if owner.session != session_id or session != session_digest(session_id):
        raise damaged(path, 0, f"the manifest is not that of session {session_id}")
    return mark


def read_owner(folder: Path) -> Owner | None:
    """Whose session a folder holds, as its manifest tells; ``None`` when that is not known."""
    try:
        owner = _owner(read_small(folder / MANIFEST, MAX_BYTES))
    except (JournalDamaged, OSError):
        return None
    return owner if owner is not None and owner.session == folder.name else None


def was_begun(folder: Path) -> bool:
    """Whether a manifest says that the session in this folder was complete."""
    try:
        return read_mark(folder, folder.name).begun
    except (JournalDamaged, OSError):
        return False


@lru_cache(1)
def boot_id() -> bytes:
    """Which run of this machine it is; empty where the system does not tell."""
    try:
        return bytes.fromhex(_BOOT.read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return b""


def _packed(mark: Mark, session: bytes) -> bytes:
    packed = _SLOT.pack(MAGIC, session, *mark)
    return packed + zlib.crc32(packed).to_bytes(4, "little")


def _unpacked(slot: bytes) -> tuple[bytes, Mark] | None:
    packed, crc = slot[: _SLOT.size], slot[_SLOT.size :]
    if len(slot) != _SLOT.size + 4 or zlib.crc32(packed) != int.from_bytes(crc, "little"):
        return None
    magic, session, number, base, last, synced, snapshot, digest, boot, begun = _SLOT.unpack(packed)
    if magic != MAGIC:
        return None
    return session, Mark(number, base, last, synced, snapshot, _known(digest), _known(boot), begun)


def _known(digest: bytes) -> bytes:
    return digest if any(digest) else b""


def _owner(data: bytes) -> Owner | None:
    head = data[2 * SLOT_BYTES : 2 * SLOT_BYTES + _IDENTITY.size]
    if len(head) < _IDENTITY.size:
        return None
    length, crc = _IDENTITY.unpack(head)
    encoded = data[2 * SLOT_BYTES + _IDENTITY.size :]
    if len(encoded) != length or zlib.crc32(encoded) != crc:
        return None
    try:
        return msgspec.json.decode(encoded, type=Owner)
    except (msgspec.MsgspecError, UnicodeError):
        return None
