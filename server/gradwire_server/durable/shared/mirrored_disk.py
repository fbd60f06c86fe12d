"""A disk for object stores: sessions run on a local scratch folder, and everything written there is uploaded.

An object store cannot append. So a journal is a series of objects ``journal-<n>.log/<start>-<end>``, one for each
commit. Whole files are one object each. The manifest is uploaded when a journal begins, not with each commit.
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ..disk import Disk, Piece
from ..journal import PREFIX, SUFFIX
from ..manifest import MANIFEST
from .storage import Storage

PART: Final = ".part"
MERGED_AT_ONCE: Final = 32
"""As many neighbours of the same rank become one segment of the next rank: a journal of n commits has at most about
32 objects for each rank, and each byte is uploaded about log32(n) times."""

WHOLE: Final = 99
"""The rank of a segment that is never merged again: a journal's content at a takeover."""

_SEGMENT: Final = re.compile(r"(\d{20})-(\d{20})")
_NUMBER: Final = re.compile(r"[a-z]+-(\d{20})[-.]")


class Segment(NamedTuple):
    """A part of a journal: its bytes from ``start`` to ``end``."""

    start: int
    end: int
    rank: int = 0

    @property
    def name(self) -> str:
        return f"{self.start:020d}-{self.end:020d}"


def covering(names: Iterable[str]) -> list[Segment]:
    """The segments that make up a journal, of the names in its prefix.

    A merged segment covers others that are not deleted yet, and a commit that was retried has a longer segment than the
    attempt before. So the longest segment at each offset counts. Segments behind a gap do not count: the commit before
    them never succeeded.
    """
    longest: dict[int, int] = {}
    for name in names:
        if (match := _SEGMENT.fullmatch(name)) is not None:
            start, end = int(match[1]), int(match[2])
            longest[start] = max(end, longest.get(start, 0))
    found: list[Segment] = []
    at = 0
    while longest.get(at, 0) > at:
        found.append(Segment(at, longest[at], WHOLE))
        at = longest[at]
    return found


