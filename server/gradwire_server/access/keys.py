"""API keys: made here, kept as hashes, looked up, revoked.

A key is 256 random bits, shown once. What is kept is its SHA-256: with that many random bits there is nothing to guess,
so a slow hash would only slow the server down. Looking a key up is looking its digest up in a dictionary. How long that
takes may depend on the digests, and tells nothing of a key: whoever could choose digests that share a beginning with a
stored one would have to invert SHA-256 first.

Sessions belong to a *tenant*, and a tenant may have several keys: make a second key, move the programs over, revoke the
first.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gradwire_protocol.errors import InvalidRequest, NotFound, Unavailable

from ..durable.disk import NotAFile, open_file
from ..settings import HASHED, Settings, digest_of
from .scopes import ADMIN, READ, SESSION

ALL_SCOPES: Final = (READ, SESSION, ADMIN)
QUOTAS: Final = (
    "max_ops_per_second", "max_bytes_per_second", "max_requests_per_second", "max_key_sessions", "max_key_bytes",
)  # fmt: skip
"""Settings that a key may have a value of its own for."""

MAX_KEYS: Final = 10_000
USED_EVERY_S: Final = 60.0
"""How exactly the last use of a key is kept."""

LOCAL_TENANT: Final = "local"
"""Owner of the sessions of a key that was made for one run: the next run's key finds them again."""

LOCK_TRIES: Final = 100
LOCK_PAUSE_S: Final = 0.005
FILE_VERSION: Final = 1

log = structlog.get_logger("gradwire.keys")


