"""Limits of connections: their number, and the time and size of a request's head.

Anybody can open connections up to the limit, so they must be reclaimable. A connection is *authenticated* once a
request on it was. At the limit, the server closes the longest idle unauthenticated connection. If there is none, it
accepts a few more for probes and for requests with a key (:data:`RESERVED`).

uvicorn has no timeout and no size limit for a request's head, so its protocol classes are extended here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode
from websockets.protocol import State

from gradwire_protocol.errors import GradwireError, LimitExceeded, TimeExceeded, Unavailable

from ..errors.problems import PROBLEM_JSON, RETRY_AFTER_S, document
from ..settings.settings import Settings, variable

MAX_HEAD_BYTES: Final = 64 << 10
"""The limit for the request line and all headers. Keys, traces and cookies together take a few KB."""

MAX_FRAGMENTS: Final = 4096
"""The limit for one message of a stream. The Python client sends single fragments."""

RESERVED: Final = 16
"""Connections beyond ``max_connections``. The first half is for probes and requests with a key, the second half for
probes only."""

RESERVED_HEAD_S: Final = 2.0
"""The timeout for a request's head on such a connection."""

PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
_CREDENTIALS: Final = frozenset({b"authorization", b"x-api-key"})

MAX_FIRST_BYTES: Final = 128 << 10
"""The limit for a stream's first message, the hello."""

LINGER_S: Final = 2.0
"""How long the server drains a refused stream, unless the client closes it before."""

_REASONS: Final = {413: "Content Too Large", 503: "Service Unavailable"}

log = structlog.get_logger("gradwire.reception")


