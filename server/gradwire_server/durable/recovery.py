"""Recovery: restores the newest intact snapshot and replays all later records.

The result is the state after some record with all earlier records applied; otherwise recovery fails. An incomplete last
record was never acknowledged as durable, so it is truncated with a warning. Recovery fails for damage before an intact
record, for a missing record, and for a missing snapshot that later files depend on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from gradwire_engine.autograd.failures import MOMENTARY, leaves_traces
from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.backends import Backends
from gradwire_engine.runtime.groups import Exchanged, Group, GroupSpec, Member
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import restore, rewound
from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError, JournalDamaged, OutOfMemory, Unavailable
from gradwire_protocol.frames import Chunk, Frame

from ..settings.session_spec import SessionSpec
from .checkpoints import Checkpoint
from .disk import Disk
from .journal import Journal, journal_path, journals
from .manifest import MANIFEST, Manifest, Mark, Owner, read_mark
from .records import Kind, Reader, Record, RewindNote, damaged
from .snapshots import Snapshot, read, snapshot_path, snapshots
from .store import Begins, KeptSpec

log = structlog.get_logger("gradwire.recovery")


class Recovered(NamedTuple):
    """A recovered session.

    Attributes:
        journal: open for appending.
        manifest: open; it names the journal.
        snapshot_bytes: the size of the restored snapshot; 0 without one.
        uncertain: an op failed halfway for a transient reason after the last snapshot.
    """

    session: Session
    journal: Journal
    manifest: Manifest
    snapshot_bytes: int
    uncertain: bool


class _Start(NamedTuple):
    """The start of a replay: a snapshot, or ``None`` for the empty session."""

    snapshot: Snapshot | None

    @property
    def seq(self) -> int:
        return self.snapshot.seq if self.snapshot is not None else 0


def recover(disk: Disk, folder: Path, kept: KeptSpec, backends: Backends | None = None) -> Recovered:
    """Recover the session in a folder. Files are changed only after everything was read and verified.

    Raises:
        JournalDamaged: names the file and the offset.
        OutOfMemory: when the session does not fit into memory.
        Unavailable: when the session needs compiled kernels that are not available.
        OSError: when the disk is full or broken.
    """
    spec = kept.spec
    mark = read_mark(folder, spec.id) if kept.manifest else None
    found = snapshots(folder)
    paths = journals(folder)
    # These numbers were certainly reached: a replay that ends before the last of them has lost records.
    named = max([*(each.seq for each in found), *paths, 0])
    reached = max(named, 0 if mark is None else mark.required)
    starts = [_Start(each) for each in found]
    if kept.begins == "empty":
        starts.append(_Start(None))
    refusal: JournalDamaged | None = None
    for start in starts:
        try:
            if not _complete(start, paths, spec.id, folder, reached, mark):
                continue
            session = _restore(start, spec, backends)
        except JournalDamaged as error:
            log.error("a file of a session is damaged", session=spec.id, error=error.message)
            refusal = refusal or error
            continue
        replayed = _replay(spec, session, start, paths, folder, reached, backends)
        return _reopen(disk, folder, spec, start, replayed, named, mark)
    raise refusal if refusal is not None else _without_start(folder, kept.begins, mark)


def _without_start(folder: Path, begins: Begins, mark: Mark | None) -> JournalDamaged:
    """The error for a session with neither a snapshot nor its first journal."""
    if mark is not None and mark.digest:
        return damaged(snapshot_path(folder, mark.snapshot, mark.digest.hex()), 0, "the file is missing")
    if begins == "empty":
        return damaged(journal_path(folder, 0), 0, "the file is missing, and there is no snapshot")
    return damaged(folder, 0, "the session's first snapshot is missing")


def _complete(
    start: _Start, paths: dict[int, Path], session_id: str, folder: Path, reached: int, mark: Mark | None
) -> bool:
    """Whether a start is followed by all later records.

    A new journal is created after its snapshot, and then the old journal is removed. A crash in between leaves the
    snapshot with the old journal, which has no records after the snapshot's. If it has, the snapshot was given up, and
    its upload to an object store took effect later: then the start before it counts. The manifest may name a journal
    that was given up: then the one before it goes on to the snapshot.
    """
    if start.seq in paths:
        return True
    if start.snapshot is None:
        return False
    last = _last_before(start, paths, session_id)
    if last > start.seq:
        return False
    known = mark is None or (mark.base < start.seq and (mark.base in paths or last == start.seq))
    if start.seq == reached and known:
        return True
    missing = start.seq if mark is None else min(start.seq, mark.base)
    raise damaged(journal_path(folder, missing), 0, f"the file is missing; it had record {missing + 1}")


def _last_before(start: _Start, paths: dict[int, Path], session_id: str) -> int:
    """The last record of the journal that began before a snapshot; -1 without one."""
    base = max((each for each in paths if each < start.seq), default=None)
    if base is None:
        return -1
    with Reader(paths[base], session_id) as reader:
        return max((record.seq for record in reader), default=base)


def _restore(start: _Start, spec: SessionSpec, backends: Backends | None) -> Session:
    limits = spec.engine_limits()
    if start.snapshot is None:
        return Session(limits, spec.device, spec.default_dtype, spec.seed, backends)
    image = read(start.snapshot, spec.id)
    try:
        return restore(image, limits, backends)
    except MemoryError as error:
        raise OutOfMemory(f"the session does not fit into memory: {error or 'allocation failed'}") from None
    except (msgspec.ValidationError, KeyError, IndexError, ValueError, TypeError) as error:
        # The digest matches, so another version of gradwire wrote this.
        raise damaged(start.snapshot.path, 0, f"unknown format of the snapshot: {error}") from None


class _Replayed(NamedTuple):
    """The result of a replay: the session, the last record and journal, and whether a snapshot is due: an op failed
    halfway, or the session was rewound."""

    session: Session
    at: int
    last: Reader | None
    uncertain: bool


def _replay(
    spec: SessionSpec, session: Session, start: _Start, paths: dict[int, Path], folder: Path, reached: int,
    backends: Backends | None,
) -> _Replayed:  # fmt: skip
    at, uncertain = start.seq, False
    last: Reader | None = None
    while (path := paths.get(at)) is not None:
        with Reader(path, spec.id) as reader:
            if reader.header.base != at:
                raise reader.damaged(0, f"its header says that it follows record {reader.header.base}")
            for record in reader:
                session, due = apply_record(session, record, path, spec, backends)
                uncertain = due or uncertain
            if reader.torn and reader.last < reached:
                raise reader.damaged(
                    reader.end, f"record {reader.last + 1} is damaged, but records up to {reached} were written"
                )
        last = reader
        if reader.last == at:
            break  # the journal is empty, so it is the last one
        at = reader.last
    if at < reached:
        path, end = (journal_path(folder, at), 0) if last is None else (last.path, last.end)
        raise damaged(path, end, f"record {at + 1} is missing, but records up to {reached} were written")
    return _Replayed(session, at, last, uncertain)


def _reopen(
    disk: Disk, folder: Path, spec: SessionSpec, start: _Start, replayed: _Replayed, named: int, mark: Mark | None
) -> Recovered:
    """Open the session's files for writing after the replay."""
    session, at, last, uncertain = replayed
    durable = spec.durability == "durable"
    if mark is None:
        manifest = Manifest.begin(disk, folder, Owner(spec.id, spec.tenant), Mark())
    else:
        manifest = Manifest(disk, folder / MANIFEST, spec.id, mark)
    if last is None or last.header.base < named:
        # Do not append to the old journal: a later recovery from the snapshot unreadable now would miss the records.
        journal = Journal.begin(disk, folder, spec.id, at, durable, manifest, start.snapshot)
    else:
        journal = Journal(disk, last.path, last.header, durable, manifest, at, last.end)
        if last.torn:
            log.warning(
                "truncating the torn end of a journal", session=spec.id, offset=last.end, bytes=last.torn, record=at + 1
            )
            journal.cut()
        if manifest.mark.base != last.header.base:  # an older copy, or a new manifest
            journal.announce(start.snapshot)
    manifest.complete(at)
    size = start.snapshot.path.stat().st_size if start.snapshot is not None else 0
    return Recovered(session, journal, manifest, size, uncertain)


