"""Relaying a stream: the client's messages to the worker and back, unread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol

import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from gradwire_protocol.errors import GradwireError, Unavailable, from_code

from ..auth.caller import Caller
from ..auth.passes import PassMint
from ..http.backlog import SMALL_BYTES, Backlog
from ..http.connection_limits import DIRECT, LimitedStream
from ..websocket.closing import GOING_DOWN
from .messages import Placement

TRIES: Final = 4
CONNECT_TIMEOUT_S: Final = 3.0
QUEUED: Final = 1
"""Messages of a worker that wait for a client that reads slowly; more are left to TCP. Each may have tens of
megabytes."""

UNSENDABLE: Final = frozenset({1005, 1006, 1015})
"""Close codes that only stand for the lack of one."""

MOVED: Final = frozenset({"not_found", "session_gone", "unavailable", "unauthorized"})

log = structlog.get_logger("gradwire.fleet")


class Places(Protocol):
    """What a relay needs of its gateway."""

    async def locate(self, session: str, tenant: str, silent: str = "", fresh: bool = False) -> Placement:
        """Where a session is."""

    async def mint(self) -> PassMint:
        """Signs passes."""


class Held:
    """What a gateway holds of a relayed stream: it counts in the backlog of the key's tenant. The bytes count in the
    key's rate at the worker, as those of direct streams do.

    Args:
        direct: the client's connection; it stops reading while the backlog is full.
    """

    def __init__(self, backlog: Backlog, direct: LimitedStream | None) -> None:
        self.pending_bytes = 0
        self._backlog = backlog
        self._direct = direct
        self._passing = 0
        self._partial = 0
        self._freed = asyncio.Event()
        if direct is not None:
            direct.report_partial(self._on_partial)

    @contextmanager
    def passing(self, message: bytes | str) -> Iterator[None]:
        """Count a message while it is passed on."""
        self._passing += len(message)
        self._count()
        try:
            yield
        finally:
            self._passing -= len(message)
            self._count()

    async def room(self) -> None:
        """Wait until one more message may be read."""
        while not self._backlog.may_read(self):
            self._freed.clear()
            await self._freed.wait()

    def _on_partial(self, part: int) -> None:
        self._partial = part
        self._count()
        if part > SMALL_BYTES and self._direct is not None and not self._backlog.may_read(self):
            self._direct.pause_reading()

    def _count(self) -> None:
        self._backlog.update(self, self._passing + self._partial)

    def resume_reading(self) -> None:
        """Continue, because the tenant's other streams and requests have freed memory."""
        self._freed.set()
        if self._direct is not None and self._partial and self._backlog.may_read(self):
            self._direct.resume()

    def close(self) -> None:
        """Hold nothing more."""
        if self._direct is not None:
            self._direct.report_partial(lambda part: None)
        self._backlog.leave(self)


async def run(
    gateway: Places, socket: WebSocket, session: str, caller: Caller, first: bytes | str, backlog: Backlog
) -> None:
    """Relay an accepted stream until it ends. ``first``: the hello.

    Raises:
        GradwireError: when no worker takes the stream.
    """
    worker = await _open(gateway, session, caller)
    held = Held(backlog, socket.scope.get("extensions", {}).get(DIRECT))
    try:
        await worker.send(first)
        up = asyncio.create_task(_up(socket, worker, held))
        down = asyncio.create_task(_down(socket, worker, held))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (up, down):
                task.cancel()
            for outcome in await asyncio.gather(up, down, return_exceptions=True):
                if isinstance(outcome, Exception):
                    log.info("relay ended", session=session, reason=repr(outcome)[:200])
    finally:
        held.close()
        await worker.close()


async def _open(gateway: Places, session: str, caller: Caller) -> ClientConnection:
    """Connect to the worker that has the session."""
    silent = ""
    for attempt in range(TRIES):
        place = await gateway.locate(session, caller.key.tenant, silent, fresh=True)
        ticket = (await gateway.mint()).stream(caller.key, session, place.worker)
        url = place.url.replace("http", "ws", 1)
        try:
            return await connect(
                f"{url}/v1/sessions/{session}/stream?ticket={ticket}", compression=None, max_size=None,
                ping_interval=None, open_timeout=CONNECT_TIMEOUT_S, max_queue=QUEUED, proxy=None,
                user_agent_header=None, close_timeout=2,
            )  # fmt: skip
        except InvalidStatus as error:
            refusal = _refusal(bytes(error.response.body or b""), error.response.status_code)
            if attempt == TRIES - 1 or refusal.details.get("code", refusal.code) not in MOVED:
                raise refusal from None
            now = await gateway.locate(session, caller.key.tenant, fresh=True)
            if now.worker == place.worker and refusal.code != "unavailable":
                raise refusal from None
            await asyncio.sleep(0.1 * 2**attempt)
        except (OSError, TimeoutError, InvalidHandshake, ConnectionClosed) as error:
            log.warning("worker cannot be reached", worker=place.worker, reason=str(error))
            silent = place.worker
    raise Unavailable(f"no worker takes the stream of session {session}")


def _refusal(body: bytes, status: int) -> GradwireError:
    try:
        found = json.loads(body)
        return from_code(str(found["code"]), str(found["detail"]))
    except (ValueError, KeyError, TypeError):
        return Unavailable(f"the worker answered with HTTP {status}")


async def _up(socket: WebSocket, worker: ClientConnection, held: Held) -> None:
    """From the client to the worker. Its end closes the worker's stream."""
    while True:
        await held.room()
        event = await socket.receive()
        if event["type"] == "websocket.disconnect":
            code = event.get("code", 1000)
            await worker.close(1000 if code in UNSENDABLE else code, event.get("reason") or "")
            return
        data = event["text"] if event.get("bytes") is None else event["bytes"]
        with held.passing(data):
            await worker.send(data)


async def _down(socket: WebSocket, worker: ClientConnection, held: Held) -> None:
    """From the worker to the client. The worker's end closes the client's stream with the same code."""
    direct: LimitedStream | None = socket.scope.get("extensions", {}).get(DIRECT)
    try:
        while True:
            message = await worker.recv()
            with held.passing(message):
                if isinstance(message, str):
                    await socket.send_text(message)
                elif direct is None or not direct.send_now(message):
                    await socket.send_bytes(message)
    except ConnectionClosed as closed:
        code = closed.rcvd.code if closed.rcvd is not None else GOING_DOWN
        reason = closed.rcvd.reason if closed.rcvd is not None else "worker ended"
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(GOING_DOWN if code in UNSENDABLE else code, reason)
