"""API keys: creation, storage as hashes, lookup and revocation.

A key is 256 random bits, shown once. The store keeps its SHA-256. Random keys of this length cannot be guessed, so a
slow hash would gain nothing. The lookup by digest needs no constant time: to use its timing, an attacker would have to
choose digests, that is, invert SHA-256.

Sessions belong to a *tenant*, which can have several keys. To rotate a key, create a second key for the tenant, switch
the programs to it, and revoke the first.
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
from ..settings.settings import HASHED, Settings, digest_of
from .scopes import ADMIN, ANY, READ, SESSION

ALL_SCOPES: Final = (READ, SESSION, ADMIN)
QUOTAS: Final = (
    "max_ops_per_second", "max_bytes_per_second", "max_requests_per_second", "max_key_sessions", "max_key_bytes",
    "max_key_gpus", "max_key_cpus", "max_key_memory",
)  # fmt: skip
"""Settings that a key can override."""

MAX_KEYS: Final = 10_000
USED_EVERY_S: Final = 60.0
"""The precision of the stored last use."""

LOCAL_TENANT: Final = "local"
"""The tenant of a key generated for one run. The next run's key has the same tenant and finds its sessions."""

LOCK_TRIES: Final = 100
LOCK_PAUSE_S: Final = 0.005
FILE_VERSION: Final = 1

log = structlog.get_logger("gradwire.keys")


