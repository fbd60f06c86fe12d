"""A stream: frames over a WebSocket, in order and pipelined, with large payloads in chunks beside them.

The life of a stream. The client says ``hello``, the server ``welcome``, with the number of the next frame it will
apply. Then both sides talk at once: frames and chunks one way, replies and chunks the other. A stream ends with the
client, with the session or with the server; frames that were applied stay applied, and their replies are kept for
the client's next stream.

Memory is bounded by ``max_stream_backlog_bytes``: beyond it, in frames that wait or in replies that wait to be read,
the server stops reading. At most ``FRAMES_AHEAD`` frames are given to the host at a time, so that a client that does
not read replies cannot have more than those computed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect
from structlog.contextvars import bind_contextvars

from gradwire_protocol import envelope
from gradwire_protocol.errors import (
    GradwireError,
    InternalError,
    LimitExceeded,
    MalformedFrame,
    OutOfMemory,
    SessionGone,
    Superseded,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    VersionMismatch,
)
from gradwire_protocol.frames import (
    PROTOCOL_VERSION,
    Chunk,
    Frame,
    Hello,
    Message,
    Problem,
    Refusal,
    Reply,
    Value,
    Welcome,
)

from .access.rates import Meter
from .hosts import Buffers
from .http import problems
from .http.reception import DIRECT, StreamReception
from .metrics import Metrics
from .refusals import to_problem
from .sessions import Session
from .settings import Settings, variable
from .tracing import Tracing
from .version import VERSION

CHUNK_BYTES: Final = 2 << 20
"""Piece of a download. Larger pieces are no faster."""

INLINE_BYTES: Final = 256 << 10
"""Values up to this size travel inside the reply."""

FRAMES_AHEAD: Final = 32
HELLO_PATIENCE_S: Final = 20.0
MESSAGE_OVERHEAD: Final = 512
"""What a waiting message costs beside its bytes, so that a flood of tiny ones is bounded, too."""

# Close codes of a stream: 4000 to 4999 are an application's own, here 4000 plus the HTTP status of the cause.
MALFORMED: Final = 4400
KEY_ENDED: Final = 4401
GONE: Final = 4404
SUPERSEDED: Final = 4409
VERSION_MISMATCH: Final = 4426
TOO_MANY: Final = 4429
GOING_DOWN: Final = 1012
INTERNAL: Final = 1011

CAPABILITIES: Final = ("chunks", "json", "structures", "resume")

_json_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_json_encoder = msgspec.json.Encoder()

log = structlog.get_logger("gradwire.stream")


@dataclass(slots=True)
class Waiting:
    """A message that waits to be given to the host. ``human``: it came as JSON."""

    message: Frame | Chunk
    buffers: Buffers
    human: bool
    size: int


@dataclass(slots=True)
class End:
    """Why and how the server ends a stream. ``at_once``: what still runs is not answered on it."""

    code: int
    reason: str
    problem: GradwireError | None = None
    at_once: bool = False


_RESUMED: Final = End(SUPERSEDED, "the client resumed on another stream")


def weight(reply: Reply, buffers: Buffers) -> int:
    """About how many bytes a reply holds until it is sent. Numbers in JSON form are Python objects."""
    numbers = sum(math.prod(value.shape) for value in reply.values if value.values is not None)
    return sum(b.nbytes for b in buffers) + 32 * numbers + MESSAGE_OVERHEAD


class Stream:
    """One WebSocket of one client of a session, after it was accepted."""

    def __init__(
        self,
        socket: WebSocket,
        session: Session,
        settings: Settings,
        metrics: Metrics,
        devices: list[str],
        meter: Meter,
    ) -> None:
        self.socket = socket
        self.meter = meter
        self.closed_with = 0
        self.devices = devices
        self.session = session
        self.settings = settings
        self.metrics = metrics
        self.client = 0
        self.instance = ""
        self.epoch = 0
        self.tracing: Tracing | None = None
        self._parent: Any = None
        self.request_id = problems.request_id(socket.scope)
        self.human = False
        self._waiting: deque[Waiting] = deque()
        self._ahead = 0
        self._ready: deque[tuple[Reply, Buffers, bool]] = deque()
        self._transfers = 0
        self._held_in = 0
        self._held_out = 0
        self._end: End | None = None
        self._over = False
        self._direct: StreamReception | None = socket.scope.get("extensions", {}).get(DIRECT)
        """The connection itself, where this server's own protocol carries it."""
        self._unread: deque[bytes | str] = deque()
        """What came after the server had stopped to read: the rest of what it had read at once."""
        self._later: asyncio.TimerHandle | None = None
        self._feeding = False
        self._sending = False
        self._defect: Exception | None = None
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    async def run(self) -> None:
        """Serve the stream until it ends."""
        try:
            joined = await self._greet()
        except WebSocketDisconnect:
            return
        if not joined:
            return
        session = self.session
        rival = session.streams.get(self.client)
        if rival is not None:  # which said hello while this one did
            if rival.epoch > self.epoch:
                await self._refuse(_RESUMED)
                return
            rival.finish(_RESUMED)
        session.streams[self.client] = self
        self.metrics.streams.inc()
        reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._write())
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._over = True
            if self._later is not None:
                self._later.cancel()
            for task in (reader, writer):
                task.cancel()
            outcomes = await asyncio.gather(reader, writer, return_exceptions=True)
            self._waiting.clear()
            self._unread.clear()
            self._ready.clear()
            self.metrics.streams.dec()
            if session.streams.get(self.client) is self:
                del session.streams[self.client]
            session.touch()
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect):
                raise outcome

    # Ending

    def finish(self, end: End) -> None:
        """Close once the frames that run are answered. What waits is dropped: the client sends it again."""
        if self._end is None:
            self._end = end
            self._waiting.clear()
            self._unread.clear()
            if self._direct is not None:
                self._direct.hold()
        self._wake.set()

    def end_with_session(self, text: str) -> None:
        """The session was deleted or expired."""
        self.finish(End(GONE, "session gone", SessionGone(text)))

    def end_with_key(self, text: str) -> None:
        """The key that opened the stream was revoked or has expired."""
        self.finish(End(KEY_ENDED, "key ended", Unauthorized(text), at_once=True))

    def end_with_trouble(self, error: GradwireError) -> None:
        """The session cannot be used for now. Where that may pass by itself, the client resumes."""
        code = GOING_DOWN if error.retryable else GONE if isinstance(error, SessionGone) else INTERNAL
        self.finish(End(code, error.code, error))

    def end_with_server(self) -> None:
        """The server is stopping."""
        self.finish(End(GOING_DOWN, "service restart"))

    async def abandon(self, error: InternalError) -> None:
        """Tell the client of a defect, if it is still there, and close."""
        try:
            await self._refuse(End(INTERNAL, "internal error", error))
        except (WebSocketDisconnect, RuntimeError):
            log.debug("nobody to tell", session=self.session.id)

    # Handshake

    async def _greet(self) -> bool:
        """Take the hello and send the welcome; or refuse, close, and return False."""
        try:
            message, _ = await asyncio.wait_for(self._receive(), HELLO_PATIENCE_S)
            if not isinstance(message, Hello):
                raise MalformedFrame("the first message of a stream must be a hello")
            if message.version != PROTOCOL_VERSION:
                raise VersionMismatch(
                    f"the client speaks version {message.version} of the protocol, this server (gradwire {VERSION}) "
                    f"speaks version {PROTOCOL_VERSION}: install matching versions of gradwire",
                    client=message.version, server=PROTOCOL_VERSION,
                )  # fmt: skip
            if len(self.session.streams) >= self.settings.max_streams and message.client not in self.session.streams:
                raise TooManyRequests(
                    f"the session has {self.settings.max_streams} streams ({variable('max_streams')})",
                    setting=variable("max_streams"), limit=self.settings.max_streams,
                )  # fmt: skip
            previous = self.session.streams.get(message.client)
            if previous is not None and (not message.epoch or message.instance == previous.instance):
                previous.finish(_RESUMED)  # else it is the newcomer who has lost the client's place
            # After what the previous stream still has with the host: only then the number of the next frame is sure.
            self.instance = message.instance
            self.client, expected, self.epoch = await self.session.host.join(
                message.client, message.instance, message.epoch
            )
        except TimeoutError:
            await self._refuse(End(MALFORMED, "no hello", MalformedFrame("the hello did not come in time")))
            return False
        except VersionMismatch as error:
            await self._refuse(End(VERSION_MISMATCH, "version mismatch", error))
            return False
        except TooManyRequests as error:
            await self._refuse(End(TOO_MANY, "too many streams", error))
            return False
        except Superseded as error:
            await self._refuse(End(SUPERSEDED, error.code, error))
            return False
        except Unavailable as error:
            await self._refuse(End(GOING_DOWN, error.code, error))
            return False
        except GradwireError as error:
            await self._refuse(End(GONE if isinstance(error, SessionGone) else MALFORMED, error.code, error))
            return False
        if self.tracing is not None:
            self._parent = self.tracing.parent(message.trace)
        bind_contextvars(client=self.client)  # before the tasks that read and write are made
        log.info("stream opened", session=self.session.id, client=self.client, agent=message.agent[:100])
        await self._send(self._welcome(expected), [], self.human)
        return True

    def _welcome(self, expected: int) -> Welcome:
        names = ("max_message_bytes", "max_stream_backlog_bytes")
        limits = {name: int(getattr(self.settings, name)) for name in names} | {"chunk_bytes": CHUNK_BYTES}
        limits |= self.session.summary()["limits"]
        return Welcome(
            version=PROTOCOL_VERSION, client=self.client, expected=expected, session=self.session.id,
            capabilities=list(CAPABILITIES), limits=limits, devices=self.devices, epoch=self.epoch,
            durability=self.session.spec.durability, clock=time.perf_counter_ns(),
        )  # fmt: skip

    # Reading

    async def _receive(self) -> tuple[Message, Waiting | None]:
        """The next message; where it is one for the host, also with all that belongs to it.

        Raises:
            WebSocketDisconnect: when the client is gone.
            MalformedFrame: when it is not a message.
        """
        return self._decoded(await self._arrival())

    async def _arrival(self) -> bytes | str:
        """What ASGI brings next.

        Raises:
            WebSocketDisconnect: when the client is gone.
        """
        event = await self.socket.receive()
        if event["type"] == "websocket.disconnect":
            self.closed_with = event.get("code", 1006)
            raise WebSocketDisconnect(self.closed_with)
        data: bytes | str = event.get("bytes") or event.get("text") or b""
        return data

    def _decoded(self, data: bytes | str) -> tuple[Message, Waiting | None]:
        buffers: Buffers = []
        size = len(data)
        self.human = isinstance(data, str)
        if not isinstance(data, str):
            message, buffers = envelope.decode(data)
        else:
            try:
                message = _json_decoder.decode(data)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise MalformedFrame(f"the text is not a message: {error}") from None
        self.metrics.stream_in.inc(size)
        if isinstance(message, Frame | Chunk):
            return message, Waiting(message, buffers, self.human, size + MESSAGE_OVERHEAD)
        return message, None

    async def _read(self) -> None:
        """Take in messages, by ASGI until they come directly, and the end of the connection."""
        context = copy_context()  # of the log

        def deliver(data: bytes | str) -> None:
            context.run(self._arrived, data)

        while True:
            if self._direct is not None:
                self._direct.take_over(deliver)
            self._arrived(await self._arrival())
            while self._unread:  # without a protocol of ours, not asking for more is what stops the client
                self._room.clear()
                await self._room.wait()

    def _arrived(self, data: bytes | str) -> None:
        """A message is there. Called by the connection, so a defect ends the stream by way of its task."""
        if self._over:
            return
        self._unread.append(data)
        try:
            self._take_in()
        except Exception as error:
            log.error("taking a message failed", session=self.session.id, exc_info=error)
            self._defect = error
            self._wake.set()

    def _take_in(self) -> None:
        """Take what has come, as far as there is room for it and the key has paid for what it took."""
        if self._later is not None:
            return
        while self._unread and self._end is None:
            if self._full:
                break
            if self.meter.paced and (left := self.meter.wait) > 0:
                self._later = asyncio.get_running_loop().call_later(left, self._paid, time.monotonic())
                break
            self._take(self._unread.popleft())
        if self._end is not None:
            self._unread.clear()
        if not self._unread:
            self._room.set()
        if self._direct is not None and self._end is None:
            if self._unread or self._full:
                self._direct.hold()
            else:
                self._direct.go_on()

    @property
    def _full(self) -> bool:
        return self._held_in + self._held_out > self.settings.max_stream_backlog_bytes

    def _paid(self, since: float) -> None:
        """The key may have paid by now: until then its client found the network slower."""
        self.meter.held += time.monotonic() - since
        self._later = None
        self._take_in()

    def _take(self, data: bytes | str) -> None:
        """Put a message among those that wait for the host."""
        try:
            message, waiting = self._decoded(data)
            if waiting is None:
                raise MalformedFrame(f"a {type(message).__name__.lower()} has no place here")
            if isinstance(waiting.message, Frame):
                waiting.message.client = self.client
                waiting.message.spelled_out()
            elif len(waiting.buffers) != 1:
                raise MalformedFrame(f"a chunk has one buffer, this one {len(waiting.buffers)}")
        except MalformedFrame as error:
            self.finish(End(MALFORMED, "malformed message", error))
            return
        frame = waiting.message if isinstance(waiting.message, Frame) else None
        self.meter.took(waiting.size - MESSAGE_OVERHEAD, frame, waiting.human)
        self._waiting.append(waiting)
        self._held_in += waiting.size
        self._feed()

    def _feed(self) -> None:
        """Give the host what it may have. It may answer at once."""
        if self._feeding:
            return
        self._feeding = True
        try:
            self._feed_on()
        finally:
            self._feeding = False

    def _feed_on(self) -> None:
        host, limit = self.session.host, self.settings.max_stream_backlog_bytes
        while self._waiting and self._ahead < FRAMES_AHEAD and self._held_out <= limit:
            waiting = self._waiting.popleft()
            self._ahead += 1
            try:
                if isinstance(waiting.message, Chunk):
                    host.add_chunk(self.client, waiting.message, waiting.buffers[0], self._took(waiting.size))
                else:
                    host.submit(waiting.message, waiting.buffers, waiting.human, self._answer(waiting))
            except (Unavailable, SessionGone) as error:
                self._ahead -= 1
                code = GONE if isinstance(error, SessionGone) else GOING_DOWN
                self.finish(End(code, error.code, error if code == GONE else None))

    def _took(self, size: int) -> Any:
        """What to do when a chunk was taken."""

        def answer(failure: BaseException | None) -> None:
            self._ahead -= 1
            self._held_in -= size
            if isinstance(failure, MalformedFrame | SessionGone):
                code = GONE if isinstance(failure, SessionGone) else MALFORMED
                self.finish(End(code, failure.code, failure))
            elif isinstance(failure, Unavailable):
                self.end_with_trouble(failure)  # the client resumes and sends the upload again
            elif failure is not None and not isinstance(failure, LimitExceeded | OutOfMemory):
                # An upload over a limit fails the frame that needs it; anything else here is a defect.
                log.error("chunk failed", session=self.session.id, exc_info=failure)
                self.finish(End(INTERNAL, "internal", InternalError("taking a chunk failed; the log has details")))
            self._step()

        return answer

    def _answer(self, waiting: Waiting) -> Any:
        """What to do with the reply to a frame."""

        received = time.perf_counter_ns()
        if self.tracing is not None and isinstance(waiting.message, Frame):
            waiting.message.timed = True

        def answer(reply: Reply, buffers: Buffers) -> None:
            self._ahead -= 1
            self._held_in -= waiting.size
            if not self._over:
                if reply.errors or reply.refused is not None:
                    self.metrics.told(reply, "stream")
                    reply = self._marked(reply)
                if not self._sent_now(reply, buffers, waiting.human):
                    self._held_out += weight(reply, buffers)
                    self._ready.append((reply, buffers, waiting.human))
            if self.tracing is not None and isinstance(waiting.message, Frame):
                sent = sum(b.nbytes for b in buffers)
                self.tracing.frame(
                    self._parent, self.session.id, waiting.message, waiting.human, received, waiting.size, sent, reply
                )
            self._step()

        return answer

    def _marked(self, reply: Reply) -> Reply:
        """The reply with this stream's id in its errors, to find in the server's log. The host keeps its own."""

        def mark(problem: Problem) -> Problem:
            return msgspec.structs.replace(problem, extra={"request_id": self.request_id} | problem.extra)

        refused = None if reply.refused is None else mark(reply.refused)
        return msgspec.structs.replace(reply, errors=[mark(problem) for problem in reply.errors], refused=refused)

    def _step(self) -> None:
        if self._over:
            return
        self._feed()
        if self._unread or (self._direct is not None and self._direct.read_paused):
            self._take_in()
        if self._ready or self._end is not None:
            self._wake.set()

    def _sent_now(self, reply: Reply, buffers: Buffers, human: bool) -> bool:
        """Send a reply at once, if none waits before it, it is small, and the client reads."""
        direct = self._direct
        if direct is None or human or self._sending or self._ready or self._end is not None:
            return False
        if buffers:
            if sum(b.nbytes for b in buffers) > INLINE_BYTES:
                return False
            reply = msgspec.structs.replace(reply)  # the host keeps its own
        data = envelope.join(envelope.encode(reply, buffers))
        if not direct.send_now(data):
            return False
        self._count_out(len(data))
        return True

    # Writing

    async def _write(self) -> None:
        while True:
            if self._defect is not None:
                raise self._defect
            if self._end is not None and self._end.at_once:
                await self._refuse(self._end)
                return
            if self._ready:
                self._sending = True
                await self._send_reply(*self._ready.popleft())
                self._sending = False
            elif self._end is not None and not self._ahead:
                await self._refuse(self._end)
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _send_reply(self, reply: Reply, buffers: Buffers, human: bool) -> None:
        inline, values = buffers, reply.values
        if sum(b.nbytes for b in buffers) > INLINE_BYTES:
            values, inline = await self._send_large(reply.values, buffers)
        # The host keeps this reply, to send it again if need be: what is sent is a copy.
        await self._send(msgspec.structs.replace(reply, values=values), inline, human)
        self._held_out -= weight(reply, buffers)
        self._step()

    async def _send_large(self, values: list[Value], buffers: Buffers) -> tuple[list[Value], Buffers]:
        """Send large values in chunks, before the reply that they belong to; what is left goes inside it."""
        inline: Buffers = []
        sent: list[Value] = []
        for value in values:
            if value.buffer is None:
                sent.append(value)
            elif buffers[value.buffer].nbytes <= INLINE_BYTES:
                sent.append(msgspec.structs.replace(value, buffer=len(inline)))
                inline.append(buffers[value.buffer])
            else:
                self._transfers += 1
                await self._send_chunks(self._transfers, buffers[value.buffer])
                sent.append(msgspec.structs.replace(value, buffer=None, download=self._transfers))
        return sent, inline

    async def _send_chunks(self, transfer: int, data: memoryview) -> None:
        for offset in range(0, data.nbytes, CHUNK_BYTES):
            piece = data[offset : offset + CHUNK_BYTES]
            await self._send(Chunk(transfer, offset, data.nbytes), [piece], human=False)

    async def _send(self, message: Message, buffers: Buffers, human: bool) -> None:
        """Send one message. Waits while the client does not read.

        Raises:
            WebSocketDisconnect: when the client is gone.
        """
        if human:
            text = _json_encoder.encode(message)
            await self.socket.send_text(text.decode())
            self._count_out(len(text))
            return
        data = envelope.join(envelope.encode(message, buffers))
        await self.socket.send_bytes(data)
        self._count_out(len(data))

    def _count_out(self, size: int) -> None:
        self.metrics.stream_out.inc(size)
        self.meter.gave(size)

    async def _refuse(self, end: End) -> None:
        """Say why, and close."""
        if end.problem is not None:
            self.metrics.error(end.problem.code, "stream")
            await self._send(Refusal(to_problem(end.problem)), [], self.human)
        log.info("stream closed", session=self.session.id, client=self.client, code=end.code, reason=end.reason)
        self.closed_with = end.code
        await self.socket.close(end.code, end.reason)