class LimitedConnection(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits on connections and on a request's head."""

    settings: Settings
    unauthenticated: dict[LimitedConnection, None]
    """Unauthenticated connections, longest idle first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reserved = False
        if self._excess > 0 and not self._close_idle():
            if self._excess > RESERVED:
                self._reject(self._limit_error())
                return
            self._reserved = True
        self.unauthenticated[self] = None
        self._start_head_timer()

    @property
    def _excess(self) -> int:
        """How many connections exceed ``max_connections``."""
        return len(self.connections) - self.settings.max_connections

    def _limit_error(self) -> Unavailable:
        most = self.settings.max_connections
        return Unavailable(
            f"the server has {most} connections, the maximum ({variable('max_connections')})",
            setting=variable("max_connections"), limit=most,
        )  # fmt: skip

    def _close_idle(self) -> bool:
        """Close the longest idle unauthenticated connection. Returns whether there was one."""
        for each in self.unauthenticated:
            if each.cycle is None or each.cycle.response_complete:
                each._reject(self._limit_error())
                return True
        return False

    def on_headers_complete(self) -> None:
        """Start a request, unless it must not use a reserved connection."""
        if self._reserved and not self._may_begin():
            self._reject(self._limit_error())
            return
        super().on_headers_complete()

    def _may_begin(self) -> bool:
        """Whether this request may use a reserved connection."""
        path, _, query = self.url.partition(b"?")
        if path.decode("latin-1").removeprefix(self.settings.root_path) in PROBES:
            return True
        presents = b"ticket=" in query or any(name in _CREDENTIALS for name, _ in self.headers)
        return presents and self._excess <= RESERVED // 2

    def on_body(self, body: bytes) -> None:
        """Ignore the body of a rejected request."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Ignore the end of a rejected request."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Start a stream."""
        self.unauthenticated.pop(self, None)  # the route authenticates every stream
        if not self.transport.is_closing():
            super().handle_websocket_upgrade()

    def on_response_complete(self) -> None:
        """Record whether the request was authenticated, and that the connection is idle."""
        self.unauthenticated.pop(self, None)
        if "caller" not in self.cycle.scope["state"] and not self.transport.is_closing():
            self.unauthenticated[self] = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self.unauthenticated.pop(self, None)
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._between_requests():
            self._start_head_timer()
            # Count packets, not heads: a pipelined head may share its packet with the end of the previous body.
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self or not self._between_requests():
            self._stop_head_timer()
        elif self._head_bytes > MAX_HEAD_BYTES:
            self._reject(LimitExceeded(f"the request's headers exceed {MAX_HEAD_BYTES:,} bytes", limit=MAX_HEAD_BYTES))

    def _between_requests(self) -> bool:
        """Whether the next bytes are the head of a request."""
        return self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body)

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            patience = self.settings.head_patience_s
            self._head_timer = self.loop.call_later(
                min(patience, RESERVED_HEAD_S) if self._reserved else patience, self._on_head_timeout
            )

    def _stop_head_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if self.transport.is_closing() or not self._between_requests():
            return
        seconds = self.settings.head_patience_s
        self._reject(
            TimeExceeded(
                f"the request's headers did not arrive within {seconds:g} seconds ({variable('head_patience_s')})",
                setting=variable("head_patience_s"),
                limit=seconds,
            )
        )

    def _reject(self, error: GradwireError) -> None:
        """Respond with an error outside of a request, and close."""
        self._stop_head_timer()
        self.unauthenticated.pop(self, None)
        self.connections.discard(self)
        log.info("connection rejected", code=error.code, client=self.client[0] if self.client else "")
        body = json.dumps(document(error, {"path": ""})).encode()
        retry = f"retry-after: {RETRY_AFTER_S}\r\n" if error.retryable else ""
        self.transport.write(
            f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\ncontent-type: {PROBLEM_JSON}\r\n"
            f"content-length: {len(body)}\r\n{retry}connection: close\r\n\r\n".encode()
            + body
        )
        self.transport.close()


DIRECT: Final = "gradwire.direct"
"""The key of the :class:`LimitedStream` in the extensions of a stream's ASGI scope."""


class LimitedStream(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol with limits on incomplete messages, and with direct reception.

    A route can receive messages in a callback (:meth:`receive_directly`) and send without waiting (:meth:`send_now`).
    ASGI costs two task switches per message, and two system calls to pause and resume the connection.
    """

    _deliver: Callable[[bytes | str], None] | None = None
    _on_partial: Callable[[int], None] = staticmethod(lambda size: None)
    _has_message = False
    _partial_bytes = 0
    _refused = False

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[DIRECT] = self

    def data_received(self, data: bytes) -> None:
        """Process bytes, report the size of the incomplete message, and limit the first message."""
        if self._refused:
            return
        super().data_received(data)
        if self._refused:
            return
        part = len(self.conn.reader.buffer) + sum(map(len, self.frames))
        if self._deliver is None and not self._has_message:
            if part > MAX_FIRST_BYTES:
                self._refuse(f"the first message exceeds {MAX_FIRST_BYTES:,} bytes")
        elif part or self._partial_bytes:  # most messages arrive whole
            self._partial_bytes = part
            self._on_partial(part)

    def _refuse(self, reason: str) -> None:
        """Close because a message is too big. Further calls do nothing."""
        if not self._refused and not self.transport.is_closing():
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, reason)
            self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Send the reason of a refusal, and drain the connection until the client closes it.

        Closing a connection with unread bytes resets it, which may lose the last sent bytes (RFC 1122, 4.2.2.13).
        """
        if self.conn.close_sent is None:  # the client sent data before the handshake's response
            self.transport.close()
            return
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.stop_keepalive()
        self.transport.write(b"".join(self.conn.data_to_send()))
        self._refused = self.close_sent = True
        self.close_timer = self.loop.call_later(LINGER_S, self.transport.close)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.resume()

    def receive_directly(self, deliver: Callable[[bytes | str], None], on_partial: Callable[[int], None]) -> bool:
        """Call ``deliver`` with each message from now on, and ``on_partial`` with the size of the incomplete message.
        Returns False, without a change, while ASGI's queue holds messages.

        ASGI still reports the disconnect.
        """
        if self._deliver is None:
            if not self.queue.empty():
                return False
            self._deliver, self._on_partial = deliver, on_partial
            self.resume()
        return True

    def report_partial(self, on_partial: Callable[[int], None]) -> None:
        """Call ``on_partial`` with the size of the incomplete message, while messages are received through ASGI."""
        self._on_partial = on_partial

    def pause_reading(self) -> None:
        """Stop reading from the connection. Messages that were already read are still delivered."""
        if not self.read_paused and not self.close_sent and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read from the connection again."""
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def send_now(self, data: bytes) -> bool:
        """Send a binary message. Returns False, without sending, if the client does not read or has disconnected."""
        if not self.writable.is_set() or self.conn.state is not State.OPEN or self.transport.is_closing():
            return False
        self.conn.send_binary(data)
        self.transport.write(b"".join(self.conn.data_to_send()))
        return True

    def send_receive_event_to_app(self) -> None:
        """Deliver a complete message directly or through ASGI."""
        self._has_message = True
        if self._deliver is None or self.close_sent:
            super().send_receive_event_to_app()
            return
        data: bytes | str = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        if self.curr_msg_data_type == "text":
            try:
                data = data.decode()  # type: ignore[union-attr]
            except UnicodeDecodeError:
                super().send_receive_event_to_app()  # closes the connection
                return
        self.frames = []
        self._deliver(data)

    def handle_ping(self) -> None:
        """Answer a ping, unless earlier answers are unread: RFC 6455, 5.5.3, allows to skip some. No answer follows a
        close frame."""
        if self.writable.is_set() and not self._refused:
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_cont(self, event: Any) -> None:
        """Limit the number of fragments. Their total size is limited elsewhere, but each one costs 50 bytes more."""
        if len(self.frames) >= MAX_FRAGMENTS:
            self._refuse(f"the message has more than {MAX_FRAGMENTS} fragments")
            return
        super().handle_cont(event)


def protocols(settings: Settings) -> dict[str, Any]:
    """The protocol classes ``http`` and ``ws`` for uvicorn's configuration."""
    return {
        "http": type("ConfiguredConnection", (LimitedConnection,), {"settings": settings, "unauthenticated": {}}),
        "ws": LimitedStream,
    }
