"""What a gateway of a fleet knows of sessions that other processes serve."""

from __future__ import annotations

from typing import Protocol

from starlette.websockets import WebSocket

from gradwire_protocol.frames import Hello, Redirect

from ..auth.caller import Caller


class Redirector(Protocol):
    """Places the streams of a gateway, which has no sessions of its own.

    Errors of these methods that are :class:`GradwireError` reach the client as a refusal; ``Unavailable`` lets it try
    again.
    """

    async def find(self, session_id: str, tenant: str, /) -> object:
        """Find a session of a tenant, before anything is accepted.

        Raises:
            NotFound: when the tenant has no such session.
            SessionGone: when the tenant's session has ended.
        """

    async def redirect(self, session: str, caller: Caller, hello: Hello) -> Redirect | None:
        """Where a client that follows redirects finds the session; ``None`` to relay it."""

    async def relay(self, socket: WebSocket, session: str, caller: Caller, first: bytes | str) -> None:
        """Relay an accepted stream to the worker that has the session, until it ends. ``first`` is the hello, which was
        received already."""