def apply_record(
    session: Session, record: Record, path: Path, spec: SessionSpec, backends: Backends | None
) -> tuple[Session, bool]:
    """Replay a record of the journal at ``path``. Returns the session, another one after a rewind, and whether a
    snapshot is due: one of the record's ops failed halfway for a transient reason, or it is a rewind.

    Raises:
        JournalDamaged: when the replay has another result than the record, or its checkpoint is missing.
        OutOfMemory, Unavailable: as :func:`recover`.
    """
    try:
        if record.kind == Kind.REWIND:
            return _replay_rewind(session, record, path, spec, backends), True
        return session, _APPLY[record.kind](session, record)
    except (OutOfMemory, Unavailable, JournalDamaged):
        raise
    except (GradwireError, _ReplayDiffers, msgspec.MsgspecError) as error:
        raise damaged(path, record.offset, f"replaying record {record.seq} failed: {error}") from None


def _replay_rewind(
    session: Session, record: Record, path: Path, spec: SessionSpec, backends: Backends | None
) -> Session:
    note = record.notes.rewound
    if note is None:
        raise _ReplayDiffers("it names no checkpoint")
    return rewind(session, checkpoint_of(note).snapshot(path.parent), note.name, spec, backends)


def checkpoint_of(note: RewindNote) -> Checkpoint:
    """The checkpoint that a rewind names."""
    return Checkpoint(note.name, note.record, 0, note.digest, 0, 0.0)


