"""The data directory: which sessions it holds, who uses it, and how full it is. docs/durability.md has its layout."""

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

from .disk import Disk, write_whole
from .journal import PREFIX
from .manifest import read_owner, was_begun
from .records import HEADER_BYTES, damaged, read_small
from .spec import SessionSpec

SPEC: Final = "session.json"
REMOVED: Final = "session.json.removed"
"""What ``session.json`` is called while its session is being removed."""

MAX_SPEC_BYTES: Final = 1 << 20
SESSIONS: Final = "sessions"
LOCK: Final = "lock"
LOCK_PATIENCE_S: Final = 5.0
"""A process that was killed lets go of its locks only when it is gone."""

LOOK_EVERY_S: Final = 2.0

log = structlog.get_logger("gradwire.store")

Begins = Literal["empty", "snapshot"]


class KeptSpec(NamedTuple):
    """What ``session.json`` tells.

    Attributes:
        begins: whether the session began empty or with a snapshot.
        manifest: whether its folder has a manifest, which those of earlier versions have not.
    """

    spec: SessionSpec
    begins: Begins
    manifest: bool = True


class DamagedSession(NamedTuple):
    """A folder of which it cannot be read what session it holds. ``tenant``: the owner, where that is known."""

    error: JournalDamaged
    tenant: str | None


class _Kept(msgspec.Struct):
    """What ``session.json`` holds. The digest is of the other fields; the spec is its own JSON there."""

    digest: str
    begins: Begins
    spec: msgspec.Raw
    manifest: bool = False


def write_spec(disk: Disk, folder: Path, spec: SessionSpec, begins: Begins = "empty") -> None:
    """Write ``session.json``: from here on the session exists.

    Raises:
        OSError: when the disk is full or broken.
    """
    encoded = msgspec.json.encode(spec)
    kept = _Kept(_digest(encoded, begins, True), begins, msgspec.Raw(encoded), True)
    write_whole(disk, folder / SPEC, [msgspec.json.encode(kept) + b"\n"])


def read_spec(folder: Path) -> KeptSpec:
    """What session a folder holds.

    Raises:
        JournalDamaged: when the file is missing, is not what was written, or is another session's.
    """
    path = folder / SPEC
    try:
        kept = msgspec.json.decode(read_small(path, MAX_SPEC_BYTES), type=_Kept)
        if kept.digest != _digest(bytes(kept.spec), kept.begins, kept.manifest):
            raise damaged(path, 0, "its digest is another")
        spec = msgspec.json.decode(kept.spec, type=SessionSpec)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise damaged(path, 0, f"it cannot be read: {error}") from None
    if spec.id != folder.name:
        raise damaged(path, 0, f"it is that of session {spec.id}")
    return KeptSpec(spec, kept.begins, kept.manifest)


def _digest(encoded: bytes, begins: str, manifest: bool) -> str:
    facts = (begins + ("+manifest" if manifest else "")).encode()
    return hashlib.blake2b(facts + b"\0" + encoded, digest_size=16).hexdigest()


def note_use(folder: Path, at: float) -> None:
    """Note on disk that a session was last used at this Unix time.

    Raises:
        OSError: when the disk is broken, or the folder is gone.
    """
    os.utime(folder / SPEC, (at, at))


def last_use(folder: Path) -> float:
    """When a session was last used, in Unix time: as it was noted, or as its newest file tells."""
    return max((each.lstat().st_mtime for each in folder.iterdir()), default=0.0)


class Lock:
    """A file or folder that one process uses at a time. Let go of when the process ends, however it does.

    Raises:
        Unavailable: when another one uses it and does not let go.
    """

    def __init__(self, path: Path) -> None:
        # Not waited for, should it be a pipe.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
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

    def specs(self) -> Iterator[tuple[str, SessionSpec | DamagedSession]]:
        """The sessions that the directory holds by id; those of which not even that can be read with the reason."""
        for folder in self._folders():
            try:
                yield folder.name, read_spec(folder).spec
            except JournalDamaged as error:
                if not _unfinished(folder):
                    owner = read_owner(folder)
                    yield folder.name, DamagedSession(error, None if owner is None else owner.tenant)

    def sweep(self) -> None:
        """Remove what is left of sessions that were being made or removed when the server ended."""
        for folder in self._folders():
            if _unfinished(folder):
                log.warning("what is left of a session is removed", session=folder.name)
                try:
                    remove_session(self.disk, folder)
                except OSError as error:
                    log.warning("it cannot be removed", session=folder.name, reason=str(error))

    def _folders(self) -> list[Path]:
        with os.scandir(self.sessions) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))

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
    if not os.path.lexists(folder):
        return
    if os.path.lexists(folder / SPEC):
        disk.rename(folder / SPEC, folder / REMOVED)
        disk.sync_folder(folder)
    for path in sorted(folder.iterdir(), key=lambda each: (each.name == REMOVED, each.name)):
        disk.remove(path)
    disk.remove_folder(folder)


def _unfinished(folder: Path) -> bool:
    """Whether a folder is left over from a session that was being made, or removed: nobody can have used it."""
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
            except OSError:
                continue  # it was removed meanwhile, is no folder, or may not be looked into
    return total
