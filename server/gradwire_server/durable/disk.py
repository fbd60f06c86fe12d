"""The file operations of this package. Tests replace them by a disk that fails."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

Piece = bytes | bytearray | memoryview

PIECES_AT_ONCE: Final = 1024
"""The limit of one vectored write on Linux (IOV_MAX)."""

BYTES_AT_ONCE: Final = 1 << 30
SMALL_BYTES: Final = 4096
"""Up to this size, a copy costs less than a vectored write."""


_SAFE_OPEN: Final = os.O_NOFOLLOW | os.O_NONBLOCK
"""Do not follow symbolic links, and do not block on a pipe or a device."""


class NotAFile(OSError):
    """The path is not a regular file."""


class Disk:
    """The file system."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents, if they do not exist."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, path: Path) -> int:
        """Create an empty file for writing. Replaces whatever has this name."""
        if not is_file(path):
            remove_anything(path)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | _SAFE_OPEN, 0o600)

    def reopen(self, path: Path) -> int:
        """Open an existing file for writing."""
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC | _SAFE_OPEN)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def write(self, descriptor: int, pieces: Sequence[Piece], at: int) -> int:
        """Write all pieces consecutively from an offset; returns the end offset.

        Raises:
            OSError: when the disk is full or broken. The content from ``at`` on is undefined then.
        """
        if len(pieces) <= PIECES_AT_ONCE:
            size = sum(map(len, pieces))
            if size <= SMALL_BYTES:
                pieces = [b"".join(pieces)]
            if size <= BYTES_AT_ONCE:
                written = os.pwritev(descriptor, pieces, at)
                if written == size:
                    return at + size
        return self._write_slowly(descriptor, pieces, at)

    def _write_slowly(self, descriptor: int, pieces: Sequence[Piece], at: int) -> int:
        waiting = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        first = 0
        while first < len(waiting):
            some: list[memoryview] = []
            size = 0
            for piece in waiting[first : first + PIECES_AT_ONCE]:
                if some and size + len(piece) > BYTES_AT_ONCE:
                    break
                some.append(piece[:BYTES_AT_ONCE])
                size += len(some[-1])
            written = os.pwritev(descriptor, some, at)
            at += written
            while written and written >= len(waiting[first]):
                written -= len(waiting[first])
                first += 1
                if first == len(waiting):
                    break
            if written:
                waiting[first] = waiting[first][written:]
        return at

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Flush the file to the medium."""
        os.fsync(descriptor)

    def sync_data(self, descriptor: int) -> None:
        """Flush the file's data, and the metadata needed to read it, to the medium."""
        os.fdatasync(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def remove(self, path: Path) -> None:
        remove_anything(path)

    def remove_folder(self, path: Path) -> None:
        path.rmdir()

    def sync_folder(self, path: Path) -> None:
        """Flush the names in a folder to the medium."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_whole(disk: Disk, path: Path, pieces: Sequence[Piece]) -> None:
    """Write a file atomically and durably.

    Raises:
        OSError: when the disk is full or broken; the previous file is unchanged.
    """
    part = path.with_name(path.name + ".part")
    descriptor = disk.create(part)
    try:
        disk.write(descriptor, pieces, 0)
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)
    disk.rename(part, path)
    disk.sync_folder(path.parent)


def open_file(path: Path, follow: bool = False) -> int:
    """Open a regular file for reading, without blocking on other kinds.

    Args:
        follow: whether to follow a symbolic link.

    Raises:
        NotAFile: for a directory, a link, a pipe, a socket or a device.
        OSError: when the file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotAFile(errno.ELOOP, "it is a symbolic link") from None
        if error.errno == errno.ENXIO:  # a socket
            raise NotAFile(errno.ENXIO, "it is not a regular file") from None
        raise
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        raise NotAFile(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(kind), 'not a regular file')}")
    return descriptor


_KINDS: Final = {
    stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


def is_file(path: Path) -> bool:
    """Whether the path is a regular file or does not exist."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True


def remove_anything(path: Path) -> None:
    """Remove a file or a folder, without following links."""
    if not path.is_symlink() and path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
