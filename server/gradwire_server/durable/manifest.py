"""The manifest of a session's folder: the required files and the number of the last committed record.

Without it, a missing or truncated journal would look like an empty one. The manifest is a small file with two slots and
the session's owner. The slots are overwritten alternately, so that one is intact after a crash at any time. A slot is
written after each commit without a flush, and flushed when a journal is created. So it never claims more than the
machine has stored. After a power failure, recovery relies only on records that were flushed.
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
"""Each slot has its own disk sector, so that a torn write damages only one."""

MAX_BYTES: Final = 64 << 10

_SLOT: Final = struct.Struct("<8s16sQQQQQ16s16s?")
_IDENTITY: Final = struct.Struct("<II")
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Mark(NamedTuple):
    """The content of a slot.

    Attributes:
        number: counts writes of slots.
        base: the number of the last record before the current journal.
        last: the last committed record.
        synced: the last record that was flushed to the medium.
        snapshot, digest: number and digest of the snapshot to read first; an empty digest if there is none.
        boot: the boot id of the machine that wrote it; empty if unknown.
        begun: the creation of the session was completed.
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
        """The last record that must exist. After a reboot, records that were not flushed may be lost."""
        return self.last if self.boot and self.boot == boot_id() else self.synced


class Owner(msgspec.Struct, frozen=True):
    """The owner of the folder, for a damaged ``session.json``."""

    session: str
    tenant: str


class Manifest:
    """The manifest of a running session.

    Attributes:
        mark: the last written slot.
    """

    def __init__(self, disk: Disk, path: Path, session_id: str, mark: Mark) -> None:
        self.path = path
        self.mark = mark
        self._disk = disk
        self._session = session_digest(session_id)
        self._descriptor = disk.reopen(path)

    @classmethod
    def begin(cls, disk: Disk, folder: Path, owner: Owner, mark: Mark) -> Self:
        """Create a manifest.

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
        """Open the manifest of a folder.

        Raises:
            JournalDamaged: when it is missing, damaged or of another session.
            OSError: when the disk is broken.
        """
        return cls(disk, folder / MANIFEST, session_id, read_mark(folder, session_id))

    def commit(self, last: int, synced: int) -> None:
        """Record that the journal has these records. Call this after writing them.

        Raises:
            OSError: when the disk is broken.
        """
        self._write(self.mark._replace(last=last, synced=synced))

    def follow(self, base: int, snapshot: int = 0, digest: bytes = b"") -> None:
        """Record the switch to a new journal, and flush the manifest.

        Raises:
            OSError: when the disk is broken. The previous journal stays current.
        """
        before = self.mark
        try:
            self._write(before._replace(base=base, last=base, synced=base, snapshot=snapshot, digest=digest))
            self._disk.sync_data(self._descriptor)
        except OSError:
            self.mark = before._replace(number=self.mark.number)
            raise

    def complete(self, last: int) -> None:
        """Record that the creation or recovery of the session is completed, with this last record.

        After a power failure, records that the previous slot listed may be lost. This slot has the id of the new boot,
        so it must not list them.

        Raises:
            OSError: when the disk is broken.
        """
        self._write(self.mark._replace(begun=True, last=last, synced=min(self.mark.synced, last)))

    def close(self) -> None:
        """Close the file."""
        self._disk.close(self._descriptor)

    def _write(self, mark: Mark) -> None:
        mark = mark._replace(number=self.mark.number + 1, boot=boot_id())
        self._disk.write(self._descriptor, [_packed(mark, self._session)], mark.number % 2 * SLOT_BYTES)
        self.mark = mark


def read_mark(folder: Path, session_id: str) -> Mark:
    """The current slot of a folder's manifest.

    Raises:
        JournalDamaged: when it is missing, damaged or of another session.
        OSError: when the disk is broken.
    """
    path = folder / MANIFEST
    data = read_small(path, MAX_BYTES)
    owner = _owner(data)
    slots = (data[at : at + _SLOT.size + 4] for at in (0, SLOT_BYTES))
    found = [slot for slot in map(_unpacked, slots) if slot is not None]
    if owner is None or not found:
        raise damaged(path, 0, "the checksum of the manifest does not match")
    session, mark = max(found, key=lambda each: each[1].number)
    if owner.session != session_id or session != session_digest(session_id):
        raise damaged(path, 0, f"the manifest belongs to another session than {session_id}")
    return mark


def read_owner(folder: Path) -> Owner | None:
    """The owner of a folder's session by its manifest; ``None`` if unknown."""
    try:
        owner = _owner(read_small(folder / MANIFEST, MAX_BYTES))
    except (JournalDamaged, OSError):
        return None
    return owner if owner is not None and owner.session == folder.name else None


def was_begun(folder: Path) -> bool:
    """Whether the creation of the session in this folder was completed."""
    try:
        return read_mark(folder, folder.name).begun
    except (JournalDamaged, OSError):
        return False


@lru_cache(1)
def boot_id() -> bytes:
    """The boot id of this machine; empty if unknown."""
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
