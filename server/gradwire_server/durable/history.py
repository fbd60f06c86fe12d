"""The history of a session: its states after earlier frames, computed again from what the folder keeps.

A replay starts at the empty session, at the snapshot before the journal or at a checkpoint, and applies the journals'
records. It reads the folder only, also while the session runs in another thread or process and appends to it. Frames
are counted over all clients of the session, and a rewind counts as one: ``frames_applied`` names a state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from gradwire_engine.runtime.backends import Backends
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import Image, restore
from gradwire_protocol.errors import InvalidRequest, JournalDamaged, NotFound

from ..settings.session_spec import SessionSpec
from . import checkpoints
from .journal import journals
from .records import Kind, Reader, Record
from .recovery import apply_record
from .snapshots import Snapshot, read, snapshots
from .store import read_spec

TRIES: Final = 5
PAUSE_S: Final = 0.05
"""A compaction may remove files while they are read."""


class Source(NamedTuple):
    """The session whose history is read: its folder and parameters, and whether it began empty."""

    folder: Path
    spec: SessionSpec
    empty: bool

    @classmethod
    def of(cls, folder: Path) -> Source:
        """The session of a folder.

        Raises:
            JournalDamaged: when its description is damaged.
        """
        kept = read_spec(folder)
        return cls(folder, kept.spec, kept.begins == "empty")


class _Start(NamedTuple):
    """A state that is on disk: after this frame and record. ``snapshot``: its file; ``None`` for the empty session."""

    frame: int
    record: int
    snapshot: Snapshot | None


class Replay:
    """A session as it was, at one frame at a time.

    Args:
        frame: how many frames it had applied; ``None`` for the oldest that is kept.
        backends: where its tensors are.

    Attributes:
        session: the session after :attr:`frame` frames.
        record: the last record that it includes.

    Raises:
        NotFound: when the folder does not reach so far back, or so many frames were not applied yet.
        JournalDamaged: when a file is damaged.
    """

    def __init__(self, source: Source, frame: int | None = None, backends: Backends | None = None) -> None:
        self.source = source
        self._backends = backends
        self.session: Session
        self.record = 0
        self._begin(frame)

    @property
    def frame(self) -> int:
        """How many frames the session has applied."""
        return self.session.frames_applied

    def advance(self, frame: int) -> None:
        """Go to another frame; to an earlier one from the nearest state on disk.

        Raises:
            NotFound, JournalDamaged: as the constructor.
        """
        if frame < self.frame:
            self._begin(frame)
        elif frame > self.frame:
            self._forward(frame)

    def steps(self) -> Iterator[Record]:
        """Apply the remaining records one by one; each is yielded after it was applied.

        Raises:
            JournalDamaged: when a file is damaged.
        """
        while True:
            before = self.record
            yield from self._rest()
            if self.record == before:
                return

    def _rest(self) -> Iterator[Record]:
        """Apply the records of the journal with the next record, and of no other."""
        bases = journals(self.source.folder)
        base = max((each for each in bases if each <= self.record), default=None)
        if base is None:
            return
        path = bases[base]
        with Reader(path, self.source.spec.id) as reader:
            for record in reader:
                if record.seq <= self.record:
                    continue
                session, _ = apply_record(self.session, record, path, self.source.spec, self._backends)
                self.session, self.record = session, record.seq
                yield record

    def _begin(self, frame: int | None) -> None:
        for again in range(TRIES):
            try:
                self._start(frame)
                if frame is not None:
                    self._forward(frame)
                return
            except JournalDamaged:
                if again == TRIES - 1:
                    raise
                time.sleep(PAUSE_S)  # a compaction may have removed it

    def _start(self, frame: int | None) -> None:
        starts = list(_starts(self.source))
        if not starts:
            raise NotFound(f"session {self.source.spec.id} keeps none of its states on disk")
        usable = [each for each in starts if frame is None or each.frame <= frame]
        if not usable:
            first = min(each.frame for each in starts)
            raise NotFound(
                f"frame {frame} is not kept any more: the journal begins after frame {first}, since a snapshot "
                "replaced what was before; a checkpoint keeps what follows it", oldest=first,
            )  # fmt: skip
        # The oldest state that is reached without an end, or the newest one before the frame.
        chosen = (min if frame is None else max)(usable, key=lambda each: (each.frame, each.record))
        self.session, self.record = self._restored(chosen), chosen.record

    def _restored(self, start: _Start) -> Session:
        spec = self.source.spec
        if start.snapshot is None:
            return Session(spec.engine_limits(), spec.device, spec.default_dtype, spec.seed, self._backends)
        return restore(read(start.snapshot, spec.id), spec.engine_limits(), self._backends)

    def _forward(self, frame: int) -> None:
        if self.frame == frame:
            return
        for record in self.steps():
            if self.frame == frame and record.kind in (Kind.FRAME, Kind.REWIND):
                return
        if self.frame < frame:
            raise NotFound(
                f"frame {frame} was not applied yet: the session has applied {self.frame}", newest=self.frame
            )


def oldest_frame(source: Source) -> int:
    """The oldest frame to which the folder reaches back.

    Raises:
        JournalDamaged: when a file is damaged.
    """
    return min((each.frame for each in _starts(source)), default=0)


def _starts(source: Source) -> Iterator[_Start]:
    """The states on disk that the journals lead on from."""
    bases = journals(source.folder)
    if source.empty and 0 in bases:
        yield _Start(0, 0, None)
    for each in snapshots(source.folder):
        if each.seq in bases:
            yield _Start(_frame_of(read(each, source.spec.id)), each.seq, each)
    for kept in checkpoints.listed(source.folder):
        if any(base <= kept.record for base in bases):
            yield _Start(kept.frame, kept.record, kept.snapshot(source.folder))


def _frame_of(image: Image) -> int:
    frame = image.facts.get("frames_applied")
    if type(frame) is not int:
        raise InvalidRequest("the snapshot does not say how many frames it includes")
    return frame
