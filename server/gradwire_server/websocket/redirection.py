"""Streams at a gateway: each is redirected to the worker that has its session, or relayed there.

A client that lists ``redirect`` among the capabilities of its hello follows a redirect. It leaves the capability out
when it cannot reach workers, and older clients do not know it; their streams are relayed.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect

from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError, MalformedFrame
from gradwire_protocol.frames import REDIRECT, Hello, Message, Refusal

from ..auth.caller import Caller
from ..errors.error_mapping import to_problem
from ..http.decoding import decode, is_large
from ..http.redirector import Redirector
from . import closing, handshake
from .closing import End

HELLO_BYTES: Final = 1 << 20
"""The decoded size of a hello, which is much smaller."""

log = structlog.get_logger("gradwire.stream")


async def place(socket: WebSocket, session: str, caller: Caller, redirector: Redirector) -> None:
    """Serve an accepted stream of a gateway."""
    human = False
    try:
        first = await asyncio.wait_for(_receive(socket), handshake.HELLO_PATIENCE_S)
        human = isinstance(first, str)
        hello = _hello(first)
        found = await redirector.redirect(session, caller, hello) if REDIRECT in hello.capabilities else None
        if found is None:
            await redirector.relay(socket, session, caller, first)
            return
        log.info("stream redirected", session=session, agent=hello.agent[:100])
        await _send(socket, found, human)
        await socket.close(closing.NORMAL, "redirected")
    except WebSocketDisconnect:
        return
    except TimeoutError:
        await _refuse(socket, closing.SILENT, human)
    except GradwireError as error:
        await _refuse(socket, closing.hello_refused(error), human)


def _hello(first: bytes | str) -> Hello:
    """Decode the first message.

    Raises:
        MalformedFrame: when it is no hello.
        VersionMismatch: when the client has another protocol version.
    """
    if is_large(first):
        raise MalformedFrame(f"the first message of a stream must be a hello, not {len(first):,} bytes")
    return handshake.check_version(decode(first, HELLO_BYTES).message)


async def _receive(socket: WebSocket) -> bytes | str:
    event = await socket.receive()
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1006))
    data: bytes | str = event.get("bytes") or event.get("text") or b""
    return data


async def _send(socket: WebSocket, message: Message, human: bool) -> None:
    if human:
        await socket.send_text(msgspec.json.encode(message).decode())
    else:
        await socket.send_bytes(envelope.join(envelope.encode(message)))


async def _refuse(socket: WebSocket, end: End, human: bool) -> None:
    try:
        if end.problem is not None:
            await _send(socket, Refusal(to_problem(end.problem)), human)
        await socket.close(end.code, end.reason)
    except (WebSocketDisconnect, RuntimeError):
        log.debug("client already disconnected")
