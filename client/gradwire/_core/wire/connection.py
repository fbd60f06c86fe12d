"""One WebSocket connection to the server, without a thread: a socket with the sans-I/O protocol of websockets.

The caller's thread sends and receives. While it waits to send it also receives, so that two full buffers cannot
deadlock. While it waits to receive it sends pings, so that a peer that disappeared without closing (a router that
dropped the connection, a machine that lost power) is detected.

An exception in the middle of a message, Ctrl-C included, ends the connection: a partial message cannot be undone.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from gradwire_protocol import envelope
from gradwire_protocol.awake import SPIN_S, Awake, usable_cores
from gradwire_protocol.errors import (
    BY_CODE,
    GradwireError,
    MalformedFrame,
    Unauthorized,
    Unavailable,
    VersionMismatch,
    from_code,
)
from gradwire_protocol.frames import Hello, Message, Redirect, Refusal, Welcome

from ..context.waiting import Wait
from . import tls
from .http_logging import stream_logger
from .readiness import wait_either, wait_readable
from .replies import error_of

RECEIVE_BYTES: Final = 64 << 10
MUCH_BYTES: Final = 1 << 20
"""Sizes of the receive buffer: at first, and while reads fill it. A large buffer costs more time than a small
message."""

MESSAGE_BYTES: Final = 256 << 20
"""The largest message that is accepted. Servers send large values in chunks of a few MB."""

CONNECT_TIMEOUT_S: Final = 10.0
HANDSHAKE_TIMEOUT_S: Final = 30.0
ATTEMPT_S: Final = CONNECT_TIMEOUT_S + HANDSHAKE_TIMEOUT_S
"""The longest that an attempt to connect takes when there is no answer."""

HEARTBEAT_S: Final = 15.0
PINGS_MISSED: Final = 2
"""Consecutive unanswered pings after which a connection is dead."""
STALLS: Final = 8
"""The same where the server may have paused reading on purpose (backpressure)."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3))

Arrived = tuple[Message, list[memoryview]]


