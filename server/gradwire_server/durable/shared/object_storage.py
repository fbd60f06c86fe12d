"""Shared storage in an S3-compatible object store, by obstore."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from .keys import check_key

if TYPE_CHECKING:
    from obstore.store import S3Store

_WRITER: Final = "gradwire-writer"
"""The attribute that tells a created object from another writer's."""

TIMEOUT_S: Final = 30
RETRY_S: Final = 20
"""How long the library retries an operation. A lease that cannot be renewed ends meanwhile."""

DELETED_AT_ONCE: Final = 500


class ObjectStorage:
    """Blobs as objects below a prefix of a bucket.

    ``create`` is a put with ``If-None-Match: *``. If a retry finds the object of its own first attempt, the object's
    attribute says so.
    """

    def __init__(self, store: S3Store, url: str) -> None:
        import obstore

        self._obstore: Any = obstore
        self._store = store
        self._url = url

    @classmethod
    def open(cls, url: str, **options: Any) -> Self:
        """Open ``s3://bucket/prefix``. ``AWS_*`` variables name the endpoint, the region and the credentials.

        Raises:
            ValueError: when the URL has no bucket, or obstore is not installed.
        """
        parts = urlsplit(url)
        if parts.scheme != "s3" or not parts.netloc:
            raise ValueError(f"{url!r} is not s3://bucket/prefix")
        try:
            from obstore.store import S3Store
        except ImportError:
            raise ValueError(f"{url} requires obstore: pip install 'gradwire[cluster]'") from None
        endpoint = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
        if endpoint:
            options["endpoint"] = endpoint
        store = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            client_options={"allow_http": endpoint.startswith("http://"), "timeout": timedelta(seconds=TIMEOUT_S)},
            retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=RETRY_S)},
            **options,
        )
        return cls(store, url)

    @property
    def url(self) -> str:
        return self._url

    def create(self, key: str, data: bytes) -> bool:
        writer = secrets.token_hex(8)
        with _as_os_errors(key):
            try:
                self._obstore.put(self._store, check_key(key), data, mode="create", attributes={_WRITER: writer})
            except self._obstore.exceptions.AlreadyExistsError:
                try:
                    found = self._obstore.get(self._store, key).attributes
                except FileNotFoundError:  # deleted meanwhile
                    return False
                return bool(found.get(_WRITER) == writer)
            return True

    def put(self, key: str, data: bytes | memoryview | Path) -> None:
        with _as_os_errors(key):
            self._obstore.put(self._store, check_key(key), data)

    def get(self, key: str) -> bytes | None:
        with _as_os_errors(key):
            try:
                return bytes(self._obstore.get(self._store, check_key(key)).bytes())
            except FileNotFoundError:
                return None

    def copy(self, old: str, new: str) -> None:
        """Copy an object inside the store.

        Raises:
            FileNotFoundError: when there is none.
        """
        with _as_os_errors(old):
            self._obstore.copy(self._store, check_key(old), check_key(new))

    def keys(self, prefix: str) -> list[str]:
        with _as_os_errors(prefix):
            pages = self._obstore.list(self._store, check_key(prefix.rstrip("/")))
            return sorted(each["path"] for page in pages for each in page)

    def children(self, prefix: str) -> list[str]:
        with _as_os_errors(prefix):
            found = self._obstore.list_with_delimiter(self._store, check_key(prefix.rstrip("/")))
        paths = [*found["common_prefixes"], *(each["path"] for each in found["objects"])]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def used_bytes(self, prefix: str) -> int:
        with _as_os_errors(prefix):
            pages = self._obstore.list(self._store, check_key(prefix.rstrip("/")))
            return sum(each["size"] for page in pages for each in page)

    def delete(self, *keys: str) -> None:
        for at in range(0, len(keys), DELETED_AT_ONCE):
            some = [check_key(key) for key in keys[at : at + DELETED_AT_ONCE]]
            with _as_os_errors(some[0]):
                try:
                    self._obstore.delete(self._store, some)
                except FileNotFoundError:
                    pass


@contextmanager
def _as_os_errors(key: str) -> Iterator[None]:
    """Turn obstore's errors into OSErrors."""
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise OSError(errno.EIO, f"the object store refused {key}: {str(error)[:300]}") from None