def rewind(
    session: Session, found: Snapshot, name: str, spec: SessionSpec, backends: Backends | None
) -> Session:  # fmt: skip
    """The session at one of its checkpoints, in place of this one.

    Raises:
        JournalDamaged: when the checkpoint's file is missing or damaged.
        OutOfMemory: when both do not fit into memory.
    """
    why = f"was made after the checkpoint {name!r:.80}, to which the session was rewound, or was released before it"
    image = read(found, spec.id)
    try:
        return rewound(session, image, spec.engine_limits(), why, backends)
    except MemoryError as error:
        raise OutOfMemory(f"the checkpoint does not fit into memory: {error or 'allocation failed'}") from None


def _replay_frame(session: Session, record: Record) -> bool:
    frame, buffers = envelope.decode(record.message)
    if not isinstance(frame, Frame):
        raise _ReplayDiffers(f"its message is a {type(frame).__name__}")
    notes = record.notes
    if notes.human:
        frame.structure = msgspec.Raw(msgspec.msgpack.decode(frame.structure, type=bytes))
    if session.engine.compiled and not toolchain.wait():
        raise Unavailable(
            "the session used compiled kernels, and only they reproduce its values; this server has none: "
            f"{toolchain.describe()['reason']}"
        )
    groups = session.engine.groups
    exchanges = {name: Exchanged(tuple(e.received), tuple(e.needed)) for name, e in notes.exchanges.items()}
    for name, group in groups.items():
        group.replay(exchanges.get(name))
    reply, _ = session.apply(frame, buffers, notes.human, notes.failures)
    for name, group in groups.items():
        group.replayed(exchanges.get(name))
    if reply.refused is not None:
        raise _ReplayDiffers(f"the frame is refused: {reply.refused.detail}")
    for problem in session.failed:
        if problem.code in MOMENTARY and problem.index not in notes.failures:
            if problem.code == "out_of_memory":
                raise OutOfMemory(f"not enough memory to recover the session: {problem.detail}")
            raise _ReplayDiffers(f"op {problem.index} failed only in the replay: {problem.detail}")
    return any(leaves_traces(problem.op) for problem in notes.failures.values())


def _replay_chunk(session: Session, record: Record) -> bool:
    chunk, buffers = envelope.decode(record.message)
    if not isinstance(chunk, Chunk) or len(buffers) != 1:
        raise _ReplayDiffers(f"its message is a {type(chunk).__name__}")
    session.add_chunk(record.notes.client, chunk.transfer, chunk.offset, chunk.total, buffers[0])
    return False


def _replay_join(session: Session, record: Record) -> bool:
    session.join(record.notes.client, record.notes.instance, record.notes.epoch)
    return False


def _replay_drop(session: Session, record: Record) -> bool:
    session.drop_uploads(record.notes.client, record.notes.transfers)
    return False


def _replay_kernels(session: Session, record: Record) -> bool:
    session.run_compiled(record.notes.compiled)
    return False


def _replay_group(session: Session, record: Record) -> bool:
    opened, groups = record.notes.opened, session.engine.groups
    if opened is None:
        groups.pop(record.notes.closed, None)
    else:
        members = tuple([Member(*member) for member in opened.members])
        spec = GroupSpec(opened.name, opened.rank, opened.world_size, opened.token, opened.timeout_s, members)
        groups[opened.name] = Group(spec, keeps=True)
    return False


class _ReplayDiffers(Exception):
    """The replay of an intact record has another result."""


_APPLY: Final[dict[Kind, Callable[[Session, Record], bool]]] = {
    Kind.FRAME: _replay_frame,
    Kind.CHUNK: _replay_chunk,
    Kind.JOIN: _replay_join,
    Kind.DROP: _replay_drop,
    Kind.KERNELS: _replay_kernels,
    Kind.GROUP: _replay_group,
}
