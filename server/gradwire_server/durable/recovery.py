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
from .journal import PREFIX, SUFFIX, Journal, journal_path
from .manifest import MANIFEST, Manifest, Mark, Owner, read_mark
from .records import Kind, Reader, Record, damaged
from .snapshots import Snapshot, read, snapshot_path, snapshots
from .spec import SessionSpec
from .store import Begins, KeptSpec

_JOURNAL: Final = re.compile(re.escape(PREFIX) + r"(\d{20})" + re.escape(SUFFIX))

log = structlog.get_logger("gradwire.recovery")


class Recovered(NamedTuple):
    """A session as it was.

    Attributes:
        journal: open, behind its last record.
        manifest: open; the journal is the one that it names.
        snapshot_bytes: the size of the snapshot that it began with; 0 without one.
        uncertain: an op failed halfway for a reason of the moment, and no snapshot was taken since.
    """

    session: Session
    journal: Journal
    manifest: Manifest
    snapshot_bytes: int
    uncertain: bool


class _Start(NamedTuple):
    """Where a replay may begin: at a snapshot, or (``None``) at the beginning."""

    snapshot: Snapshot | None

    @property
    def seq(self) -> int:
        return self.snapshot.seq if self.snapshot is not None else 0


def recover(disk: Disk, folder: Path, kept: KeptSpec, backends: Backends | None = None) -> Recovered:
    """The session in a folder. Files are changed only once everything has been read and found right.

    Raises:
        JournalDamaged: naming the file and the offset.
        OutOfMemory: when there is too little memory to hold what the session held.
        Unavailable: when it was computed by compiled kernels that cannot be had here.
        OSError: when the disk is full or broken.
    """
    spec = kept.spec
    mark = read_mark(folder, spec.id) if kept.manifest else None
    found = snapshots(folder)
    paths = _journals(folder)
    # Numbers that were reached for sure: whatever ends before the last of them has lost something.
    named = max([*(each.seq for each in found), *paths, 0])
    reached = max(named, 0 if mark is None else mark.required)
    starts = [_Start(each) for each in found]
    if kept.begins == "empty":
        starts.append(_Start(None))
    refusal: JournalDamaged | None = None
    for start in starts:
        try:
            if not _complete(start, paths, folder, reached, mark):
                continue
            session = _begin(start, spec, backends)
        except JournalDamaged as error:
            log.error("a file of a session is damaged", session=spec.id, error=error.message)
            refusal = refusal or error
            continue
        replayed = _replay(spec, session, start, paths, folder, reached)
        return _reopened(disk, folder, spec, session, start, replayed, named, mark)
    raise refusal if refusal is not None else _without_start(folder, kept.begins, mark)


def _without_start(folder: Path, begins: Begins, mark: Mark | None) -> JournalDamaged:
    """The error for a session of which neither a snapshot nor the first journal is there."""
    if mark is not None and mark.digest:
        return damaged(snapshot_path(folder, mark.snapshot, mark.digest.hex()), 0, "it is missing")
    if begins == "empty":
        return damaged(journal_path(folder, 0), 0, "it is missing, and there is no snapshot")
    return damaged(folder, 0, "the snapshot that the session began with is missing")


def _journals(folder: Path) -> dict[int, Path]:
    """The journals by the number of the last record before them, as their names tell it."""
    matches = ((path, _JOURNAL.fullmatch(path.name)) for path in folder.iterdir())
    return {int(match[1]): path for path, match in matches if match is not None}


def _complete(start: _Start, paths: dict[int, Path], folder: Path, reached: int, mark: Mark | None) -> bool:
    """Whether the journals behind a start lead on from it without a gap, as far as their names tell.

    The journal behind a snapshot is begun after it, and the one before is removed after that: a crash in between leaves
    the snapshot with the old one, which has no records behind the snapshot's.
    """
    if start.seq in paths:
        return True
    if start.snapshot is None:
        return False
    if start.seq == reached and (mark is None or (mark.base < start.seq and mark.base in paths)):
        return True
    missing = start.seq if mark is None else min(start.seq, mark.base)
    raise damaged(journal_path(folder, missing), 0, f"it is missing: record {missing + 1} was to be in it")


def _begin(start: _Start, spec: SessionSpec, backends: Backends | None) -> Session:
    limits = spec.engine_limits()
    if start.snapshot is None:
        return Session(limits, spec.device, spec.default_dtype, spec.seed, backends)
    image = read(start.snapshot, spec.id)
    try:
        return restore(image, limits, backends)
    except MemoryError as error:
        raise OutOfMemory(f"the session does not fit into memory: {error or 'allocation failed'}") from None
    except (msgspec.ValidationError, KeyError, IndexError, ValueError, TypeError) as error:
        # The bytes are those that were written: by a gradwire that this one does not understand.
        raise damaged(start.snapshot.path, 0, f"the snapshot is of a form unknown here: {error}") from None


class _Replayed(NamedTuple):
    """What was replayed: up to which record, from which journal last, and whether an op failed halfway in it."""

    at: int
    last: Reader | None
    uncertain: bool


def _replay(
    spec: SessionSpec, session: Session, start: _Start, paths: dict[int, Path], folder: Path, reached: int
) -> _Replayed:
    at, uncertain = start.seq, False
    last: Reader | None = None
    while (path := paths.get(at)) is not None:
        with Reader(path, spec.id) as reader:
            if reader.header.base != at:
                raise reader.damaged(0, f"it says that it follows record {reader.header.base}")
            for record in reader:
                uncertain = _apply(session, record, path) or uncertain
            if reader.torn and reader.last < reached:
                raise reader.damaged(
                    reader.end, f"record {reader.last + 1} is damaged, and records up to {reached} were written"
                )
        last = reader
        if reader.last == at:
            break  # it is empty: the next journal, had there been one, would have its name
        at = reader.last
    if at < reached:
        path, end = (journal_path(folder, at), 0) if last is None else (last.path, last.end)
        raise damaged(path, end, f"record {at + 1} is missing, and records up to {reached} were written")
    return _Replayed(at, last, uncertain)


def _reopened(
    disk: Disk,
    folder: Path,
    spec: SessionSpec,
    session: Session,
    start: _Start,
    replayed: _Replayed,
    named: int,
    mark: Mark | None,
) -> Recovered:
    """The session with its files open to be written to, as what was replayed left them."""
    at, last, uncertain = replayed
    durable = spec.durability == "durable"
    if mark is None:
        manifest = Manifest.begin(disk, folder, Owner(spec.id, spec.tenant), Mark())
    else:
        manifest = Manifest(disk, folder / MANIFEST, spec.id, mark)
    if last is None or last.header.base < named:
        # Not the old journal: whoever comes back to the snapshot that could not be read now would miss what follows.
        journal = Journal.begin(disk, folder, spec.id, at, durable, manifest, start.snapshot)
    else:
        journal = Journal(disk, last.path, last.header, durable, manifest, at, last.end)
        if last.torn:
            log.warning(
                "the torn end of a journal is cut off", session=spec.id, offset=last.end, bytes=last.torn, record=at + 1
            )
            journal.cut()
        if manifest.mark.base != last.header.base:  # it is an older copy, or there was none
            journal.announce(start.snapshot)
    manifest.complete()
    size = start.snapshot.path.stat().st_size if start.snapshot is not None else 0
    return Recovered(session, journal, manifest, size, uncertain)


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
