"""The way back: the newest snapshot that is intact, then every record behind it, applied as it was the first time.

Either the session is what it was after some record, with every record before that applied, or this refuses. A record
at the very end that is not whole was never acknowledged as durable, so it is cut off, with a warning. What may not be
cut: damage in front of an intact record, a record that is missing, a snapshot that others rely on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from gradwire_engine.backends import Backends
from gradwire_engine.compiled import toolchain
from gradwire_engine.failures import MOMENTARY, leaves_traces
from gradwire_engine.image import restore
from gradwire_engine.session import Session
from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError, JournalDamaged, OutOfMemory, Unavailable
from gradwire_protocol.frames import Chunk, Frame

from .disk import Disk
from .journal import PREFIX, SUFFIX, Journal
from .records import Kind, Reader, Record, damaged
from .snapshots import Snapshot, read, snapshots
from .spec import SessionSpec
from .store import Begins

_JOURNAL: Final = re.compile(re.escape(PREFIX) + r"(\d{20})" + re.escape(SUFFIX))

log = structlog.get_logger("gradwire.recovery")


class Recovered(NamedTuple):
    """A session as it was.

    Attributes:
        journal: open, behind its last record.
        snapshot_bytes: the size of the snapshot that it began with; 0 without one.
        uncertain: an op failed halfway for a reason of the moment, and no snapshot was taken since.
    """

    session: Session
    journal: Journal
    snapshot_bytes: int
    uncertain: bool


class _Start(NamedTuple):
    """Where a replay may begin: at a snapshot, or (``None``) at the beginning."""

    snapshot: Snapshot | None

    @property
    def seq(self) -> int:
        return self.snapshot.seq if self.snapshot is not None else 0


def recover(disk: Disk, folder: Path, spec: SessionSpec, begins: Begins, backends: Backends | None = None) -> Recovered:
    """The session in a folder. Files are changed only once everything has been read and found right.

    Raises:
        JournalDamaged: naming the file and the offset.
        OutOfMemory: when there is too little memory to hold what the session held.
        Unavailable: when it was computed by compiled kernels that cannot be had here.
        OSError: when the disk is full or broken.
    """
    found = snapshots(folder)
    paths = _journals(folder)
    # Numbers that were reached for sure: whatever ends before the last of them has lost something.
    reached = max([*(each.seq for each in found), *paths, 0])
    starts = [_Start(each) for each in found]
    if begins == "empty":
        starts.append(_Start(None))
    refusal: JournalDamaged | None = None
    for start in starts:
        try:
            if not _complete(start, paths, folder, reached):
                continue
            session = _begin(start, spec, backends)
        except JournalDamaged as error:
            log.error("a snapshot is damaged", session=spec.id, error=error.message)
            refusal = refusal or error
            continue
        return _replay(disk, folder, spec, session, start, paths, reached)
    if refusal is not None:
        raise refusal
    raise damaged(folder / "session.json", 0, "neither a snapshot nor the first journal of the session is there")


def _journals(folder: Path) -> dict[int, Path]:
    """The journals by the number of the last record before them, as their names tell it."""
    matches = ((path, _JOURNAL.fullmatch(path.name)) for path in folder.iterdir())
    return {int(match[1]): path for path, match in matches if match is not None}


def _complete(start: _Start, paths: dict[int, Path], folder: Path, reached: int) -> bool:
    """Whether the journals behind a start lead on from it without a gap, as far as their names tell."""
    if start.seq in paths:
        return True
    if start.snapshot is None:
        return False
    # The journal behind a snapshot is begun after it: a crash in between leaves none, and nothing behind it either.
    if start.seq == reached:
        return True
    raise damaged(start.snapshot.path, 0, f"the journal behind record {start.seq} is missing")


def _begin(start: _Start, spec: SessionSpec, backends: Backends | None) -> Session:
    limits = spec.engine_limits()
    if start.snapshot is None:
        return Session(limits, spec.device, spec.default_dtype, spec.seed, backends)
    image = read(start.snapshot)
    try:
        return restore(image, limits, backends)
    except MemoryError as error:
        raise OutOfMemory(f"the session does not fit into memory: {error or 'allocation failed'}") from None
    except (msgspec.ValidationError, KeyError, IndexError, ValueError, TypeError) as error:
        # The bytes are those that were written: by a gradwire that this one does not understand.
        raise damaged(start.snapshot.path, 0, f"the snapshot is of a form unknown here: {error}") from None


def _replay(
    disk: Disk,
    folder: Path,
    spec: SessionSpec,
    session: Session,
    start: _Start,
    paths: dict[int, Path],
    reached: int,
) -> Recovered:
    at, uncertain = start.seq, False
    last: Reader | None = None
    while (path := paths.get(at)) is not None:
        with Reader(path, spec.id) as reader:
            if reader.header.base != at:
                raise reader.damaged(0, f"it says that it follows record {reader.header.base}")
            for record in reader:
                uncertain = _apply(session, record, path) or uncertain
            if reader.torn and reader.last < reached:
                raise reader.damaged(reader.end, f"record {reader.last + 1} is damaged, and later ones are not")
        last = reader
        if reader.last == at:
            break  # it is empty: the next journal, had there been one, would have its name
        at = reader.last
    if at < reached:
        raise damaged(last.path if last else folder, last.end if last else 0, f"record {at + 1} is missing")
    durable = spec.durability == "durable"
    if last is None or last.header.base < reached:
        # Not the old journal: whoever comes back to the snapshot that could not be read now would miss what follows.
        journal = Journal.begin(disk, folder, spec.id, at, durable)
    else:
        journal = Journal(disk, last.path, last.header, durable, last.last, last.end)
        if last.torn:
            log.warning(
                "the torn end of a journal is cut off", session=spec.id, offset=last.end, bytes=last.torn, record=at + 1
            )
            journal.cut()
    size = start.snapshot.path.stat().st_size if start.snapshot is not None else 0
    return Recovered(session, journal, size, uncertain)


def _apply(session: Session, record: Record, path: Path) -> bool:
    """Do again what a record tells; whether an op of it failed for a reason of the moment."""
    try:
        return _APPLY[record.kind](session, record)
    except (OutOfMemory, Unavailable):
        raise
    except (GradwireError, _Unexpected, msgspec.MsgspecError) as error:
        raise damaged(path, record.offset, f"record {record.seq} cannot be applied again: {error}") from None


def _frame(session: Session, record: Record) -> bool:
    frame, buffers = envelope.decode(record.message)
    if not isinstance(frame, Frame):
        raise _Unexpected(f"it is a {type(frame).__name__}")
    notes = record.notes
    if notes.human:
        frame.structure = msgspec.Raw(msgspec.msgpack.decode(frame.structure, type=bytes))
    if session.engine.compiled and not toolchain.wait():
        raise Unavailable(
            "the session was computed by compiled kernels, and its journal gives the same values by them only; this "
            f"server has none: {toolchain.describe()['reason']}"
        )
    reply, _ = session.apply(frame, buffers, notes.human, notes.failures)
    if reply.refused is not None:
        raise _Unexpected(f"it is refused: {reply.refused.detail}")
    for problem in session.failed:
        if problem.code in MOMENTARY and problem.index not in notes.failures:
            if problem.code == "out_of_memory":
                raise OutOfMemory(f"the session cannot be brought back in this memory: {problem.detail}")
            raise _Unexpected(f"op {problem.index} failed this time: {problem.detail}")
    return any(leaves_traces(problem.op) for problem in notes.failures.values())


def _chunk(session: Session, record: Record) -> bool:
    chunk, buffers = envelope.decode(record.message)
    if not isinstance(chunk, Chunk) or len(buffers) != 1:
        raise _Unexpected(f"it is a {type(chunk).__name__}")
    session.add_chunk(record.notes.client, chunk.transfer, chunk.offset, chunk.total, buffers[0])
    return False


def _join(session: Session, record: Record) -> bool:
    session.join(record.notes.client, record.notes.instance, record.notes.epoch)
    return False


def _drop(session: Session, record: Record) -> bool:
    session.drop_uploads(record.notes.client, record.notes.transfers)
    return False


def _kernels(session: Session, record: Record) -> bool:
    session.run_compiled(record.notes.compiled)
    return False


class _Unexpected(Exception):
    """A record that is intact and does not do what it did."""


_APPLY: Final[dict[Kind, Callable[[Session, Record], bool]]] = {
    Kind.FRAME: _frame,
    Kind.CHUNK: _chunk,
    Kind.JOIN: _join,
    Kind.DROP: _drop,
    Kind.KERNELS: _kernels,
}
