"""Tickets for web pages that any gateway of the fleet redeems: signed, not remembered.

A gateway cannot know what another one has redeemed, so a ticket opens at most one stream at each gateway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gradwire_protocol.errors import Unauthorized

from ..auth.keys import Key, KeyStore
from ..auth.passes import LIFETIMES_S, PassMint, PassVerifier
from ..auth.tickets import Tickets
from ..settings.settings import Settings

ANY_GATEWAY: Final = "gateways"
"""What stands for the worker in a ticket."""


class FleetTickets(Tickets):
    """The tickets of a gateway.

    Args:
        current: the fleet's secret, which changes when all of its processes were gone.
        keys: the gateway's.
    """

    def __init__(self, settings: Settings, current: Callable[[], bytes], keys: KeyStore) -> None:
        super().__init__(settings)
        self._current = current
        self._keys = keys
        self._secret = b""
        self._mint: PassMint | None = None
        self._verifier: PassVerifier | None = None

    def _renew(self) -> tuple[PassMint, PassVerifier]:
        secret = self._current()
        if self._mint is None or self._verifier is None or secret != self._secret:
            self._secret = secret
            self._mint, self._verifier = PassMint(secret), PassVerifier(secret, ANY_GATEWAY)
        return self._mint, self._verifier

    def issue(self, key: Key, session: str) -> tuple[str, float]:
        """Issue a ticket for a session. Returns it and its lifetime in seconds."""
        mint, _ = self._renew()
        return mint.stream(key, session, ANY_GATEWAY), LIFETIMES_S["stream"]

    def redeem(self, text: str, session: str) -> Key:
        """Redeem a ticket for its key, as far as a pass describes it.

        Raises:
            Unauthorized: when it is not valid for this session, or was used here.
        """
        _, verifier = self._renew()
        bearer = verifier.check(text, "stream", session).bearer
        for key in self._keys.all():
            if key.id == bearer.id:
                return key
        raise Unauthorized("the API key of this ticket is unknown here; get a new ticket from POST /v1/tickets")
