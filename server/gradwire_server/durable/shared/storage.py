"""The shared storage: five strongly consistent operations on named blobs."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from .directory_storage import DirectoryStorage
from .object_storage import ObjectStorage


class Storage(Protocol):
    """Blobs by key, such as ``owners/o_1``. Each operation sees the results of all operations that ended before it.

    All methods block, may be called from any thread, and raise OSError when the storage is unreachable or full. A
    failed write may take effect later.
    """

    @property
    def url(self) -> str:
        """Where it is, for messages."""

    def create(self, key: str, data: bytes) -> bool:
        """Create a blob atomically and durably. Returns False if the key exists."""

    def put(self, key: str, data: bytes | memoryview | Path) -> None:
        """Create or replace a blob atomically and durably; a path names a local file with its content."""

    def get(self, key: str) -> bytes | None:
        """The content of a blob; ``None`` if there is none."""

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin with ``prefix``, which ends with a slash, sorted."""

    def children(self, prefix: str) -> list[str]:
        """The next segments of the keys that begin with ``prefix``, sorted: of ``a/b/c``, ``a/`` has ``b``."""

    def used_bytes(self, prefix: str) -> int:
        """The size of all blobs whose keys begin with ``prefix``, which ends with a slash."""

    def delete(self, *keys: str) -> None:
        """Delete blobs; those that do not exist are ignored."""


def open_storage(url: str) -> Storage:
    """Open the storage at a directory or an ``s3://bucket/prefix``.

    Raises:
        ValueError: for another kind of URL, or a missing library.
        OSError: when the directory cannot be created.
    """
    scheme = urlsplit(url).scheme if "://" in url else ""
    if scheme == "s3":
        return ObjectStorage.open(url)
    if scheme in ("", "file"):
        return DirectoryStorage(Path(urlsplit(url).path if scheme else url))
    raise ValueError(f"{url!r} is neither a directory nor an s3:// URL")
