"""Tickets for browsers, which cannot send a key header with a WebSocket handshake.

A ticket is part of the URL, which may end up in logs, histories and Referer headers. So it is single-use, expires
within seconds, and opens one stream of one session, only for a page of an allowed origin. The server keeps tickets in
memory, as hashes.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from gradwire_protocol.errors import TooManyRequests, Unauthorized

from ..settings.settings import Settings, digest_of, variable
from .keys import Key

TICKETS_PER_TENANT: Final = 1000


@dataclass(frozen=True, slots=True)
class _Ticket:
    key: Key
    session: str
    expires: float


class Tickets:
    """The unused tickets."""

    def __init__(self, settings: Settings) -> None:
        self._ttl = settings.ticket_ttl_s
        self._waiting: OrderedDict[str, _Ticket] = OrderedDict()
        """In order of expiry."""
        self._counts: Counter[str] = Counter()
        """Unused tickets per tenant. The limit is per tenant, so that tenants cannot crowd out each other."""

    def issue(self, key: Key, session: str) -> tuple[str, float]:
        """Issue a ticket for a session. Returns it and its lifetime in seconds.

        Raises:
            TooManyRequests: when the tenant has too many unused tickets.
        """
        now = time.monotonic()
        while self._waiting and next(iter(self._waiting.values())).expires <= now:
            self._remove(next(iter(self._waiting)))
        if self._counts[key.tenant] >= TICKETS_PER_TENANT:
            oldest = next(each for each in self._waiting.values() if each.key.tenant == key.tenant)
            raise TooManyRequests(
                f"this key has {TICKETS_PER_TENANT} unused tickets, the maximum; each expires after {self._ttl:g} s "
                f"({variable('ticket_ttl_s')})",
                setting=variable("ticket_ttl_s"), limit=TICKETS_PER_TENANT,
                retry_after_s=oldest.expires - now,
            )  # fmt: skip
        text = secrets.token_urlsafe(32)
        self._waiting[digest_of(text)] = _Ticket(key, session, now + self._ttl)
        self._counts[key.tenant] += 1
        return text, self._ttl

    def redeem(self, text: str, session: str) -> Key:
        """Redeem a ticket for its key. A ticket is single-use: any attempt consumes it.

        Raises:
            Unauthorized: when the ticket is unknown, used, expired, or for another session.
        """
        ticket = self._remove(digest_of(text))
        if ticket is None or ticket.session != session or ticket.expires <= time.monotonic():
            raise Unauthorized("invalid, used or expired ticket; get a new one from POST /v1/tickets")
        return ticket.key

    def _remove(self, digest: str) -> _Ticket | None:
        ticket = self._waiting.pop(digest, None)
        if ticket is not None:
            self._counts[ticket.key.tenant] -= 1
            if not self._counts[ticket.key.tenant]:
                del self._counts[ticket.key.tenant]
        return ticket