class Key(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A stored key.

    Attributes:
        digest: SHA-256 of the key, in hexadecimal.
        tenant: the owner of the sessions that it creates.
        expires, revoked, last_used: Unix times, or ``None``. The last use is precise to a minute.
        quotas: settings that this key overrides.
        kept: where the key is stored: ``file``, ``memory`` (until the server stops) or ``setting``.
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
        """Why the key is invalid: ``revoked``, ``expired``, or empty for a valid key."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= (time.time() if now is None else now):
            return "expired"
        return ""

    def may(self, scope: str) -> bool:
        """Whether the key has a scope. ``session`` includes ``read``; any key has ``any``."""
        return scope in self.scopes or scope == ANY or (scope == READ and SESSION in self.scopes)

    def quota(self, name: str, settings: Settings) -> int:
        """The key's limit; 0 for none."""
        limit: int = getattr(settings, name)
        return self.quotas.get(name, limit)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    keys: list[Key]


class DamagedKeys(ValueError):
    """The key file is damaged."""


def generate_key() -> str:
    """A new API key with 256 random bits."""
    return "gw_" + secrets.token_urlsafe(32)


def _set(hashes: Iterable[str], scopes: Iterable[str], name: str) -> Iterator[Key]:
    """The keys of a setting. Each has a tenant of its own, named after its digest."""
    for each in hashes:
        digest = each.removeprefix(HASHED)
        yield Key(
            id="k_" + digest[:12], digest=digest, name=name, tenant=digest[:16], scopes=list(scopes), kept="setting"
        )


class KeyStore:
    """The keys of a server: those of the settings and those created at run time.

    Created keys are in one file, which is replaced atomically. Another process (``gradwire-server keys``) can change it
    at any time, so each change re-reads the file under a lock.

    Args:
        path: the file, or ``None`` to keep created keys in memory until the server stops.
        fixed: keys that are not in the file and cannot be revoked.

    Raises:
        DamagedKeys: when the file is not a key file.
        OSError: when the file is not readable.
    """

    def __init__(self, path: Path | None, fixed: Iterable[Key] = ()) -> None:
        self.path = path
        self._fixed = {key.digest: key for key in fixed}
        self._made: dict[str, Key] = {}
        self._by_digest: dict[str, Key] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._used: dict[str, float] = {}
        self._refused: set[str] = set()
        self._noted = time.monotonic()
        self.refresh()

    @classmethod
    def configured(cls, settings: Settings) -> KeyStore:
        """The key store for these settings."""
        named = [
            *_set(settings.api_keys, (READ, SESSION), "GRADWIRE_API_KEYS"),
            *_set(settings.admin_keys, ALL_SCOPES, "GRADWIRE_ADMIN_KEYS"),
        ]
        return cls(None if settings.data_dir is None else settings.data_dir / "keys.json", named)

    # Lookup

    def find(self, presented: str) -> Key | None:
        """The key with this text, valid or not; ``None`` for an unknown key."""
        return self._by_digest.get(digest_of(presented))

    def current(self, key: Key) -> Key | None:
        """The current state of a key; ``None`` if it is no longer valid."""
        found = self._by_digest.get(key.digest)
        return None if found is None or found.end() else found

    def get(self, key_id: str) -> Key:
        """The key with this id.

        Raises:
            NotFound: when no key has this id.
        """
        for key in self._by_digest.values():
            if key.id == key_id:
                return key
        raise NotFound(f"no key has the id {key_id!r:.80}")

    def all(self) -> list[Key]:
        """All keys, invalid ones included, oldest first."""
        return sorted(self._by_digest.values(), key=lambda key: (key.created, key.id))

    def has_valid_key(self) -> bool:
        """Whether any key is valid."""
        now = time.time()
        return any(not key.end(now) for key in self._by_digest.values())

    def used(self, key: Key) -> None:
        """Record the use of a key."""
        now = time.time()
        if key.last_used is None or now - key.last_used >= USED_EVERY_S:
            key.last_used = now
            if key.kept == "file":
                self._used[key.id] = now

    # Changes

    def make(
        self,
        name: str,
        scopes: Iterable[str],
        tenant: str | None = None,
        expires: float | None = None,
        quotas: dict[str, int] | None = None,
    ) -> tuple[Key, str]:
        """Create a key. Returns it with its text, which is stored nowhere.

        Raises:
            InvalidRequest: when the store is full.
        """
        secret = generate_key()
        key = Key(
            id="k_" + secrets.token_hex(6), digest=digest_of(secret), name=name,
            tenant=tenant or "t_" + secrets.token_hex(8), scopes=[s for s in ALL_SCOPES if s in set(scopes)],
            created=time.time(), expires=expires, quotas=quotas or {}, kept="memory" if self.path is None else "file",
        )  # fmt: skip
        with self._changing() as made:
            if len(made) >= MAX_KEYS:
                _drop_oldest_invalid(made)
            made[key.id] = key
        return key, secret

    def make_for_this_run(self) -> str:
        """Create an irrevocable key with all scopes in memory. Returns its text."""
        secret = generate_key()
        key = Key(
            id="k_run", digest=digest_of(secret), name="generated for this run", tenant=LOCAL_TENANT,
            scopes=list(ALL_SCOPES), created=time.time(), kept="setting",
        )  # fmt: skip
        self._fixed[key.digest] = key
        self._index()
        return secret

    def revoke(self, key_id: str) -> Key:
        """Revoke a key permanently. A revoked key keeps its state.

        Raises:
            NotFound: when no key has this id.
            InvalidRequest: when a setting defines the key.
        """
        with self._changing() as made:
            key = made.get(key_id)
            if key is None:
                known = self.get(key_id)
                raise InvalidRequest(
                    f"the setting {known.name} defines the key {known.id}; remove it there and restart the server"
                )
            if key.revoked is None:
                key.revoked = time.time()
        return key

    def refuse(self, ids: Iterable[str]) -> bool:
        """Hold these keys to be revoked, as another gateway of the fleet says, until the server stops.

        Keys of settings stay. Returns whether that ended any.
        """
        ended = [key.id for key in self._made.values() if key.id in set(ids) and not key.end()]
        self._refused.update(ended)
        self._index()
        return bool(ended)

    # The file

    def refresh(self) -> bool:
        """Reload the file if it has changed. Once a minute, write the last uses of keys.

        Returns whether keys may have changed.

        Raises:
            DamagedKeys: when the file is not a key file.
            OSError: when the file is not readable.
        """
        if self.path is None:
            self._index()
            return False
        if self._used and time.monotonic() - self._noted >= USED_EVERY_S:
            self.note_use()
            return True
        stamp = self._file_stamp()
        if stamp == self._stamp and self._by_digest:
            return False
        self._made = self._read()
        self._stamp = stamp
        self._index()
        return True

    def note_use(self) -> None:
        """Write the last uses of keys."""
        self._noted = time.monotonic()
        if self._used:
            with self._changing() as made:
                for key_id, at in self._used.items():
                    if key_id in made:
                        made[key_id].last_used = at
                self._used = {}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """The created keys by id, re-read from the file. Changes to them are written on exit."""
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
            self._made, self._stamp = made, self._file_stamp()
            self._index()
        finally:
            os.close(descriptor)

    def _index(self) -> None:
        for key in self._made.values():
            if key.id in self._refused and key.revoked is None:
                key.revoked = time.time()
        # Settings override the file, which is easier to tamper with.
        self._by_digest = {key.digest: key for key in self._made.values()} | self._fixed

    def _file_stamp(self) -> tuple[int, int, int] | None:
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
            raise DamagedKeys(f"{self.path} is not a key file: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise DamagedKeys(f"{self.path} is not a key file: {error}") from None
        if found.version != FILE_VERSION:
            raise DamagedKeys(f"{self.path} has version {found.version}; this server reads version {FILE_VERSION}")
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
    """Lock a file, with a timeout: a stopped process that holds the lock must not block the server.

    Raises:
        Unavailable: at the timeout.
    """
    for _ in range(LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOCK_PAUSE_S)
    raise Unavailable("the key file is locked by another process; try again")


def _drop_oldest_invalid(made: dict[str, Key]) -> None:
    """Drop the key that expired or was revoked first.

    Raises:
        InvalidRequest: when all keys are valid.
    """
    ended = [key for key in made.values() if key.end()]
    if not ended:
        raise InvalidRequest(f"the server has {MAX_KEYS:,} keys, the maximum; revoke unused keys")
    del made[min(ended, key=lambda key: key.revoked or key.expires or 0.0).id]