class Key(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a key.

    Attributes:
        digest: SHA-256 of the key, in hexadecimal.
        tenant: the owner of the sessions that it opens.
        expires, revoked, last_used: in seconds since 1970, or ``None``. The last use is exact to a minute.
        quotas: settings that hold for this key instead of the server's.
        kept: ``file``; ``memory``, until the server stops; or ``setting``, by whoever starts the server.
    """

    id: str
    digest: str
    name: str
    tenant: str
    scopes: list[str]
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    last_used: float | None = None
    quotas: dict[str, int] = {}
    kept: str = "file"

    def end(self, now: float | None = None) -> str:
        """Why it opens nothing any more: ``revoked``, ``expired``, or empty while it does."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= (time.time() if now is None else now):
            return "expired"
        return ""

    def may(self, scope: str) -> bool:
        """Whether it covers a scope. Who may use a session may also look at it."""
        return scope in self.scopes or (scope == READ and SESSION in self.scopes)

    def quota(self, name: str, settings: Settings) -> int:
        """The limit that holds for this key, 0 for none."""
        limit: int = getattr(settings, name)
        return self.quotas.get(name, limit)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    keys: list[Key]


class DamagedKeys(ValueError):
    """The file of keys cannot be read as one."""


def generate_key() -> str:
    """A new API key with 256 random bits."""
    return "gw_" + secrets.token_urlsafe(32)


def _set(hashes: Iterable[str], scopes: Iterable[str], name: str) -> Iterator[Key]:
    """The keys of a setting. Each is a tenant of its own, named by its digest."""
    for each in hashes:
        digest = each.removeprefix(HASHED)
        yield Key(
            id="k_" + digest[:12], digest=digest, name=name, tenant=digest[:16], scopes=list(scopes), kept="setting"
        )


class KeyStore:
    """The keys of a server: those that settings name, and those that were made.

    Those that were made are in one file, which is written whole or not at all. Another process may change it at any
    time (``gradwire-server keys``): each change is made to what the file says at that moment, under a lock.

    Args:
        path: the file, or ``None`` to keep made keys in memory until the server stops.
        fixed: keys that are not in the file, and cannot be revoked.

    Raises:
        DamagedKeys: when the file is there, and is not one of keys.
        OSError: when it cannot be read.
    """

    def __init__(self, path: Path | None, fixed: Iterable[Key] = ()) -> None:
        self.path = path
        self._fixed = {key.digest: key for key in fixed}
        self._made: dict[str, Key] = {}
        self._by_digest: dict[str, Key] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._used: dict[str, float] = {}
        self._noted = time.monotonic()
        self.refresh()

    @classmethod
    def configured(cls, settings: Settings) -> KeyStore:
        """The store of a server with these settings."""
        named = [
            *_set(settings.api_keys, (READ, SESSION), "GRADWIRE_API_KEYS"),
            *_set(settings.admin_keys, ALL_SCOPES, "GRADWIRE_ADMIN_KEYS"),
        ]
        return cls(None if settings.data_dir is None else settings.data_dir / "keys.json", named)

    # Looking

    def find(self, presented: str) -> Key | None:
        """The key with this text, whether it still opens anything or not; ``None`` for one that is not known."""
        return self._by_digest.get(digest_of(presented))

    def current(self, key: Key) -> Key | None:
        """What is known of a key by now; ``None`` when it opens nothing any more."""
        found = self._by_digest.get(key.digest)
        return None if found is None or found.end() else found

    def get(self, key_id: str) -> Key:
        """The key of this id.

        Raises:
            NotFound: when there is none.
        """
        for key in self._by_digest.values():
            if key.id == key_id:
                return key
        raise NotFound(f"there is no key {key_id!r:.80}")

    def all(self) -> list[Key]:
        """All keys, oldest first, ended ones included."""
        return sorted(self._by_digest.values(), key=lambda key: (key.created, key.id))

    def opens(self) -> bool:
        """Whether any key opens anything."""
        now = time.time()
        return any(not key.end(now) for key in self._by_digest.values())

    def used(self, key: Key) -> None:
        """Note that a key was used."""
        now = time.time()
        if key.last_used is None or now - key.last_used >= USED_EVERY_S:
            key.last_used = now
            if key.kept == "file":
                self._used[key.id] = now

    # Changing

    def make(
        self,
        name: str,
        scopes: Iterable[str],
        tenant: str | None = None,
        expires: float | None = None,
        quotas: dict[str, int] | None = None,
    ) -> tuple[Key, str]:
        """Make a key. Returns it with its text, which is kept nowhere.

        Raises:
            InvalidRequest: for a server that has as many keys as it can.
        """
        secret = generate_key()
        key = Key(
            id="k_" + secrets.token_hex(6), digest=digest_of(secret), name=name,
            tenant=tenant or "t_" + secrets.token_hex(8), scopes=[s for s in ALL_SCOPES if s in set(scopes)],
            created=time.time(), expires=expires, quotas=quotas or {}, kept="memory" if self.path is None else "file",
        )  # fmt: skip
        with self._changing() as made:
            if len(made) >= MAX_KEYS:
                _forget_the_oldest(made)
            made[key.id] = key
        return key, secret

    def make_for_this_run(self) -> str:
        """Make a key with all scopes that nobody can revoke and nothing keeps. Returns its text."""
        secret = generate_key()
        key = Key(
            id="k_run", digest=digest_of(secret), name="made for this run", tenant=LOCAL_TENANT,
            scopes=list(ALL_SCOPES), created=time.time(), kept="setting",
        )  # fmt: skip
        self._fixed[key.digest] = key
        self._index()
        return secret

    def revoke(self, key_id: str) -> Key:
        """End a key, for good. One that has ended stays as it is.

        Raises:
            NotFound: when there is no such key.
            InvalidRequest: for one that a setting names.
        """
        with self._changing() as made:
            key = made.get(key_id)
            if key is None:
                known = self.get(key_id)
                raise InvalidRequest(
                    f"key {known.id} is kept by the setting {known.name}: take it out there and restart the server"
                )
            if key.revoked is None:
                key.revoked = time.time()
        return key

    # The file

    def refresh(self) -> bool:
        """Read the file again if it has changed; once a minute write down which keys were used.

        Returns whether keys may have changed.

        Raises:
            DamagedKeys: when it is not a file of keys.
            OSError: when it cannot be read.
        """
        if self.path is None:
            self._index()
            return False
        if self._used and time.monotonic() - self._noted >= USED_EVERY_S:
            self.note_use()
            return True
        stamp = self._stamped()
        if stamp == self._stamp and self._by_digest:
            return False
        self._made = self._read()
        self._stamp = stamp
        self._index()
        return True

    def note_use(self) -> None:
        """Write down when keys were used last."""
        self._noted = time.monotonic()
        if self._used:
            with self._changing() as made:
                for key_id, at in self._used.items():
                    if key_id in made:
                        made[key_id].last_used = at
                self._used = {}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """The keys that were made, by id, as they are now; what is changed in them is kept."""
        if self.path is None:
            yield self._made
            self._index()
            return
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(descriptor)
            made = self._read()
            yield made
            self._write(made)
            self._made, self._stamp = made, self._stamped()
            self._index()
        finally:
            os.close(descriptor)

    def _index(self) -> None:
        # Settings come last: they win over a file that somebody may have been able to write.
        self._by_digest = {key.digest: key for key in self._made.values()} | self._fixed

    def _stamped(self) -> tuple[int, int, int] | None:
        assert self.path is not None
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> dict[str, Key]:
        assert self.path is not None
        try:
            with open(open_file(self.path, follow=True), "rb") as file:
                found = msgspec.json.decode(file.read(), type=_File)
        except FileNotFoundError:
            return {}
        except NotAFile as error:
            raise DamagedKeys(f"{self.path} is not a file of keys: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise DamagedKeys(f"{self.path} is not a file of keys: {error}") from None
        if found.version != FILE_VERSION:
            raise DamagedKeys(f"{self.path} has version {found.version}, this server reads {FILE_VERSION}")
        for key in found.keys:
            key.kept = "file"
        return {key.id: key for key in found.keys}

    def _write(self, made: dict[str, Key]) -> None:
        assert self.path is not None
        data = msgspec.json.format(msgspec.json.encode(_File(FILE_VERSION, list(made.values()))))
        partial = self.path.with_name(self.path.name + ".part")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data + b"\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _lock(descriptor: int) -> None:
    """Lock a file. Others hold it for milliseconds; one that was stopped in between must not stop the server, too.

    Raises:
        Unavailable: when it stays locked.
    """
    for _ in range(LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOCK_PAUSE_S)
    raise Unavailable("another process is changing the file of keys, and takes its time")


def _forget_the_oldest(made: dict[str, Key]) -> None:
    """Drop the key that ended first.

    Raises:
        InvalidRequest: when none has ended.
    """
    ended = [key for key in made.values() if key.end()]
    if not ended:
        raise InvalidRequest(f"there are {MAX_KEYS:,} keys, as many as can be: revoke those that nobody uses")
    del made[min(ended, key=lambda key: key.revoked or key.expires or 0.0).id]
