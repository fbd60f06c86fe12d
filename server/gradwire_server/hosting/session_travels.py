"""What a runner does on the way through time: it keeps checkpoints, returns to them, and shows a session's past."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from gradwire_engine.runtime.backends import Backends
from gradwire_protocol.errors import InvalidRequest, JournalDamaged, Unavailable

from ..durable import checkpoints, recovery, snapshots
from ..durable.disk import Disk
from ..durable.journal import Journal, disk_refuses, superseded
from ..durable.records import Kind, Notes, RewindNote
from ..durable.store import DiskUse
from .session_queries import SessionQueries
from .snapshot_schedule import SnapshotSchedule
from .time_travel import SHOWN, Past, check_alone, history, imaged, no_journal, now


class SessionTravels(SessionQueries):
    """The time travel of a runner.

    Attributes:
        past: of a session that is only looked at.
        rewound: the journal has a rewind, so a replay needs its checkpoint.
    """

    folder: Path | None
    disk: Disk
    past: Past | None = None
    rewound = False
    _backends: Backends | None
    _journal: Journal | None
    _schedule: SnapshotSchedule
    _disk_use: DiskUse

    def commit(self) -> None:
        """See :class:`.runner.Runner`."""
        raise NotImplementedError

    def compact(self, force: bool = False) -> bool:
        """See :class:`.runner.Runner`."""
        raise NotImplementedError

    def _ensure_writable(self) -> None:
        raise NotImplementedError

    def travel(self, what: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do one of :data:`TRAVELS`.

        Raises:
            InvalidRequest: when the session has no journal, is in a group, or has transient state.
            NotFound: for an unknown checkpoint, or a frame that is not kept.
            LimitExceeded: for too many checkpoints or too many bytes on disk.
            JournalDamaged: when a file is damaged.
            Unavailable: when the disk is full or broken.
        """
        try:
            return TRAVELS[what](self, **arguments)
        except OSError as error:
            raise error if isinstance(error, Unavailable) else disk_refuses(error) from None

    def _written(self) -> tuple[Path, Journal]:
        """The folder and the journal, with all records written."""
        if self.folder is None or self._journal is None:
            raise no_journal(self.spec)
        self._ensure_writable()
        self.commit()
        return self.folder, self._journal

    def checkpoint(self, name: str) -> dict[str, Any]:
        """Keep the session's state under a name; a state that had the name is forgotten. Returns the checkpoint."""
        folder, journal = self._written()
        check_alone(self.session)
        checkpoints.check_room(folder, name)
        self._free_for_removal(folder, name)
        image = imaged(self.session)
        self._disk_use.check(image.nbytes)
        made = checkpoints.write(
            self.disk, folder, self.spec.id, name, journal.last, self.session.frames_applied, image, now()
        )
        self._disk_use.count(made.bytes)
        return _row(made)

    def rewind(self, name: str, frame: int | None = None) -> dict[str, Any]:
        """Return to a checkpoint, if it is of this frame. A record of the journal does so, once or not at all."""
        folder, journal = self._written()
        check_alone(self.session)
        found = checkpoints.find(folder, name)
        if frame is not None and frame != found.frame:
            raise InvalidRequest(
                f"checkpoint {name!r:.80} is of frame {found.frame} now, not of frame {frame}: it was made anew",
                frame=found.frame,
            )
        before = self.session
        after = recovery.rewind(before, found.snapshot(folder), name, self.spec, self._backends)
        checkpoints.note_use(self.disk, folder, name, journal.last + 1)
        note = RewindNote(name, found.record, found.digest)
        journal.append(Kind.REWIND, Notes(rewound=note), [])
        self.session = after
        # The commit replaces the journal by a snapshot, so that recovery need not replay what was given up.
        self.rewound = self._schedule.uncertain = True
        before.close()
        return _row(found) | {"rewound_at": self.session.frames_applied}

    def forget(self, name: str) -> dict[str, Any]:
        """Delete a checkpoint, and journals that only it needed."""
        folder, _ = self._written()
        self._free_for_removal(folder, name)
        gone = checkpoints.remove(self.disk, folder, name)
        base = self._journal.base if self._journal is not None else 0
        begin = next((each for each in snapshots.snapshots(folder) if each.seq == base), None)
        if begin is not None:
            for path in superseded(folder, begin, self._oldest_checkpoint(folder)):
                self.disk.remove(path)
        return _row(gone)

    def _free_for_removal(self, folder: Path, name: str) -> None:
        """Have no record of the journal name a checkpoint that is about to be removed.

        Raises:
            Unavailable: when a record still does.
        """
        if self.rewound and any(each.name == name for each in checkpoints.listed(folder)) and not self.compact(True):
            raise Unavailable(
                f"a replay of the journal still needs checkpoint {name!r:.80}, and no snapshot can replace it now: "
                f"{self._schedule.postponed}"
            )

    def history(self) -> dict[str, Any]:
        """How far back the session can be seen, and its checkpoints."""
        self._written()
        return history(self)

    def place(self) -> dict[str, Any]:
        """Where the files of its history are."""
        folder, _ = self._written()
        return {"folder": str(folder), "frame": self.session.frames_applied}

    def alone(self) -> dict[str, Any]:
        """Check that the session may be forked, and tell at which frame it is."""
        check_alone(self.session)
        return {"frame": self.session.frames_applied}

    def advance(self, frame: int) -> dict[str, Any]:
        """Show another frame of the session whose past this is."""
        if self.past is None:
            raise InvalidRequest(f"session {self.spec.id} is not a look at another one's past")
        self.session = self.past.advance(frame)
        return {"frame": frame}

    def _oldest_checkpoint(self, folder: Path) -> int | None:
        """The record since which compactions leave the journals; ``None`` without a checkpoint."""
        try:
            return min((each.record for each in checkpoints.listed(folder)), default=None)
        except JournalDamaged:
            return 0


def _row(found: checkpoints.Checkpoint) -> dict[str, Any]:
    row = msgspec.structs.asdict(found)
    return {key: row[key] for key in SHOWN}


TRAVELS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "checkpoint": SessionTravels.checkpoint,
    "rewind": SessionTravels.rewind,
    "forget": SessionTravels.forget,
    "history": SessionTravels.history,
    "place": SessionTravels.place,
    "alone": SessionTravels.alone,
    "advance": SessionTravels.advance,
}
