"""The file operations of this package, one method each. Tests put a disk in its place that fails or stops."""

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
"""What one vectored write takes on Linux (IOV_MAX)."""

BYTES_AT_ONCE: Final = 1 << 30
SMALL_BYTES: Final = 4096
"""Up to here one copy is cheaper than a list of pieces."""


_NO_SURPRISE: Final = os.O_NOFOLLOW | os.O_NONBLOCK
"""A pipe or a device in the place of a file is not waited for, and a link is not followed."""


class NotAFile(OSError):
    """Something other than a regular file has a file's name."""


class Disk:
    """The machine's own file system."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it; one that exists is left alone."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, path: Path) -> int:
        """An empty file, opened for writing; whatever had this name is gone."""
        if not is_file(path):
            remove_anything(path)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | _NO_SURPRISE, 0o600)

    def reopen(self, path: Path) -> int:
        """A file that exists, opened for writing."""
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC | _NO_SURPRISE)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def write(self, descriptor: int, pieces: Sequence[Piece], at: int) -> int:
        """Write all of the pieces one after another from an offset; returns the offset behind them.

        Raises:
            OSError: when the disk is full or broken. What is behind ``at`` is undefined then.
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
        """Wait until the file is on the medium."""
        os.fsync(descriptor)

    def sync_data(self, descriptor: int) -> None:
        """The same, for what is needed to read the file again."""
        os.fdatasync(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def remove(self, path: Path) -> None:
        remove_anything(path)

    def remove_folder(self, path: Path) -> None:
        path.rmdir()

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in a folder are on the medium."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_whole(disk: Disk, path: Path, pieces: Sequence[Piece]) -> None:
    """Write a file so that, whatever happens, it is there whole or not at all, and stays.

    Raises:
        OSError: when the disk is full or broken; what was there before is unchanged.
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
    """A regular file, opened for reading.

    Args:
        follow: whether a symbolic link may lead to it.

    Raises:
        NotAFile: for a directory, a link, a pipe, a socket or a device. None of them is waited for.
        OSError: when it cannot be opened.
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
    """Whether nothing but a regular file has this name; it need not exist."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True


def remove_anything(path: Path) -> None:
    """Remove whatever has this name; links are not followed."""
    if not path.is_symlink() and path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
