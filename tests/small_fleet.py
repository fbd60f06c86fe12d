"""A gateway and a worker in threads of this process, for tests of redirects and passes."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import httpx
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from gradwire_protocol.errors import NotFound
from gradwire_protocol.frames import Hello, Redirect
from gradwire_server.auth.caller import Caller
from gradwire_server.auth.keys import Key
from gradwire_server.auth.passes import PASS_HEADER, PassMint, PassVerifier

from .live_server import LiveServer, live_server

WORKER: Final = "worker-1"


@dataclass
class Director:
    """Sends all streams to one worker.

    Attributes:
        target: the worker's own URL.
        addresses: where redirects lead, one after the other; the last one remains. ``None`` relays.
        tickets: what the next redirects carry instead of a valid ticket.
        hellos: those that offered to follow a redirect, as they came.
        relayed: how many streams were relayed.
        callers: who opened streams.
    """

    mint: PassMint
    target: str = ""
    addresses: list[str | None] = field(default_factory=list)
    tickets: list[str] = field(default_factory=list)
    hellos: list[Hello] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    sessions: dict[str, str] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    relayed: int = 0

    async def find(self, session_id: str, tenant: str, /) -> object:
        if self.sessions.get(session_id) != tenant:
            raise NotFound(f"no session {session_id}")
        return session_id

    async def redirect(self, session: str, caller: Caller, hello: Hello) -> Redirect | None:
        self.hellos.append(hello)
        self.callers.append(caller)
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        if address is None:
            return None
        ticket = self.tickets.pop(0) if self.tickets else self.mint.stream(caller.key, session, WORKER)
        self.given.append(ticket)
        return Redirect(address, ticket)

    async def relay(self, socket: WebSocket, session: str, caller: Caller, first: bytes | str) -> None:
        self.relayed += 1
        ticket = quote(self.mint.stream(caller.key, session, WORKER))
        url = f"{self.target.replace('http', 'ws', 1)}/v1/sessions/{session}/stream?ticket={ticket}"
        async with connect(url, compression=None, max_size=None) as far:
            await far.send(first)
            ways = [asyncio.create_task(self._up(socket, far)), asyncio.create_task(self._down(socket, far))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await socket.close(far.close_code or 1012)

    async def _up(self, near: WebSocket, far: ClientConnection) -> None:
        while True:
            event = await near.receive()
            if event["type"] == "websocket.disconnect":
                return
            await far.send(event.get("bytes") or event.get("text") or b"")

    async def _down(self, near: WebSocket, far: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for data in far:
                await (near.send_text(data) if isinstance(data, str) else near.send_bytes(data))


@dataclass
class SmallFleet:
    """One gateway, one worker."""

    gateway: LiveServer
    worker: LiveServer
    director: Director
    mint: PassMint
    verify: ssl.SSLContext | bool = False

    @property
    def key(self) -> Key:
        """The gateway's key of the first tenant."""
        found: Key | None = self.gateway.app.state.server.access.keys.find(self.gateway.api_key)
        assert found is not None
        return found

    def ask(self, method: str, path: str, session: str = "", **more: Any) -> httpx.Response:
        """A request to the worker, as a gateway forwards it."""
        headers = {PASS_HEADER: self.mint.request(self.key, session, WORKER)}
        return httpx.request(method, self.worker.url + path, headers=headers, timeout=240, verify=self.verify, **more)

    def create(self) -> str:
        """A new session of the first tenant, on the worker."""
        response = self.ask("POST", "/v1/sessions", json={})
        assert response.status_code == 201, response.text
        session = str(response.json()["id"])
        self.director.sessions[session] = self.key.tenant
        return session

    def delete(self, session: str) -> None:
        """Delete a session."""
        del self.director.sessions[session]
        assert self.ask("DELETE", f"/v1/sessions/{session}", session).status_code == 204

    def end_key(self, key_id: str) -> None:
        """Tell the worker that a key was revoked, as the fleet does. In its event loop, where its streams are."""
        access = self.worker.app.state.server.access
        done = threading.Event()
        self.worker.app.state.loop.call_soon_threadsafe(lambda: (access.end_keys([key_id]), done.set()))
        assert done.wait(60)

    def point(self, *addresses: str | None) -> None:
        """Let redirects lead to these addresses, and forget what was."""
        self.director.addresses = list(addresses)
        for kept in (self.director.hellos, self.director.callers, self.director.tickets, self.director.given):
            kept.clear()
        self.director.relayed = 0


@contextmanager
def small_fleet(gateway: dict[str, Any] | None = None, worker: dict[str, Any] | None = None) -> Iterator[SmallFleet]:
    """A fleet of one gateway and one worker, with these settings."""
    secret = secrets.token_bytes(32)
    mint = PassMint(secret)
    director = Director(mint)
    with live_server(passes=PassVerifier(secret, WORKER), **(worker or {})) as far:
        director.target = far.url
        director.addresses = [far.url]
        with live_server(redirector=director, **(gateway or {})) as near:
            yield SmallFleet(near, far, director, mint)