class Disconnected(ConnectionError):
    """The connection is lost; what was sent may or may not have arrived.

    Attributes:
        retry_after: seconds that the server asked to wait before the next attempt.
    """

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class Connection:
    """An open stream to one session.

    Args:
        url: the server, ``http://`` or ``https://``.
        session: the session's id.
        key: the API key.
        hello: the first message, which identifies the client that resumes.
        heartbeat: seconds of silence after which a ping is sent while waiting for an answer.
        spin: seconds to busy-wait for an answer, if answers usually arrive that soon.
        ticket: opens the stream instead of the key, at a worker to which a gateway redirected.
        limits: seconds for connecting, TLS included, and for the handshake.
        answered: called when the server has answered the handshake, whatever it says.
        trust: the URL of the server whose certificate authorities are trusted; default: ``url``.
        wait: is told while the server's answers are waited for.

    Attributes:
        welcome: the server's answer, unless it redirects.
        redirect: where the session is served, instead of a welcome; the connection is then of no further use.
        direct: the connection leads to the worker that a gateway redirected to.

    Raises:
        Disconnected: when the server cannot be reached or reports that it is not ready.
        Unavailable: when the answer does not appear to come from a gradwire server.
        Unauthorized, VersionMismatch, ...: when the server refuses.
    """

    def __init__(
        self,
        url: str,
        session: str,
        key: str | None,
        hello: Hello,
        heartbeat: float = HEARTBEAT_S,
        spin: float = SPIN_S,
        *,
        ticket: str = "",
        limits: tuple[float, float] = (CONNECT_TIMEOUT_S, HANDSHAKE_TIMEOUT_S),
        answered: Callable[[], None] = lambda: None,
        trust: str = "",
        wait: Wait | None = None,
    ) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        host, port = parts.hostname or "127.0.0.1", parts.port or (443 if secure else 80)
        scheme = "wss" if secure else "ws"
        query = f"?ticket={quote(ticket)}" if ticket else ""
        uri = parse_uri(f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/v1/sessions/{session}/stream{query}")
        self.direct = False
        self.redirect: Redirect | None = None
        self.sent_bytes = 0
        self.received_bytes = 0
        self.heartbeat = heartbeat or None  # 0 switches it off
        self._awake = Awake(spin, usable_cores())
        self._messages: deque[Arrived] = deque()
        self._parts: list[bytes] = []
        self._broken = False
        self._asks = RECEIVE_BYTES
        try:
            raw = socket.create_connection((host, port), limits[0])
            _prepare(raw)
            context = tls.context(trust or url) if secure else None
            self._socket: socket.socket = raw if context is None else context.wrap_socket(raw, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise tls.distrusted(url, error) from None
        except (OSError, UnicodeError) as error:  # UnicodeError: a host name that cannot be encoded
            raise Disconnected(f"{host}:{port} cannot be reached: {error}") from None
        self._protocol = ClientProtocol(uri, max_size=MESSAGE_BYTES, logger=stream_logger())
        try:
            self._handshake(key, limits[1], answered)
            self.send(envelope.join(envelope.encode(hello)))
            if wait is not None:
                wait.greeted = True
            self.welcome = self._await_welcome(hello.version, wait)
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    # Opening

    def _handshake(self, key: str | None, patience: float, answered: Callable[[], None]) -> None:
        request = self._protocol.connect()
        if key:
            request.headers["Authorization"] = f"Bearer {key}"
        self._protocol.send_request(request)
        self._write_blocking()
        deadline = time.monotonic() + patience
        while self._protocol.state is State.CONNECTING:
            self._receive(deadline - time.monotonic())
            failure = self._protocol.handshake_exc
            if isinstance(failure, InvalidStatus):
                answered()
                raise _refused(failure)
            if failure is not None and isinstance(failure, InvalidHandshake):
                raise Unavailable(f"the server's answer is not a WebSocket handshake: {failure}")
            if time.monotonic() > deadline:
                raise Disconnected("the server did not answer the handshake")
        answered()

    def _await_welcome(self, version: int, wait: Wait | None) -> Welcome:
        # The session first finishes what it is running, which may take minutes. Pings show that the server is alive.
        self._await(PINGS_MISSED, wait=wait)
        message, _ = self._messages.popleft()
        if isinstance(message, Refusal):
            refusal = error_of(message.problem)
            if isinstance(refusal, Unavailable):  # it is starting, stopping or recovering
                raise Disconnected(f"the server is not ready ({refusal.message})")
            raise refusal
        if isinstance(message, Redirect):
            self.redirect = message
            return Welcome(version=version, client=0, expected=0)
        if not isinstance(message, Welcome) or message.version != version:
            raise VersionMismatch(f"this client uses protocol version {version}; the server uses another")
        return message

    # Sending and receiving

    def send(self, data: bytes, wait: Wait | None = None) -> None:
        """Send one message; ``wait`` is told while the server does not read.

        Raises:
            Disconnected: when the connection broke.
        """
        if self._broken or self._protocol.state is not State.OPEN:
            raise Disconnected("the connection is closed")
        self._protocol.send_binary(data)
        self._write_blocking(wait)

    def receive(
        self, timeout: float | None, most_missed: int = PINGS_MISSED, awake: bool = False, wait: Wait | None = None
    ) -> list[Arrived]:
        """Return the messages that have arrived, after waiting at most ``timeout`` seconds for the first.

        With None it waits indefinitely and sends pings; after ``most_missed`` unanswered pings it gives up.
        ``awake``: busy-wait first, if answers usually arrive soon. ``wait`` is told while it lasts.

        Raises:
            Disconnected: when the connection broke and nothing is left to read.
            MalformedFrame: when the server sent something that is not a message.
        """
        if not self._messages:
            if timeout is None:
                self._await(most_missed, awake, wait)
            else:
                self._receive(timeout)
        arrived = list(self._messages)
        self._messages.clear()
        return arrived

    def _await(self, most_missed: int, awake: bool = False, wait: Wait | None = None) -> None:
        """Wait for a message. It counts pings, not time: a machine that was suspended has missed only one."""
        missed, quiet = 0, 0.0
        if awake and self._awake.begin(time.perf_counter()):
            self._look_often()
        while not self._messages:
            pause = self.heartbeat
            if wait is not None:
                pause = wait.pause(None if pause is None else pause - quiet)
            if self._receive(pause):
                missed, quiet = 0, 0.0
                if wait is not None:
                    wait.look()
                continue
            if wait is not None:
                wait.look()
                quiet += pause or 0.0
                if self.heartbeat is None or quiet < self.heartbeat:
                    continue
                quiet = 0.0
            if missed >= most_missed:
                raise Disconnected(f"the server has been silent for {(self.heartbeat or 0) * (missed + 1):g} s")
            elif self._protocol.state is State.OPEN:
                missed += 1
                self._protocol.send_ping(b"")
                self._write_blocking()
        if awake:
            self._awake.end(time.perf_counter())

    def _look_often(self) -> None:
        """Busy-wait for a message."""
        while not self._messages and self._awake.going_on(time.perf_counter()):
            if self._read():
                self._awake.busy(time.perf_counter())

    def close(self) -> None:
        """Close the stream; the session continues."""
        try:
            if not self._broken and self._protocol.state is State.OPEN:
                self._protocol.send_close(1000)
                self._write_blocking()
        except (OSError, Disconnected):
            pass
        self._socket.close()

    def break_off(self) -> None:
        """Break the connection, even in the middle of a use. The descriptor stays open, so that it is not reused."""
        self._broken = True
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def drop(self) -> None:
        """Close the socket without a closing handshake."""
        self._socket.close()

    def _write_blocking(self, wait: Wait | None = None) -> None:
        whole = False
        try:
            for chunk in self._protocol.data_to_send():
                view = memoryview(chunk)
                self.sent_bytes += len(view)
                while view:
                    view = view[self._write(view, wait) :]
            whole = True
        finally:
            self._broken |= not whole

    def _write(self, view: memoryview, wait: Wait | None = None) -> int:
        """Send part of the data. While the server does not read, receive from it."""
        stalled, quiet = 0, 0.0
        while True:
            try:
                return self._socket.send(view)
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                pass
            except OSError as error:
                raise Disconnected(f"sending failed: {error}") from None
            pause = self.heartbeat
            if wait is not None:
                pause = wait.pause(None if pause is None else pause - quiet)
            readable, writable = wait_either(self._socket, pause)
            if wait is not None:
                wait.look()
            if readable:
                self._receive(0)
                stalled, quiet = 0, 0.0
            elif not writable:
                quiet += pause or 0.0
                if wait is not None and (self.heartbeat is None or quiet < self.heartbeat):
                    continue
                quiet = 0.0
                stalled += 1
                if stalled > STALLS:
                    raise Disconnected(f"the server has read nothing for {(self.heartbeat or 0) * stalled:g} s")

    def _receive(self, timeout: float | None) -> bool:
        """Read some bytes if any arrive in time; return whether some did."""
        self._check_open()  # a close frame may have arrived together with messages, which have been read by now
        return self._readable(timeout) and self._read()

    def _check_open(self) -> None:
        if self._protocol.state in (State.CLOSING, State.CLOSED) and not self._messages:
            raise Disconnected(f"the server closed the connection ({self._protocol.close_code})")

    def _read(self) -> bool:
        """Read some bytes if any are available."""
        whole = False
        try:
            came = self._take_in()
            whole = True
        finally:
            self._broken |= not whole
        return came

    def _readable(self, timeout: float | None) -> bool:
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        try:
            return wait_readable(self._socket, timeout)
        except (OSError, ValueError) as error:  # ValueError: the socket was closed
            raise Disconnected(f"receiving failed: {error}") from None

    def _take_in(self) -> bool:
        try:
            data = self._socket.recv(self._asks)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError as error:
            raise Disconnected(f"receiving failed: {error}") from None
        if not data:
            self._protocol.receive_eof()
            if not self._messages:
                raise Disconnected("the server closed the connection")
            return True
        self._asks = MUCH_BYTES if len(data) == self._asks else RECEIVE_BYTES
        self.received_bytes += len(data)
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, WebSocketFrame):
                self._take(event)
        if self._protocol.state is State.OPEN:
            self._write_blocking()  # pongs
        else:
            self._check_open()
        return True

    def _take(self, frame: WebSocketFrame) -> None:
        if frame.opcode is Opcode.TEXT:
            raise MalformedFrame("the server sent a text message; only binary messages are expected")
        if frame.opcode not in (Opcode.BINARY, Opcode.CONT):
            return
        if frame.fin and not self._parts:
            self._messages.append(envelope.decode(frame.data))
            return
        self._parts.append(bytes(frame.data))
        if frame.fin:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._messages.append(envelope.decode(whole))


def _prepare(raw: socket.socket) -> None:
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # not on every platform
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _refused(failure: InvalidStatus) -> GradwireError | Disconnected:
    """The error for a handshake that was answered with a status other than 101."""
    response = failure.response
    status = response.status_code
    code, detail, extra = _problem(bytes(response.body or b""))
    pause = retry_after(response.headers.get("Retry-After"))
    said = f"HTTP {status}" + (f": {detail}" if detail else "")
    if status in (429, 502, 503, 504):
        return Disconnected(f"the server is not ready ({said})", pause)
    if status == 401 or (status == 403 and not code):
        return Unauthorized(
            f"the server refused the API key ({said}): set GRADWIRE_API_KEY or pass api_key=", status=status
        )
    if code in ("not_found", "session_gone"):
        return from_code("session_gone", detail, **extra)
    if code in BY_CODE:
        found = from_code(code, detail, **extra)
        return Disconnected(f"the server is not ready ({said})", pause) if found.retryable else found
    if status >= 500:
        return Disconnected(f"the server failed ({said})", pause)
    return Unavailable(f"the answer is not from a gradwire server ({said})")


def _problem(body: bytes) -> tuple[str, str, dict[str, Any]]:
    """The code, detail and extra members of a problem document; empty if the body is not one."""
    try:
        found = json.loads(body)
        extra = found.get("extra", {})
        extra = {name: part for name, part in extra.items() if name not in ("code", "message")}
        return str(found["code"]), str(found.get("detail") or found.get("title") or ""), extra
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", "", {}


def retry_after(text: str | None) -> float:
    """The seconds of a ``Retry-After`` header, which holds a number or a date."""
    try:
        seconds = float(text or 0)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(str(text)).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return max(seconds, 0.0) if seconds == seconds else 0.0
