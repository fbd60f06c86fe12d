"""Tickets for web pages that any gateway of the fleet redeems: signed, not remembered.

A gateway cannot know what another one has redeemed, so a ticket opens at most one stream at each gateway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gradwire_protocol.errors import Unauthorized

from ..auth.keys import Key
from ..auth.passes import LIFETIMES_S, PassMint, PassVerifier
from ..auth.tickets import Tickets

if TYPE_CHECKING:
    from .gateway import Gateway

ANY_GATEWAY: Final = "gateways"
"""What stands for the worker in a ticket."""


class FleetTickets(Tickets):
    """The tickets of a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway.settings)
        self._gateway = gateway
        self._secret = b""
        self._mint: PassMint | None = None
        self._verifier: PassVerifier | None = None

    def _renew(self) -> tuple[PassMint, PassVerifier]:
        secret = self._gateway.secret
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
        for key in self._gateway.keys.all():
            if key.id == bearer.id:
                return key
        raise Unauthorized("the API key of this ticket is unknown here; get a new ticket from POST /v1/tickets")
