"""The data directory: which sessions it holds, who uses it, and how full it is. docs/durability.md has its layout."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
import structlog

from gradwire_protocol.errors import JournalDamaged, LimitExceeded, Unavailable

from .disk import Disk, write_whole
from .records import damaged
from .spec import SessionSpec

SPEC: Final = "session.json"
SESSIONS: Final = "sessions"
LOCK: Final = "lock"
LOCK_PATIENCE_S: Final = 5.0
"""A process that was killed lets go of its locks only when it is gone."""

LOOK_EVERY_S: Final = 2.0

log = structlog.get_logger("gradwire.store")

Begins = Literal["empty", "snapshot"]


class _Kept(msgspec.Struct):
    """What ``session.json`` holds. The digest is of the spec's own JSON."""

    digest: str
    begins: Begins
    spec: msgspec.Raw


def write_spec(disk: Disk, folder: Path, spec: SessionSpec, begins: Begins = "empty") -> None:
    """Write ``session.json``: from here on the session exists.

    Raises:
        OSError: when the disk is full or broken.
    """
    encoded = msgspec.json.encode(spec)
    kept = _Kept(_digest(encoded, begins), begins, msgspec.Raw(encoded))
    write_whole(disk, folder / SPEC, [msgspec.json.encode(kept) + b"\n"])


def read_spec(folder: Path) -> tuple[SessionSpec, Begins]:
    """What session a folder holds, and whether it began empty or with a snapshot.

    Raises:
        JournalDamaged: when the file is missing or is not what was written.
    """
    path = folder / SPEC
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
        if kept.digest != _digest(bytes(kept.spec), kept.begins):
            raise damaged(path, 0, "its digest is another")
        return msgspec.json.decode(kept.spec, type=SessionSpec), kept.begins
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise damaged(path, 0, f"it cannot be read: {error}") from None


def _digest(encoded: bytes, begins: str) -> str:
    return hashlib.blake2b(begins.encode() + b"\0" + encoded, digest_size=16).hexdigest()


def note_use(folder: Path, at: float) -> None:
    """Note on disk that a session was last used at this Unix time.

    Raises:
        OSError: when the disk is broken, or the folder is gone.
    """
    os.utime(folder / SPEC, (at, at))


def last_use(folder: Path) -> float:
    """When a session was last used, in Unix time: as it was noted, or as its newest file tells."""
    return max(each.stat().st_mtime for each in folder.iterdir())


class Lock:
    """A file or folder that one process uses at a time. Let go of when the process ends, however it does.

    Raises:
        Unavailable: when another one uses it and does not let go.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        until = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    # A file system without locks: there it is up to whoever starts two servers.
                    log.warning("folders cannot be locked here", path=str(path), error=str(error))
                elif time.monotonic() < until:
                    time.sleep(0.02)
                    continue
                else:
                    self.release()
                    raise Unavailable(f"{path.name} is in use by another process") from None
            return

    def release(self) -> None:
        """Let others use it."""
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
        """Where the folders of the sessions are."""
        return self.root / SESSIONS

    def folder(self, session_id: str) -> Path:
        """The folder of a session, which need not exist."""
        return self.sessions / session_id

    def specs(self) -> Iterator[tuple[str, SessionSpec | JournalDamaged]]:
        """The sessions that the directory holds by id; those of which not even that can be read with the reason."""
        for folder in sorted(self.sessions.iterdir()):
            if (folder / SPEC).exists():
                try:
                    yield folder.name, read_spec(folder)[0]
                except JournalDamaged as error:
                    yield folder.name, error

    def sweep(self) -> None:
        """Remove what is left of sessions that were being made or removed when the server ended."""
        for folder in sorted(self.sessions.iterdir()):
            if folder.is_dir() and not (folder / SPEC).exists():
                log.warning("what is left of a session is removed", session=folder.name)
                remove_session(self.disk, folder)

    def remove(self, session_id: str) -> None:
        """Remove a session that no host has open."""
        remove_session(self.disk, self.folder(session_id))

    def check_room(self, nbytes: int = 0) -> None:
        """Check that there is room for a new session.

        Raises:
            LimitExceeded: naming the setting.
        """
        DiskUse.of(self.sessions, self.max_data_bytes).check(nbytes)

    def close(self) -> None:
        """Let another server use the directory."""
        self._lock.release()


def remove_session(disk: Disk, folder: Path) -> None:
    """Remove a session's folder. Whenever this is interrupted, the session is gone or whole."""
    if not folder.exists():
        return
    if (folder / SPEC).exists():
        disk.remove(folder / SPEC)
        disk.sync_folder(folder)
    for path in sorted(folder.iterdir()):
        disk.remove(path)
    disk.remove_folder(folder)


class DiskUse:
    """How much a folder of sessions holds, looked at now and then.

    Attributes:
        most: how much it may hold; 0 for no limit.
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
        """The one of this folder in this process: its sessions share the looking."""
        found = cls._known.get(sessions)
        if found is None or found.most != most:
            found = cls._known[sessions] = cls(sessions, most)
        return found

    def check(self, nbytes: int) -> None:
        """Check that there is room for so many bytes more.

        Raises:
            LimitExceeded: naming the setting.
        """
        if not self.most:
            return
        now = time.monotonic()
        if now - self._at >= LOOK_EVERY_S or self._added > self.most >> 8:
            self._used, self._added, self._at = used_bytes(self.sessions), 0, now
        if self._used + self._added + nbytes > self.most:
            raise LimitExceeded(
                f"the server's sessions hold {self._used + self._added:,} bytes on disk, {nbytes:,} more would pass "
                f"{self.most:,} (GRADWIRE_MAX_DATA_BYTES): delete sessions, or release tensors",
                setting="GRADWIRE_MAX_DATA_BYTES", limit=self.most, value=self._used + self._added + nbytes,
            )  # fmt: skip

    def count(self, nbytes: int) -> None:
        """Count what was written since somebody looked."""
        self._added += nbytes


def used_bytes(sessions: Path) -> int:
    """What the files of all sessions take on disk."""
    total = 0
    with os.scandir(sessions) as folders:
        for folder in folders:
            try:
                with os.scandir(folder.path) as files:
                    total += sum(file.stat(follow_symlinks=False).st_size for file in files)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it was removed meanwhile
    return total
