"""The format of a journal. docs/durability.md has the layout as a table.

A journal is a header and a sequence of records. Each record begins with the journal's *mark*, eight random bytes that
no client knows. So the reader can find the next record after damage, and no client's data can look like a record.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from gradwire_protocol.errors import JournalDamaged
from gradwire_protocol.frames import Problem

from .disk import NotAFile, Piece, open_file

MAGIC: Final = b"GWIREJNL"
VERSION: Final = 1
MAX_RECORD_BYTES: Final = 2 << 30
"""Records are read into memory as a whole, so this bounds the reader's memory."""

SCAN_BYTES: Final = 1 << 20

_HEADER: Final = struct.Struct("<8sI16s8sQ16x")
_RECORD: Final = struct.Struct("<8sIIQBxxxI")
_COVERED: Final = slice(16, _RECORD.size)
"""The part of a record's head that its checksum covers: number, kind, length of the notes."""

HEADER_BYTES: Final = _HEADER.size + 4
RECORD_BYTES: Final = _RECORD.size


class Kind(IntEnum):
    """The kind of a record."""

    FRAME = 1
    CHUNK = 2
    JOIN = 3
    DROP = 4
    KERNELS = 5
    GROUP = 6
    REWIND = 7


class GroupNote(msgspec.Struct, array_like=True):
    """A group of sessions that was opened: see ``GroupSpec`` of the engine. ``members`` are (session, worker)."""

    name: str
    rank: int
    world_size: int
    token: str
    timeout_s: float
    members: list[tuple[str, str]]


class ExchangeNote(msgspec.Struct, array_like=True):
    """What a frame received from the other ranks of a group, as (rank, bytes) in order, and by rank the number of the
    first message that was still needed there."""

    received: list[tuple[int, bytes]]
    needed: list[int]


class RewindNote(msgspec.Struct, array_like=True):
    """The checkpoint to which the session was rewound: its name, last record and digest."""

    name: str
    record: int
    digest: str


class Notes(msgspec.Struct, array_like=True, omit_defaults=True):
    """A record's data beside the message.

    Attributes:
        client: the client of a chunk or a join.
        human: the structure of the frame is JSON, stored as MessagePack binary.
        failures: ops that failed for a transient reason, by index. They fail again in a replay.
        instance, epoch: those of a join.
        transfers: dropped uploads, which were resent with a frame that was already applied.
        compiled: whether compiled kernels run from here on.
        opened, closed: a group that was opened, or the name of one that was closed.
        exchanges: what a frame with collectives received, by group.
        rewound: the checkpoint of a rewind.
    """

    client: int = 0
    human: bool = False
    failures: dict[int, Problem] = {}
    instance: str = ""
    epoch: int = 0
    transfers: list[int] = []
    compiled: bool = False
    opened: GroupNote | None = None
    closed: str = ""
    exchanges: dict[str, ExchangeNote] = {}
    rewound: RewindNote | None = None


class Header(NamedTuple):
    """The header of a journal.

    Attributes:
        session: a digest of the session's id.
        mark: the first bytes of each record.
        base: the number of the last record before this journal.
    """

    session: bytes
    mark: bytes
    base: int


class Record(NamedTuple):
    """An intact record. ``offset`` and ``end`` are its position in the file."""

    seq: int
    kind: Kind
    notes: Notes
    message: memoryview
    offset: int
    end: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Notes)


def session_digest(session_id: str) -> bytes:
    """The digest of a session's id in a journal."""
    return hashlib.blake2b(session_id.encode(), digest_size=16).digest()


def new_header(session_id: str, base: int) -> Header:
    """The header of a new journal."""
    return Header(session_digest(session_id), os.urandom(8), base)


def encode_header(header: Header) -> bytes:
    """The first bytes of a journal."""
    packed = _HEADER.pack(MAGIC, VERSION, header.session, header.mark, header.base)
    return packed + zlib.crc32(packed).to_bytes(4, "little")


def encode_record(
    header: Header, seq: int, kind: Kind, notes: Notes, message: Sequence[Piece]
) -> tuple[list[Piece], int]:
    """A record as pieces to write consecutively, and their total length. The message is not copied."""
    noted = _encoder.encode(notes)
    length = len(noted) + sum(map(len, message))
    crc = zlib.crc32(noted, zlib.crc32(_RECORD.pack(b"", 0, 0, seq, kind, len(noted))[_COVERED]))
    for piece in message:
        crc = zlib.crc32(piece, crc)
    head = _RECORD.pack(header.mark, length, crc, seq, kind, len(noted))
    return [head, noted, *message], RECORD_BYTES + length


