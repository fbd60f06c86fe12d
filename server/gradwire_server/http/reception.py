"""Connections before they are requests: how many there may be, and how long and how large a request's head may be.

Strangers can open as many connections as there may be, so having one is no claim to it. A connection is *known* once a
request on it was authenticated; with no place left, the one that has been idle for longest and is not known makes room.
Where none is, a few more are taken for probes and for whoever presents a key (:data:`RESERVED`).

uvicorn waits for the end of a request's head for ever, and keeps whatever comes of it. Its protocols are extended here.
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

from ..settings import Settings, variable
from .problems import PROBLEM_JSON, RETRY_AFTER_S, document

MAX_HEAD_BYTES: Final = 64 << 10
"""Of the request line and all headers. Keys, traces and cookies together take a few KB."""

MAX_FRAGMENTS: Final = 4096
"""Of one message of a stream. The Python client sends one."""

RESERVED: Final = 16
"""Connections beyond ``max_connections``. The first half is for requests that present a key and for probes, the other
for probes alone."""

RESERVED_HEAD_S: Final = 2.0
"""How long one of these may take to say what it wants."""

PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
_CREDENTIALS: Final = frozenset({b"authorization", b"x-api-key"})

MAX_FIRST_BYTES: Final = 128 << 10
"""Of a message before a stream's first one is there, which is a hello."""

LINGER_S: Final = 2.0
"""How long a refused stream is still read from, unless its client closes it before."""

_REASONS: Final = {413: "Content Too Large", 503: "Service Unavailable"}

log = structlog.get_logger("gradwire.reception")