def is_journal(name: str) -> bool:
    """Whether a file is a journal."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


class MirroredDisk(Disk):
    """The scratch folder of one session.

    Args:
        prefix: what the keys of its files begin with.

    Attributes:
        uploads: how many objects were written; for tests and measurements.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._prefix = ""
        """Empty until the files are uploaded: before that, nothing is mirrored."""
        self._names: dict[int, Path] = {}
        self._segments: dict[str, list[Segment]] = {}
        self._unanswered: dict[str, bytes] = {}
        """Digests of uploads that had no answer, by name: they may take effect at any time."""
        self._barred = -1
        """No snapshot or journal that begins after this record, or an earlier one, is uploaded any more. Something of
        such a name was removed, or had no answer, and a late request would meet the new object."""
        self.uploads = 0

    def mirror(self, prefix: str, journals: dict[str, int]) -> None:
        """Upload from here on; ``journals``: the lengths of those that are uploaded already."""
        self._prefix = prefix
        self._unanswered = {}
        self._barred = -1
        self._segments = {name: [Segment(0, size, WHOLE)] for name, size in journals.items()}

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        self._names[descriptor] = path
        return descriptor

    def reopen(self, path: Path) -> int:
        descriptor = super().reopen(path)
        self._names[descriptor] = path
        return descriptor

    def close(self, descriptor: int) -> None:
        self._names.pop(descriptor, None)
        super().close(descriptor)

    def write(self, descriptor: int, pieces: Sequence[Piece], at: int) -> int:
        end = super().write(descriptor, pieces, at)
        path = self._names[descriptor]
        if self._prefix and is_journal(path.name):
            self._add(path.name, Segment(at, end), b"".join(pieces))
        return end

    def _add(self, name: str, segment: Segment, data: bytes | Path) -> None:
        self._put(f"{name}/{segment.name}", data)
        known = self._segments.setdefault(name, [])
        # A retried commit replaces its former attempt, which may have left an object.
        while known and known[-1].start >= segment.start:
            known.pop()
        known.append(segment)

    def _put(self, name: str, data: bytes | Path) -> None:
        # An older manifest is as good, but no other file may get the content of an earlier attempt later.
        if name in self._unanswered and name != MANIFEST and self._unanswered[name] != _digest(data):
            raise OSError(errno.EAGAIN, f"an earlier upload of {name} with other content had no answer")
        try:
            self._storage.put(self._prefix + name, data)
        except OSError:
            self._unanswered[name] = _digest(data)
            raise
        self.uploads += 1

    def truncate(self, descriptor: int, size: int) -> None:
        super().truncate(descriptor, size)
        path = self._names[descriptor]
        if self._prefix and is_journal(path.name):
            prefix = f"{self._prefix}{path.name}/"
            keys = self._storage.keys(prefix)
            self._storage.delete(*(key for key in keys if int(key.rpartition("-")[2]) > size))
            self._segments[path.name] = [each for each in self._segments.get(path.name, []) if each.end <= size]

    def sync(self, descriptor: int) -> None:
        # The scratch folder need not survive the machine.
        self._upload_manifest(descriptor)

    def sync_data(self, descriptor: int) -> None:
        self._upload_manifest(descriptor)

    def _upload_manifest(self, descriptor: int) -> None:
        path = self._names[descriptor]
        if self._prefix and path.name == MANIFEST:
            self._put(MANIFEST, path.read_bytes())

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        for descriptor, path in self._names.items():
            if path == old:
                self._names[descriptor] = new
        if not self._prefix:
            return
        number = _number(new.name)
        if 0 <= number <= self._barred:
            raise OSError(errno.EAGAIN, f"an earlier upload after record {number} had no answer, or was removed")
        try:
            if is_journal(new.name):
                data = new.read_bytes()
                self._add(new.name, Segment(0, len(data)), data)
            else:
                self._put(new.name, new)
        except OSError:
            self._barred = max(self._barred, number)
            raise

    def remove(self, path: Path) -> None:
        super().remove(path)
        if not self._prefix or path.name.endswith(PART):
            return
        self._barred = max(self._barred, _number(path.name))
        if is_journal(path.name):
            self._segments.pop(path.name, None)
            self._storage.delete(*self._storage.keys(f"{self._prefix}{path.name}/"))
        else:
            self._storage.delete(self._prefix + path.name)

    def sync_folder(self, path: Path) -> None:
        pass

    def merge(self, folder: Path, check: Callable[[], None]) -> None:
        """Merge the small segments of the journals in the folder.

        Args:
            check: raises when nothing may be removed any more.

        Raises:
            OSError: when the store is unreachable.
        """
        for name, known in self._segments.items():
            while (some := _mergeable(known)) is not None:
                merged = Segment(some[0].start, some[-1].end, some[0].rank + 1)
                with open(folder / name, "rb") as file:
                    file.seek(merged.start)
                    self._put(f"{name}/{merged.name}", file.read(merged.end - merged.start))
                known[-len(some) :] = [merged]
                check()
                self._storage.delete(*(f"{self._prefix}{name}/{each.name}" for each in some))


def _digest(data: bytes | Path) -> bytes:
    if isinstance(data, Path):
        with open(data, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    return hashlib.sha256(data).digest()


def _number(name: str) -> int:
    """The number of the last record before a journal, or in a snapshot; -1 of another file."""
    match = _NUMBER.match(name)
    return -1 if match is None else int(match[1])


def _mergeable(known: list[Segment]) -> list[Segment] | None:
    """The last segments, if enough of them have the same rank."""
    some = known[-MERGED_AT_ONCE:]
    if len(some) < MERGED_AT_ONCE or any(each.rank != some[0].rank for each in some):
        return None
    return some
