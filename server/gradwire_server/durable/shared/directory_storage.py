"""Shared storage in a directory that all machines mount."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..disk import open_file
from .keys import check_key

TRIES: Final = 10
"""How often a folder is made again that a concurrent deletion has removed."""

_TEMPORARY: Final = "."
"""What the names of unfinished files begin with."""


class DirectoryStorage:
    """Blobs as files. A file is complete and on the medium before it gets its name.

    ``create`` gives the name by link(2), which is exclusive over NFS, too. There a link may succeed although its
    answer was lost, so the number of links decides.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return str(self.root)

    def path(self, key: str) -> Path:
        """The file of a key."""
        return self.root / check_key(key)

    def create(self, key: str, data: bytes) -> bool:
        path = self.path(key)
        part = self._write(path, data)
        try:
            try:
                os.link(part, path)
            except FileExistsError:
                return os.stat(part).st_nlink == 2
            except OSError:
                if os.stat(part).st_nlink != 2:
                    raise
            sync_names(path.parent)
            return True
        finally:
            with suppress(FileNotFoundError):
                part.unlink()

    def put(self, key: str, data: bytes | memoryview | Path) -> None:
        path = self.path(key)
        part = self._write(path, data)
        try:
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            raise
        sync_names(path.parent)

    def _write(self, path: Path, data: bytes | memoryview | Path) -> Path:
        """Write a file with a temporary name beside ``path`` and flush it."""
        part = path.with_name(f"{_TEMPORARY}{path.name}.{secrets.token_hex(8)}")
        for _ in range(TRIES):
            make_folders(path.parent, self.root)
            try:
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # the folder was empty, and removed meanwhile
            break
        else:
            raise FileNotFoundError(f"{path.parent} is removed again and again")
        try:
            with open(descriptor, "wb") as file:
                if isinstance(data, Path):
                    with open(data, "rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
                else:
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
        return part

    def get(self, key: str) -> bytes | None:
        try:
            with open(open_file(self.path(key)), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def keys(self, prefix: str) -> list[str]:
        top = self.root / check_key(prefix.rstrip("/"))
        found = [
            str((Path(folder) / name).relative_to(self.root))
            for folder, _, names in os.walk(top)
            for name in names
            if not name.startswith(_TEMPORARY)
        ]
        return sorted(found)

    def children(self, prefix: str) -> list[str]:
        try:
            names = os.listdir(self.root / check_key(prefix.rstrip("/")))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if not name.startswith(_TEMPORARY))

    def used_bytes(self, prefix: str) -> int:
        found: dict[int, int] = {}  # a snapshot may have several names
        for folder, _, names in os.walk(self.root / check_key(prefix.rstrip("/"))):
            for name in names:
                with suppress(OSError):  # it was removed meanwhile
                    status = os.lstat(os.path.join(folder, name))
                    found[status.st_ino] = status.st_size
        return sum(found.values())

    def delete(self, *keys: str) -> None:
        folders = set()
        for key in keys:
            path = self.path(key)
            with suppress(FileNotFoundError, NotADirectoryError):
                path.unlink()
            folders.add(path.parent)
        for folder in folders:
            self._remove_empty(folder)

    def _remove_empty(self, folder: Path) -> None:
        """Remove a folder and its parents as far as they are empty, except the two uppermost levels."""
        while len(folder.relative_to(self.root).parts) > 1:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent


def make_folders(folder: Path, root: Path) -> None:
    """Create a folder and its parents below ``root``, and flush their names."""
    missing = []
    while folder != root and not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with suppress(FileExistsError, FileNotFoundError):
            each.mkdir(mode=0o700)
            sync_names(each.parent)


def sync_names(folder: Path) -> None:
    """Flush the names in a folder to the medium, if it still exists."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
