"""Tickets: what a browser opens a stream with, since it cannot send a key along with a WebSocket.

A key in a URL would end in logs, histories and Referer headers. A ticket may: it opens one stream of one session, once,
within seconds, and only for a web page of an allowed origin. Tickets live in memory, as hashes.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from gradwire_protocol.errors import TooManyRequests, Unauthorized

from ..settings import Settings, variable
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
        self._waiting: dict[str, OrderedDict[bytes, _Ticket]] = {}
        """By tenant, oldest first: nobody's tickets crowd out another's."""

    def issue(self, key: Key, session: str) -> tuple[str, float]:
        """A ticket for a session, and the seconds until it is worth nothing.

        Raises:
            TooManyRequests: when too many of this tenant wait to be used.
        """
        now = time.monotonic()
        mine = self._waiting.setdefault(key.tenant, OrderedDict())
        while mine and next(iter(mine.values())).expires <= now:
            mine.popitem(last=False)
        if len(mine) >= TICKETS_PER_TENANT:
            raise TooManyRequests(
                f"{TICKETS_PER_TENANT} tickets of this key wait to be used; each lasts {self._ttl:g} s "
                f"({variable('ticket_ttl_s')})",
                setting=variable("ticket_ttl_s"), limit=TICKETS_PER_TENANT,
                retry_after_s=next(iter(mine.values())).expires - now,
            )  # fmt: skip
        text = secrets.token_urlsafe(32)
        mine[_digest(text)] = _Ticket(key, session, now + self._ttl)
        return text, self._ttl

    def redeem(self, text: str, session: str) -> Key:
        """The key behind a ticket, which is used up by being shown, rightly or wrongly.

        Raises:
            Unauthorized: for one that is not known, was used, is too old, or is for another session.
        """
        digest = _digest(text)
        for tenant, mine in self._waiting.items():
            ticket = mine.pop(digest, None)
            if ticket is not None:
                if not mine:
                    del self._waiting[tenant]
                if ticket.session == session and ticket.expires > time.monotonic():
                    return ticket.key
                break
        raise Unauthorized("this ticket opens nothing here (any more): POST /v1/tickets gives another")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogateescape")).digest()
