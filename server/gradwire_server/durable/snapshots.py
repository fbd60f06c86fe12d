"""Snapshots: a session in one safetensors file, with its facts as JSON in the file's metadata.

A snapshot's name contains the number of the last included record and the digest of the file. Exported sessions have the
same format under another name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gradwire_engine.snapshot import Image
from gradwire_protocol import bounds
from gradwire_protocol.errors import InvalidRequest

from .disk import Disk, Piece, write_whole
from .records import damaged, open_kept

FORM: Final = "gradwire-session-1"
BLOCK_BYTES: Final = 1 << 20
_NAME: Final = re.compile(r"snapshot-(\d{20})-([0-9a-f]{32})\.safetensors")
_METADATA: Final = "__metadata__"

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Snapshot(NamedTuple):
    """A snapshot on disk. ``seq``: the last included record."""

    path: Path
    seq: int
    digest: str


class _Entry(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class _Unreadable(Exception):
    """The bytes are not a session."""


def encode(image: Image, **metadata: str) -> list[Piece]:
    """The image as the pieces of a safetensors file; its arrays are not copied."""
    facts = msgspec.json.encode(image.facts).decode()
    header: dict[str, Any] = {_METADATA: {"form": FORM, **metadata, "facts": facts}}
    at = 0
    for name, array in image.arrays.items():
        header[name] = _Entry("U8", (array.nbytes,), (at, at + array.nbytes))
        at += array.nbytes
    encoded = msgspec.json.encode(header)
    encoded += b" " * (-len(encoded) % 8)
    return [len(encoded).to_bytes(8, "little"), encoded, *(array.data for array in image.arrays.values())]


def decode(data: bytes | memoryview) -> Image:
    """The image in an imported file. Its arrays are copies; its facts are not validated.

    Raises:
        InvalidRequest: when the file is not an exported session.
    """
    whole = np.frombuffer(data, np.uint8)
    try:
        return _decode(lambda at, size: whole[at : at + size].copy(), len(whole))[0]
    except _Unreadable as error:
        raise InvalidRequest(f"the file is not an exported session: {error}") from None


def check_header(data: bytes | memoryview, most: int) -> None:
    """Check that the decoded header of a file takes at most ``most`` bytes, without decoding it.

    Raises:
        LimitExceeded: when it would take more.
    """
    length = int.from_bytes(data[:8], "little")
    bounds.check_embedded_json(memoryview(data)[8 : 8 + length], most)


def snapshot_path(folder: Path, seq: int, digest: str) -> Path:
    """The path of the snapshot that includes the records up to ``seq``."""
    return folder / f"snapshot-{seq:020d}-{digest}.safetensors"


def write(disk: Disk, folder: Path, session_id: str, seq: int, image: Image) -> Snapshot:
    """Write a snapshot and flush it to the medium.

    Raises:
        OSError: when the disk is full or broken.
    """
    pieces = encode(image, session=session_id, record=str(seq))
    digest = _digest(pieces)
    path = snapshot_path(folder, seq, digest)
    write_whole(disk, path, pieces)
    return Snapshot(path, seq, digest)


def read(snapshot: Snapshot, session_id: str) -> Image:
    """Read a snapshot.

    Raises:
        JournalDamaged: when the file is damaged or of another session.
    """
    path = snapshot.path
    found = hashlib.blake2b(digest_size=16)
    size = 0
    try:
        with open(open_kept(path), "rb") as file:
            while block := file.read(BLOCK_BYTES):
                found.update(block)
                size += len(block)
            if found.hexdigest() != snapshot.digest:
                raise damaged(path, 0, "the digest of the snapshot does not match")
            # Map the file, because restoring copies it anyway.
            whole: Bytes = np.memmap(file, np.uint8, "r").view(np.ndarray)
        image, metadata = _decode(lambda at, count: whole[at : at + count], size)
    except (OSError, _Unreadable) as error:
        raise damaged(path, 0, f"the snapshot is unreadable: {error}") from None
    # Snapshots of earlier versions lack these metadata.
    if metadata.get("session", session_id) != session_id or metadata.get("record", str(snapshot.seq)) != str(
        snapshot.seq
    ):
        raise damaged(path, 0, f"the snapshot is not that of session {session_id} after record {snapshot.seq}")
    return image


def snapshots(folder: Path) -> list[Snapshot]:
    """The snapshots of a session, newest first."""
    matches = ((path, _NAME.fullmatch(path.name)) for path in folder.iterdir())
    found = [Snapshot(path, int(match[1]), match[2]) for path, match in matches if match is not None]
    return sorted(found, key=lambda each: each.seq, reverse=True)


def _digest(pieces: Sequence[Piece]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


def _decode(take: Callable[[int, int], Bytes], size: int) -> tuple[Image, dict[str, str]]:
    if size < 8:
        raise _Unreadable(f"the file has only {size} bytes")
    length = int.from_bytes(take(0, 8).tobytes(), "little")
    if length > size - 8:
        raise _Unreadable("its header is truncated")
    try:
        header = msgspec.json.decode(take(8, length).tobytes(), type=dict[str, msgspec.Raw])
        metadata = msgspec.json.decode(header.pop(_METADATA, msgspec.Raw(b"{}")), type=dict[str, str])
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in header.items()}
        if metadata.get("form") != FORM:
            raise _Unreadable(f"its metadata lack the form {FORM!r}")
        facts = msgspec.json.decode(metadata.get("facts", ""), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _Unreadable(f"its header is invalid: {error}") from None
    arrays: dict[str, Bytes] = {}
    at = 0
    for name, entry in entries.items():
        begin, end = entry.data_offsets
        if entry.dtype != "U8" or begin != at or end < begin or entry.shape != (end - begin,):
            raise _Unreadable(f"entry {name!r:.80} does not follow the previous entry")
        at = end
    if 8 + length + at != size:
        raise _Unreadable(f"its data must have {at} bytes, not {size - 8 - length}")
    for name, entry in entries.items():
        begin, end = entry.data_offsets
        arrays[name] = take(8 + length + begin, end - begin)
    return Image(facts, arrays), metadata
