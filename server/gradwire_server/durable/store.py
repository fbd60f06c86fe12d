"""The data directory: its sessions, its lock and its disk use. docs/durability.md has its layout."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
import structlog

from gradwire_protocol.errors import JournalDamaged, LimitExceeded, Unavailable

from ..settings.session_spec import SessionSpec
from .disk import Disk, write_whole
from .journal import PREFIX
from .manifest import read_owner, was_begun
from .records import HEADER_BYTES, damaged, read_small

SPEC: Final = "session.json"
REMOVED: Final = "session.json.removed"
"""The name of ``session.json`` while its session is being removed."""

MAX_SPEC_BYTES: Final = 1 << 20
SESSIONS: Final = "sessions"
LOCK: Final = "lock"
LOCK_PATIENCE_S: Final = 5.0
"""A killed process releases its locks only when it has ended."""

LOOK_EVERY_S: Final = 2.0

log = structlog.get_logger("gradwire.store")

Begins = Literal["empty", "snapshot"]


class KeptSpec(NamedTuple):
    """The content of ``session.json``.

    Attributes:
        begins: whether the session started empty or from a snapshot.
        manifest: whether its folder has a manifest; folders of earlier versions have none.
    """

    spec: SessionSpec
    begins: Begins
    manifest: bool = True


class DamagedSession(NamedTuple):
    """A folder with an unreadable ``session.json``. ``tenant``: the owner, if known."""

    error: JournalDamaged
    tenant: str | None


class _Kept(msgspec.Struct):
    """The format of ``session.json``. The digest covers the other fields."""

    digest: str
    begins: Begins
    spec: msgspec.Raw
    manifest: bool = False


def write_spec(disk: Disk, folder: Path, spec: SessionSpec, begins: Begins = "empty") -> None:
    """Write ``session.json``, which makes the session exist.

    Raises:
        OSError: when the disk is full or broken.
    """
    encoded = msgspec.json.encode(spec)
    kept = _Kept(_digest(encoded, begins, True), begins, msgspec.Raw(encoded), True)
    write_whole(disk, folder / SPEC, [msgspec.json.encode(kept) + b"\n"])


def read_spec(folder: Path) -> KeptSpec:
    """Read the ``session.json`` of a folder.

    Raises:
        JournalDamaged: when the file is missing, damaged or of another session.
    """
    path = folder / SPEC
    try:
        kept = msgspec.json.decode(read_small(path, MAX_SPEC_BYTES), type=_Kept)
        if kept.digest != _digest(bytes(kept.spec), kept.begins, kept.manifest):
            raise damaged(path, 0, "its digest does not match")
        spec = msgspec.json.decode(kept.spec, type=SessionSpec)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise damaged(path, 0, f"the file is unreadable: {error}") from None
    if spec.id != folder.name:
        raise damaged(path, 0, f"it belongs to session {spec.id}")
    return KeptSpec(spec, kept.begins, kept.manifest)


def _digest(encoded: bytes, begins: str, manifest: bool) -> str:
    facts = (begins + ("+manifest" if manifest else "")).encode()
    return hashlib.blake2b(facts + b"\0" + encoded, digest_size=16).hexdigest()


def note_use(folder: Path, at: float) -> None:
    """Save the Unix time of a session's last use.

    Raises:
        OSError: when the disk is broken, or the folder is gone.
    """
    os.utime(folder / SPEC, (at, at))


def last_use(folder: Path) -> float:
    """The Unix time of a session's last use: the modification time of its newest file."""
    return max((each.lstat().st_mtime for each in folder.iterdir()), default=0.0)


class Lock:
    """An exclusive lock on a file or folder. The system releases it when the process ends.

    Raises:
        Unavailable: when another process keeps the lock.
    """

    def __init__(self, path: Path) -> None:
        # Do not block on a pipe.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        until = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    # A file system without locks cannot protect against a second server.
                    log.warning("the file system does not support locks", path=str(path), error=str(error))
                elif time.monotonic() < until:
                    time.sleep(0.02)
                    continue
                else:
                    self.release()
                    raise Unavailable(f"{path.name} is in use by another process") from None
            return

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


