"""The facade of this package for the middleware and the routes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from ..settings.settings import Settings
from .audit import AuditLog
from .keys import DamagedKeys, Key, KeyStore
from .passes import PassVerifier
from .quotas import Quotas
from .rates import Rates
from .sign_ins import SignIns
from .tickets import Tickets

WATCH_EVERY_S: Final = 1.0
LONGEST_TIMER_S: Final = 86_400.0

EndStream = Callable[[str], None]
"""Ends a stream, with a reason for the client."""

log = structlog.get_logger("gradwire.access")


class AccessControl:
    """Keys, tickets, rates, quotas and the audit log of one server.

    Args:
        settings: the server's.
        keys: default: the keys of the settings.
        passes: for a worker of a fleet, which accepts passes and no keys.

    Raises:
        ValueError: when no valid API key exists.
    """

    def __init__(self, settings: Settings, keys: KeyStore | None = None, passes: PassVerifier | None = None) -> None:
        self.settings = settings
        self.passes = passes
        if passes is not None:
            keys = KeyStore(None)
        self.keys = keys if keys is not None else KeyStore.configured(settings)
        if passes is None and not self.keys.has_valid_key():
            raise ValueError("no API key; set GRADWIRE_API_KEYS or run gradwire-server keys create")
        self.rates = Rates(settings)
        self.quotas = Quotas(settings)
        self.tickets = Tickets(settings)
        self.sign_ins = SignIns(settings)
        self.audit = AuditLog.configured(settings)
        self._streams: dict[str, tuple[Key, set[EndStream]]] = {}
        self._checked = time.time()

    @contextmanager
    def stream(self, key: Key, end: EndStream) -> Iterator[None]:
        """Register a stream while it is open, to end it with its key."""
        _, ends = self._streams.setdefault(key.id, (key, set()))
        ends.add(end)
        self._arm(key)
        try:
            yield
        finally:
            ends.discard(end)
            if not ends:
                self._streams.pop(key.id, None)

    def keys_of_streams(self) -> list[str]:
        """The ids of the keys that have open streams."""
        return list(self._streams)

    def end_keys(self, ids: Iterable[str]) -> None:
        """In a worker of a fleet: these keys were revoked. Their streams end, and passes with them are refused."""
        if self.passes is not None:
            self.passes.end_keys(ids)
            self.end_streams()

    def _current(self, key: Key) -> Key | None:
        """The current state of a key; ``None`` if it is no longer valid."""
        if self.passes is None:
            return self.keys.current(key)
        return key if self.passes.is_valid(key) else None

    def _arm(self, key: Key) -> None:
        """Schedule a check of the key at its expiry."""
        if key.expires is not None and key.id in self._streams:
            wait = min(max(key.expires - time.time(), 0.0), LONGEST_TIMER_S)
            asyncio.get_running_loop().call_later(wait + 0.001, self._check, key)

    def _check(self, key: Key) -> None:
        current = self._current(key)
        if current is None:
            self.end_streams()
        else:
            self._arm(current)

    def end_streams(self) -> None:
        """End the streams of revoked and expired keys."""
        for key_id, (key, ends) in list(self._streams.items()):
            if self._current(key) is None:
                del self._streams[key_id]
                self.audit.note("key_ended", about=key.id, tenant=key.tenant)
                for end in list(ends):
                    end(f"API key {key.id} was revoked or has expired")

    async def watch(self) -> None:
        """Apply other processes' changes of the key file, forever."""
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            self._note_expired()
            try:
                changed = self.keys.refresh()
            except (DamagedKeys, OSError) as error:
                log.error("cannot read the key file; keys stay unchanged", exc_info=error)
                continue
            if changed:
                self.end_streams()

    def _note_expired(self) -> None:
        since, self._checked = self._checked, time.time()
        for key in self.keys.all():
            if key.expires is not None and since < key.expires <= self._checked and key.revoked is None:
                self.audit.note("key_expired", about=key.id, tenant=key.tenant)

    def close(self) -> None:
        """Write the last uses of keys and close the audit log."""
        try:
            self.keys.note_use()
        except (DamagedKeys, OSError) as error:
            log.error("cannot write the key file", exc_info=error)
        self.audit.close()
