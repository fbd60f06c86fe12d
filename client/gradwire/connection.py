"""One WebSocket to the server, without a thread: a blocking socket, and websockets' protocol logic on top.

The caller's thread sends and receives. While it waits to send it also receives, so that two full buffers cannot
block each other.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections import deque
from typing import Final
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError, Unauthorized, Unavailable, VersionMismatch, from_code
from gradwire_protocol.frames import PROTOCOL_VERSION, Hello, Message, Refusal, Welcome

from .quiet import stream_logger

RECEIVE_BYTES: Final = 1 << 20
CONNECT_TIMEOUT_S: Final = 10.0

Arrived = tuple[Message, list[memoryview]]


class Disconnected(ConnectionError):
    """The connection is gone; what was sent may or may not have arrived."""


class Connection:
    """An open stream to one session.

    Args:
        url: the server, ``http://`` or ``https://``.
        session: the session's id.
        key: the API key.
        hello: the first message, which tells who resumes.

    Raises:
        Disconnected: when the server cannot be reached.
        Unauthorized, VersionMismatch, ...: when it refuses.
    """

    def __init__(self, url: str, session: str, key: str | None, hello: Hello) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        host, port = parts.hostname or "127.0.0.1", parts.port or (443 if secure else 80)
        scheme = "wss" if secure else "ws"
        uri = parse_uri(f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/v1/sessions/{session}/stream")
        self.sent_bytes = 0
        self.received_bytes = 0
        self._messages: deque[Arrived] = deque()
        self._parts: list[bytes] = []
        try:
            raw = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket: socket.socket = (
                ssl.create_default_context().wrap_socket(raw, server_hostname=host) if secure else raw
            )
        except OSError as error:
            raise Disconnected(f"{host}:{port} cannot be reached: {error}") from None
        self._protocol = ClientProtocol(uri, max_size=None, logger=stream_logger())
        try:
            self._handshake(key)
            self.send(envelope.join(envelope.encode(hello)))
            self.welcome = self._await_welcome()
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    # Opening

    def _handshake(self, key: str | None) -> None:
        request = self._protocol.connect()
        if key:
            request.headers["Authorization"] = f"Bearer {key}"
        self._protocol.send_request(request)
        self._write_blocking()
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while self._protocol.state is State.CONNECTING:
            self._receive(deadline - time.monotonic())
            failure = self._protocol.handshake_exc
            if isinstance(failure, InvalidStatus):
                raise _refused(failure)
            if failure is not None and isinstance(failure, InvalidHandshake):
                raise Unavailable(f"the server's answer is not a WebSocket handshake: {failure}")
            if time.monotonic() > deadline:
                raise Disconnected("the server did not answer the handshake")

    def _await_welcome(self) -> Welcome:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while not self._messages:
            if time.monotonic() > deadline:
                raise Disconnected("the server did not say welcome")
            self._receive(deadline - time.monotonic())
        message, _ = self._messages.popleft()
        if isinstance(message, Refusal):
            problem = message.problem
            raise from_code(problem.code, problem.detail, **problem.extra)
        if not isinstance(message, Welcome) or message.version != PROTOCOL_VERSION:
            raise VersionMismatch(f"this client speaks version {PROTOCOL_VERSION} of the protocol, the server another")
        return message

    # Sending and receiving

    def send(self, data: bytes) -> None:
        """Send one message.

        Raises:
            Disconnected: when the connection broke.
        """
        if self._protocol.state is not State.OPEN:
            raise Disconnected("the connection is closed")
        self._protocol.send_binary(data)
        self._write_blocking()

    def receive(self, timeout: float | None) -> list[Arrived]:
        """What has arrived, after waiting for something for at most ``timeout`` seconds (None: without end).

        Raises:
            Disconnected: when the connection broke and nothing is left to read.
        """
        if not self._messages:
            self._receive(timeout)
        arrived = list(self._messages)
        self._messages.clear()
        return arrived

    def close(self) -> None:
        """Close the stream; the session lives on."""
        try:
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(1000)
                self._write_blocking()
        except (OSError, Disconnected):
            pass
        self._socket.close()

    def drop(self) -> None:
        """Let go of the socket without a word."""
        self._socket.close()

    def _write_blocking(self) -> None:
        for chunk in self._protocol.data_to_send():
            view = memoryview(chunk)
            self.sent_bytes += len(view)
            while view:
                try:
                    view = view[self._socket.send(view) :]
                except (BlockingIOError, ssl.SSLWantWriteError):
                    readable, _, _ = select.select([self._socket], [self._socket], [])
                    if readable:
                        self._receive(0)
                except OSError as error:
                    raise Disconnected(f"sending failed: {error}") from None

    def _receive(self, timeout: float | None) -> None:
        try:
            data = self._read(timeout)
        except OSError as error:
            raise Disconnected(f"receiving failed: {error}") from None
        if data is None:
            return
        if not data:
            self._protocol.receive_eof()
            if not self._messages:
                raise Disconnected("the server closed the connection")
            return
        self.received_bytes += len(data)
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, WebSocketFrame):
                self._take(event)
        if self._protocol.state is State.OPEN:
            self._write_blocking()  # pongs
        elif self._protocol.state in (State.CLOSING, State.CLOSED) and not self._messages:
            raise Disconnected(f"the server closed the connection ({self._protocol.close_code})")

    def _read(self, timeout: float | None) -> bytes | None:
        """Some bytes; None when the time is over; empty at the end."""
        pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
        if not pending and not select.select([self._socket], [], [], None if timeout is None else max(timeout, 0))[0]:
            return None
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None

    def _take(self, frame: WebSocketFrame) -> None:
        if frame.opcode in (Opcode.BINARY, Opcode.CONT):
            if frame.fin and not self._parts:
                self._messages.append(envelope.decode(frame.data))
                return
            self._parts.append(bytes(frame.data))
            if frame.fin:
                whole = b"".join(self._parts)
                self._parts.clear()
                self._messages.append(envelope.decode(whole))


def _refused(failure: InvalidStatus) -> GradwireError | Disconnected:
    response = failure.response
    status = response.status_code
    if status in (401, 403):
        return Unauthorized(f"the server refused the API key (HTTP {status}): set GRADWIRE_API_KEY or pass api_key=")
    if status in (502, 503, 504):
        return Disconnected(f"the server is not ready (HTTP {status})")
    if status in (404, 410):
        return from_code(
            "session_gone", "the session does not exist (any more) on the server, or belongs to another key"
        )
    return from_code("unavailable", f"the server answered the handshake with HTTP {status}")