class Reception(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with a bound on connections, and on what a request's head takes."""

    settings: Settings
    strangers: dict[Reception, None]
    """Connections that are not known, those that have been idle for longest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_bytes = 0
        self._late: asyncio.TimerHandle | None = None
        self._reserved = False
        if self._beyond > 0 and not self._make_room():
            if self._beyond > RESERVED:
                self._turn_away(self._full())
                return
            self._reserved = True
        self.strangers[self] = None
        self._expect_head()

    @property
    def _beyond(self) -> int:
        """How many connections there are beyond those that there may be."""
        return len(self.connections) - self.settings.max_connections

    def _full(self) -> Unavailable:
        most = self.settings.max_connections
        return Unavailable(
            f"the server has {most} connections, as many as it may ({variable('max_connections')})",
            setting=variable("max_connections"), limit=most,
        )  # fmt: skip

    def _make_room(self) -> bool:
        """Close the stranger that has been idle for longest. Returns whether there was one."""
        for each in self.strangers:
            if each.cycle is None or each.cycle.response_complete:
                each._turn_away(self._full())
                return True
        return False

    def on_headers_complete(self) -> None:
        """Let a request begin, unless its connection is not for it."""
        if self._reserved and not self._may_begin():
            self._turn_away(self._full())
            return
        super().on_headers_complete()

    def _may_begin(self) -> bool:
        """Whether a request may use the reserve."""
        path, _, query = self.url.partition(b"?")
        if path.decode("latin-1").removeprefix(self.settings.root_path) in PROBES:
            return True
        presents = b"ticket=" in query or any(name in _CREDENTIALS for name, _ in self.headers)
        return presents and self._beyond <= RESERVED // 2

    def on_body(self, body: bytes) -> None:
        """Take a piece of a request that was let begin."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request that was let begin."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Let a stream begin."""
        self.strangers.pop(self, None)  # the routes let nobody open one who is not known
        if not self.transport.is_closing():
            super().handle_websocket_upgrade()

    def on_response_complete(self) -> None:
        """Note who asked, and that the connection is idle."""
        self.strangers.pop(self, None)
        if "caller" not in self.cycle.scope["state"] and not self.transport.is_closing():
            self.strangers[self] = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self.strangers.pop(self, None)
        self._head_is_there()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._between_requests():
            self._expect_head()
            # A pipelined head may share its packet with the end of the body before it: packets are counted, not heads.
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self or not self._between_requests():
            self._head_is_there()
        elif self._head_bytes > MAX_HEAD_BYTES:
            self._turn_away(
                LimitExceeded(f"the head of the request has more than {MAX_HEAD_BYTES:,} bytes", limit=MAX_HEAD_BYTES)
            )

    def _between_requests(self) -> bool:
        """Whether what comes next is the head of a request."""
        return self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body)

    def _expect_head(self) -> None:
        if self._late is None:
            patience = self.settings.head_patience_s
            self._late = self.loop.call_later(
                min(patience, RESERVED_HEAD_S) if self._reserved else patience, self._too_late
            )

    def _head_is_there(self) -> None:
        self._head_bytes = 0
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        if self.transport.is_closing() or not self._between_requests():
            return
        seconds = self.settings.head_patience_s
        self._turn_away(
            TimeExceeded(
                f"the head of the request did not come within {seconds:g} seconds ({variable('head_patience_s')})",
                setting=variable("head_patience_s"),
                limit=seconds,
            )
        )

    def _turn_away(self, error: GradwireError) -> None:
        """Answer what never became a request, and close."""
        self._head_is_there()
        self.strangers.pop(self, None)
        self.connections.discard(self)
        log.info("connection turned away", code=error.code, client=self.client[0] if self.client else "")
        body = json.dumps(document(error, {"path": ""})).encode()
        retry = f"retry-after: {RETRY_AFTER_S}\r\n" if error.retryable else ""
        self.transport.write(
            f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\ncontent-type: {PROBLEM_JSON}\r\n"
            f"content-length: {len(body)}\r\n{retry}connection: close\r\n\r\n".encode()
            + body
        )
        self.transport.close()


DIRECT: Final = "gradwire.direct"
"""Among the extensions of a stream's scope: its :class:`StreamReception`."""


class StreamReception(WebSocketsSansIOProtocol):
    """WebSockets as uvicorn speaks them, with bounds on what a client can leave in memory without a whole message.

    A route may take the messages as they arrive (:meth:`take_over`), and send without waiting (:meth:`send_now`). By
    way of ASGI each message costs two tasks their turn, and its connection two calls of the system.
    """

    _deliver: Callable[[bytes | str], None] | None = None
    _coming: Callable[[int], None] = staticmethod(lambda size: None)
    _any = False
    _refused = False

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[DIRECT] = self

    def data_received(self, data: bytes) -> None:
        """Take bytes, tell how much of a message is there that is not whole yet, and bound the first one."""
        if self._refused:
            return
        super().data_received(data)
        part = len(self.conn.reader.buffer) + sum(map(len, self.frames))
        if self._deliver is not None:
            self._coming(part)
        elif part > MAX_FIRST_BYTES and not self._any and not self.transport.is_closing():
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"a first message of more than {MAX_FIRST_BYTES:,} bytes")
            self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Tell a client why what it sends is refused, and drop the rest of it until the client has heard.

        A connection that is closed with bytes unread is reset, and what was last sent on it may be lost (RFC 1122,
        4.2.2.13).
        """
        assert self.conn.close_sent is not None
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.stop_keepalive()
        self.transport.write(b"".join(self.conn.data_to_send()))
        self._refused = self.close_sent = True
        self.close_timer = self.loop.call_later(LINGER_S, self.transport.close)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.go_on()

    def take_over(self, deliver: Callable[[bytes | str], None], coming: Callable[[int], None]) -> bool:
        """From now on call ``deliver`` with each message, and ``coming`` with how much there is of the next one; False,
        and nothing is changed, while ASGI has some to give.

        The end of the connection is still told by ASGI.
        """
        if self._deliver is None:
            if not self.queue.empty():
                return False
            self._deliver, self._coming = deliver, coming
            self.go_on()
        return True

    def hold(self) -> None:
        """Read no more from the connection; messages of what was read already still come."""
        if not self.read_paused and not self.close_sent and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def send_now(self, data: bytes) -> bool:
        """Send a binary message; False, and nothing is sent, to a client that does not read or is gone."""
        if not self.writable.is_set() or self.conn.state is not State.OPEN or self.transport.is_closing():
            return False
        self.conn.send_binary(data)
        self.transport.write(b"".join(self.conn.data_to_send()))
        return True

    def send_receive_event_to_app(self) -> None:
        """Give a whole message to whom it may concern."""
        self._any = True
        if self._deliver is None or self.close_sent:
            super().send_receive_event_to_app()
            return
        data: bytes | str = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        if self.curr_msg_data_type == "text":
            try:
                data = data.decode()  # type: ignore[union-attr]
            except UnicodeDecodeError:
                super().send_receive_event_to_app()  # which knows how that ends
                return
        self.frames = []
        self._deliver(data)

    def handle_ping(self) -> None:
        """Answer, unless answers before are still unread: then this one may be left out (RFC 6455, 5.5.3)."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_cont(self, event: Any) -> None:
        """Take a fragment of a message. Their sizes are bounded together, but each costs as much as 50 bytes."""
        if len(self.frames) >= MAX_FRAGMENTS:
            if not self.transport.is_closing():
                self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"a message of more than {MAX_FRAGMENTS} fragments")
                self.handle_parser_exception()
            return
        super().handle_cont(event)


def protocols(settings: Settings) -> dict[str, Any]:
    """The protocol classes for uvicorn's configuration, ``http`` and ``ws``."""
    return {"http": type("Reception", (Reception,), {"settings": settings, "strangers": {}}), "ws": StreamReception}