class Store:
    """A data directory.

    Raises:
        Unavailable: when another server uses it.
    """

    def __init__(self, root: Path, max_data_bytes: int = 0, disk: Disk | None = None) -> None:
        self.root = root
        self.disk = disk or Disk()
        self.max_data_bytes = max_data_bytes
        self.disk.make_folder(self.sessions)
        (root / LOCK).touch(mode=0o600)
        self._lock = Lock(root / LOCK)

    @property
    def sessions(self) -> Path:
        """The parent of the sessions' folders."""
        return self.root / SESSIONS

    def folder(self, session_id: str) -> Path:
        """The folder of a session, existing or not."""
        return self.sessions / session_id

    def specs(self) -> Iterator[tuple[str, SessionSpec | DamagedSession]]:
        """The ids and specs of the directory's sessions; unreadable ones with the error."""
        for folder in self._folders():
            try:
                yield folder.name, read_spec(folder).spec
            except JournalDamaged as error:
                if not _unfinished(folder):
                    owner = read_owner(folder)
                    yield folder.name, DamagedSession(error, None if owner is None else owner.tenant)

    def sweep(self) -> None:
        """Remove the remains of sessions whose creation or removal was interrupted."""
        for folder in self._folders():
            if _unfinished(folder):
                log.warning("removing the remains of a session", session=folder.name)
                try:
                    remove_session(self.disk, folder)
                except OSError as error:
                    log.warning("cannot remove them", session=folder.name, reason=str(error))

    def _folders(self) -> list[Path]:
        with os.scandir(self.sessions) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))

    def remove(self, session_id: str) -> None:
        """Remove a closed session."""
        remove_session(self.disk, self.folder(session_id))

    def check_room(self, nbytes: int = 0) -> None:
        """Check that the disk limit allows a new session.

        Raises:
            LimitExceeded: when it does not.
        """
        DiskUse.of(self.sessions, self.max_data_bytes).check(nbytes)

    def close(self) -> None:
        """Release the directory for another server."""
        self._lock.release()


def remove_session(disk: Disk, folder: Path) -> None:
    """Remove a session's folder. After an interruption the session is either removed or intact."""
    if not os.path.lexists(folder):
        return
    if os.path.lexists(folder / SPEC):
        disk.rename(folder / SPEC, folder / REMOVED)
        disk.sync_folder(folder)
    for path in sorted(folder.iterdir(), key=lambda each: (each.name == REMOVED, each.name)):
        disk.remove(path)
    disk.remove_folder(folder)


def _unfinished(folder: Path) -> bool:
    """Whether a folder remains from an interrupted creation or removal, so that no client used it."""
    try:
        names = set(os.listdir(folder))
        if REMOVED in names or not names:
            return True
        if SPEC in names or was_begun(folder):
            return False
        return all((folder / name).lstat().st_size <= HEADER_BYTES for name in names if name.startswith(PREFIX))
    except OSError:
        return False


class DiskUse:
    """The disk use of all sessions, measured at intervals.

    Attributes:
        most: the limit in bytes; 0 for none.
    """

    _known: dict[Path, DiskUse] = {}

    def __init__(self, sessions: Path, most: int) -> None:
        self.sessions = sessions
        self.most = most
        self._at = -LOOK_EVERY_S
        self._used = 0
        self._added = 0

    @classmethod
    def of(cls, sessions: Path, most: int) -> DiskUse:
        """The shared instance for this folder."""
        found = cls._known.get(sessions)
        if found is None or found.most != most:
            found = cls._known[sessions] = cls(sessions, most)
        return found

    def check(self, nbytes: int) -> None:
        """Check that the limit allows this many more bytes.

        Raises:
            LimitExceeded: when it does not.
        """
        if not self.most:
            return
        now = time.monotonic()
        if now - self._at >= LOOK_EVERY_S or self._added > self.most >> 8:
            self._used, self._added, self._at = self._look(), 0, now
        if self._used + self._added + nbytes > self.most and (again := self._look_again()) is not None:
            self._used, self._added, self._at = again, 0, now
        if self._used + self._added + nbytes > self.most:
            raise LimitExceeded(
                f"the server's sessions use {self._used + self._added:,} bytes on disk, and {nbytes:,} more exceed the "
                f"limit of {self.most:,} (GRADWIRE_MAX_DATA_BYTES); delete sessions or release tensors",
                setting="GRADWIRE_MAX_DATA_BYTES", limit=self.most, value=self._used + self._added + nbytes,
            )  # fmt: skip

    def _look(self) -> int:
        """Measure the use."""
        return used_bytes(self.sessions)

    def _look_again(self) -> int | None:
        """Measure it before something is refused; ``None`` where the last measurement is as good."""
        return None

    def count(self, nbytes: int) -> None:
        """Count bytes written since the last measurement."""
        self._added += nbytes


def used_bytes(sessions: Path) -> int:
    """The size of all sessions' files."""
    total = 0
    with os.scandir(sessions) as folders:
        for folder in folders:
            try:
                with os.scandir(folder.path) as files:
                    total += sum(file.stat(follow_symlinks=False).st_size for file in files)
            except OSError:
                continue  # removed meanwhile, not a folder, or not readable
    return total
