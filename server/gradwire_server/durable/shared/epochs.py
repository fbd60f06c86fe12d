"""The files of a session's epochs: taking them over, publishing them, removing older ones."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from gradwire_protocol.errors import Unavailable

from ...settings.session_spec import SessionSpec
from ..disk import Disk, open_file
from ..manifest import MANIFEST
from ..records import damaged
from ..snapshots import snapshots
from .claims import DIGITS, SESSIONS, epochs_of, numbered
from .directory_storage import DirectoryStorage, make_folders, sync_names
from .storage import Storage

COPY_TRIES: Final = 20
"""How often a copy begins anew because a former owner, not stopped yet, has replaced files meanwhile."""


class Published(msgspec.Struct, frozen=True, rename={"taken_from": "from"}):
    """The content of ``published/<epoch>``: from here on, the session is this epoch's files.

    Attributes:
        taken_from: the epoch whose files were taken over; 0 for a new session.
        record: the last record at that time.
        owner: who published it.
        at: Unix time.
        spec: the session's parameters, so that a list of sessions opens no files.
    """

    taken_from: int
    record: int
    owner: str
    at: float
    spec: SessionSpec


_PUBLISHED: Final = msgspec.json.Decoder(Published)
"""Made here, because threads must not use a class of msgspec for the first time at the same time."""


class Place(NamedTuple):
    """Where the files of a running session are, and the operations that write them."""

    folder: Path | None
    disk: Disk | None = None


class Vanished(Exception):
    """A file of an epoch was removed while it was read."""


class EpochFiles(Protocol):
    """The files of one session's epochs, for their owner. An epoch's folder ends with the session's id."""

    def fresh(self, epoch: int) -> Place:
        """The place for a new session."""

    def take_over(self, source: int, epoch: int) -> Place:
        """Copy the files of an epoch.

        Raises:
            Vanished: when its files were replaced or removed meanwhile.
            OSError: when the storage is unreachable or full.
        """

    def settle(self, epoch: int) -> None:
        """Make everything in the place durable. Its disk does so itself from here on.

        Raises:
            OSError: when the storage is unreachable or full.
        """

    def tidy(self, check: Callable[[], None]) -> None:
        """Join small pieces. ``check`` raises when nothing may be removed any more."""

    def leave(self) -> None:
        """Remove what only this machine has."""


def epoch_prefix(session_id: str, epoch: int) -> str:
    """What the keys of an epoch's files begin with."""
    return f"{SESSIONS}{session_id}/epochs/{epoch:0{DIGITS}d}/{session_id}/"


def newest_published(storage: Storage, session_id: str) -> tuple[int, Published] | None:
    """The newest published epoch; ``None`` if there is none.

    Raises:
        JournalDamaged: when its record is unreadable.
        OSError: when the storage is unreachable.
    """
    while True:
        epochs = epochs_of(storage, session_id, "published")
        if not epochs:
            return None
        key = numbered(session_id, "published", epochs[-1])
        data = storage.get(key)
        if data is None:
            continue  # a newer epoch has superseded it meanwhile
        try:
            return epochs[-1], _PUBLISHED.decode(data)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise damaged(Path(key), 0, f"the record of the epoch is unreadable: {error}") from None


def publish(storage: Storage, spec: SessionSpec, epoch: int, taken_from: int, record: int, owner: str) -> None:
    """Make an epoch the session.

    Raises:
        OSError: when the storage is unreachable.
    """
    found = Published(taken_from, record, owner, time.time(), spec)
    storage.create(numbered(spec.id, "published", epoch), msgspec.json.encode(found))


def remove_older(storage: Storage, session_id: str, epoch: int) -> None:
    """Remove all older epochs: superseded ones, and those that were never published.

    Raises:
        OSError: when the storage is unreachable.
    """
    for name in storage.children(f"{SESSIONS}{session_id}/epochs/"):
        if name.isdecimal() and int(name) < epoch:
            storage.delete(*storage.keys(f"{SESSIONS}{session_id}/epochs/{name}/"))
    older = [each for each in epochs_of(storage, session_id, "published") if each < epoch]
    storage.delete(*(numbered(session_id, "published", each) for each in older))


def copied(files: EpochFiles, newest: Callable[[], int], epoch: int) -> tuple[int, Place]:
    """Take over the newest published epoch. Returns its number and the place.

    A former owner may not know yet that it has ended, and remove files that it has replaced. The copy begins anew then.

    Raises:
        Unavailable: when files vanish again and again.
    """
    for _ in range(COPY_TRIES):
        source = newest()
        with suppress(Vanished):
            return source, files.take_over(source, epoch)
        time.sleep(0.02)
    raise Unavailable("a former owner of the session still replaces its files; try again")


class DirectoryEpochs:
    """Epochs in a mounted directory. Sessions run on them directly."""

    def __init__(self, storage: DirectoryStorage, session_id: str, disk: Disk | None = None) -> None:
        self._storage = storage
        self._session_id = session_id
        self._disk = disk or Disk()

    def folder(self, epoch: int) -> Path:
        """The folder of an epoch."""
        return self._storage.root / epoch_prefix(self._session_id, epoch).rstrip("/")

    def fresh(self, epoch: int) -> Place:
        folder = self.folder(epoch)
        make_folders(folder, self._storage.root)
        return Place(folder, self._disk)

    def take_over(self, source: int, epoch: int) -> Place:
        old, new = self.folder(source), self.folder(epoch)
        shutil.rmtree(new, ignore_errors=True)
        make_folders(new, self._storage.root)
        try:
            # The manifest comes first, because it must not know of more than the journals.
            self._copy(old / MANIFEST, new / MANIFEST)
            linked = {each.path for each in snapshots(old)}
            for path in sorted(old.iterdir()):
                if path in linked:
                    self._link(path, new / path.name)
                elif path.name != MANIFEST and not path.name.endswith(".part"):
                    self._copy(path, new / path.name)
        except FileNotFoundError as error:
            if not old.is_dir():
                raise damaged(old, 0, "the folder of the session's newest epoch is missing") from None
            if Path(str(error.filename)) == old / MANIFEST:
                raise damaged(old / MANIFEST, 0, "the file is missing") from None
            raise Vanished from None
        sync_names(new)
        return Place(new, self._disk)

    def _copy(self, old: Path, new: Path) -> None:
        with open(open_file(old), "rb") as source, open(new, "xb") as target:
            os.chmod(new, 0o600)
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            self._disk.sync(target.fileno())

    def _link(self, old: Path, new: Path) -> None:
        """A snapshot never changes, so another name is as good as a copy."""
        try:
            os.link(old, new, follow_symlinks=False)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without links
            self._copy(old, new)

    def settle(self, epoch: int) -> None:
        # The session's disk flushed everything.
        pass

    def tidy(self, check: Callable[[], None]) -> None:
        pass

    def leave(self) -> None:
        pass