class Reader:
    """Reads a journal from its start, one record at a time.

    Attributes:
        end: the offset after the last intact record read.
        last: the number of that record.
        torn: the bytes after the last intact record of the file; known after the iteration.

    Raises:
        JournalDamaged: when the header is damaged or of another session.
    """

    def __init__(self, path: Path, session_id: str) -> None:
        self.path = path
        self._file = io.FileIO(open_kept(path), "rb")
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            self.header = self._header(session_id)
        except BaseException:
            self._file.close()
            raise
        self.end = HEADER_BYTES
        self.last = self.header.base
        self.torn = 0

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Record]:
        """The intact records in order.

        Raises:
            JournalDamaged: for damage before an intact record, and for a missing number.
        """
        while self.end < self.size:
            record = self._at(self.end)
            if record is None:
                later = self._intact_after(self.end)
                if later is not None:
                    raise self.damaged(self.end, f"record {self.last + 1} is damaged, but one at {later} is intact")
                self.torn = self.size - self.end
                return
            if record.seq != self.last + 1:
                raise self.damaged(self.end, f"record {record.seq} follows record {self.last}")
            self.last, self.end = record.seq, record.end
            yield record

    def damaged(self, offset: int, what: str) -> JournalDamaged:
        """The error for damage at this offset."""
        return damaged(self.path, offset, what)

    def _header(self, session_id: str) -> Header:
        data = self._read(0, HEADER_BYTES)
        if data is None:
            raise self.damaged(0, f"the file has {self.size} bytes, too few for a journal's header")
        packed, crc = data[: _HEADER.size], int.from_bytes(data[_HEADER.size :], "little")
        magic, version, session, mark, base = _HEADER.unpack(packed)
        if zlib.crc32(packed) != crc or magic != MAGIC:
            raise self.damaged(0, "the header of the journal is damaged")
        if version != VERSION:
            raise self.damaged(0, f"the journal has version {version}; this gradwire reads version {VERSION}")
        if session != session_digest(session_id):
            raise self.damaged(0, f"the journal belongs to another session than {session_id}")
        return Header(session, mark, base)

    def _read(self, at: int, length: int) -> memoryview | None:
        """Bytes of the file, or ``None`` where it ends too early."""
        data = bytearray(length)
        view = memoryview(data)
        done = 0
        while done < length:
            try:
                got = os.preadv(self._file.fileno(), [view[done : done + (1 << 30)]], at + done)
            except OSError as error:
                raise self.damaged(at + done, f"the disk does not give it back: {error}") from None
            if not got:
                return None
            done += got
        return view.toreadonly()

    def _at(self, at: int) -> Record | None:
        """The intact record at this offset, if there is one.

        Raises:
            JournalDamaged: for one that is intact and that this gradwire cannot read.
        """
        if at + RECORD_BYTES > self.size:
            return None
        head = self._read(at, RECORD_BYTES)
        if head is None:
            return None
        mark, length, crc, seq, kind, noted = _RECORD.unpack(head)
        end = at + RECORD_BYTES + length
        if mark != self.header.mark or noted > length or length > MAX_RECORD_BYTES or end > self.size:
            return None
        body = self._read(at + RECORD_BYTES, length)
        if body is None or zlib.crc32(body, zlib.crc32(head[_COVERED])) != crc:
            return None
        try:
            return Record(seq, Kind(kind), _decoder.decode(body[:noted]), body[noted:], at, end)
        except (msgspec.MsgspecError, ValueError) as error:
            raise self.damaged(at, f"this gradwire does not know the kind of record {seq}: {error}") from None

    def _intact_after(self, at: int) -> int | None:
        """The offset of the next intact record after a damaged one."""
        mark = self.header.mark
        position = at + 1
        while position + RECORD_BYTES <= self.size:
            block = self._read(position, min(SCAN_BYTES, self.size - position))
            if block is None:
                return None
            found = bytes(block).find(mark)
            if found < 0:
                # The mark may span the end of the block.
                position += max(len(block) - len(mark) + 1, 1)
                continue
            record = self._at(position + found)
            if record is not None and record.seq > self.last:
                return position + found
            position += found + 1
        return None


def open_kept(path: Path) -> int:
    """Open a session's file for reading.

    Raises:
        JournalDamaged: when it is missing, unreadable or not a regular file.
        OSError: when descriptors or memory are exhausted.
    """
    try:
        return open_file(path)
    except FileNotFoundError:
        raise damaged(path, 0, "the file is missing") from None
    except (NotAFile, PermissionError, NotADirectoryError) as error:
        raise damaged(path, 0, f"the file is unreadable: {error.strerror}") from None


def read_small(path: Path, most: int) -> bytes:
    """Read a session's file of at most this size.

    Raises:
        JournalDamaged: when it is larger, and like :func:`open_kept`.
        OSError: when the disk is broken.
    """
    with open(open_kept(path), "rb", buffering=0) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise damaged(path, most, f"the file has more than {most:,} bytes")
    return data


def damaged(path: Path, offset: int, what: str) -> JournalDamaged:
    """The error for a damaged file. It names the file, but not the data directory."""
    name = f"{path.parent.name}/{path.name}"
    return JournalDamaged(f"{name} is damaged at byte {offset:,}: {what}", file=name, offset=offset)
