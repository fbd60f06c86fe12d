"""Tickets: what a browser opens a stream with, since it cannot send a key along with a WebSocket.

A key in a URL would end in logs, histories and Referer headers. A ticket may: it opens one stream of one session, once,
within seconds, and only for a web page of an allowed origin. Tickets live in memory, as hashes.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from gradwire_protocol.errors import TooManyRequests, Unauthorized

from ..settings import Settings, digest_of, variable
from .keys import Key

TICKETS_PER_TENANT: Final = 1000


@dataclass(frozen=True, slots=True)
class _Ticket:
    key: Key
    session: str
    expires: float


class Tickets:
    """The tickets that have not been used yet."""

    def __init__(self, settings: Settings) -> None:
        self._ttl = settings.ticket_ttl_s
        self._waiting: OrderedDict[str, _Ticket] = OrderedDict()
        """Oldest first, which are those that expire first."""
        self._counts: Counter[str] = Counter()
        """How many each tenant has: nobody's tickets crowd out another's."""

    def issue(self, key: Key, session: str) -> tuple[str, float]:
        """A ticket for a session, and the seconds until it is worth nothing.

        Raises:
            TooManyRequests: when too many of this tenant wait to be used.
        """
        now = time.monotonic()
        while self._waiting and next(iter(self._waiting.values())).expires <= now:
            self._take(next(iter(self._waiting)))
        if self._counts[key.tenant] >= TICKETS_PER_TENANT:
            oldest = next(each for each in self._waiting.values() if each.key.tenant == key.tenant)
            raise TooManyRequests(
                f"{TICKETS_PER_TENANT} tickets of this key wait to be used; each lasts {self._ttl:g} s "
                f"({variable('ticket_ttl_s')})",
                setting=variable("ticket_ttl_s"), limit=TICKETS_PER_TENANT,
                retry_after_s=oldest.expires - now,
            )  # fmt: skip
        text = secrets.token_urlsafe(32)
        self._waiting[digest_of(text)] = _Ticket(key, session, now + self._ttl)
        self._counts[key.tenant] += 1
        return text, self._ttl

    def redeem(self, text: str, session: str) -> Key:
        """The key behind a ticket, which is used up by being shown, rightly or wrongly.

        Raises:
            Unauthorized: for one that is not known, was used, is too old, or is for another session.
        """
        ticket = self._take(digest_of(text))
        if ticket is None or ticket.session != session or ticket.expires <= time.monotonic():
            raise Unauthorized("this ticket opens nothing here (any more): POST /v1/tickets gives another")
        return ticket.key

    def _take(self, digest: str) -> _Ticket | None:
        ticket = self._waiting.pop(digest, None)
        if ticket is not None:
            self._counts[ticket.key.tenant] -= 1
            if not self._counts[ticket.key.tenant]:
                del self._counts[ticket.key.tenant]
        return ticket
