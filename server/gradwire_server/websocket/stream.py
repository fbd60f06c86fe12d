"""A stream: ordered, pipelined frames over a WebSocket, with large payloads in chunks.

The client sends ``hello``, the server replies ``welcome`` with the number of the next frame. Then the client sends
frames and chunks, and the server sends replies and chunks, in full duplex. A stream ends with its client, its session
or the server. Applied frames stay applied, and the session keeps their replies for the client's next stream.

``max_stream_backlog_bytes`` bounds the memory of queued frames and unsent replies: above it, the server stops reading.
A message counts with its bytes and the memory of its decoded values. A thread decodes large messages
(:mod:`..http.decoding`); later messages wait, which keeps the order. All streams of a tenant share a second bound
(:mod:`..http.backlog`), which also counts incomplete messages. The host gets at most ``MAX_IN_FLIGHT`` frames at a
time, which bounds the work for a client that does not read its replies.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect
from structlog.contextvars import bind_contextvars

from gradwire_protocol import bounds, envelope
from gradwire_protocol.errors import (
    GradwireError,
    InternalError,
    LimitExceeded,
    MalformedFrame,
    OutOfMemory,
    SessionGone,
    Unavailable,
)
from gradwire_protocol.frames import Cancel, Chunk, Frame, Message, Problem, Refusal, Reply
from gradwire_protocol.natural_frames import RefusedFrame

from ..auth.rates import StreamMeter
from ..errors import problems
from ..errors.error_mapping import to_problem
from ..hosting.jobs import Buffers
from ..http.backlog import SMALL_BYTES, Backlog
from ..http.connection_limits import DIRECT, LimitedStream
from ..http.decoding import LARGE_BYTES, Decoding, decode, decoded_limit, defaults_of, is_large, with_names
from ..observability.metrics import Metrics
from ..observability.tracing import Tracing
from ..sessions.session import Session
from ..settings.settings import Settings
from . import closing, handshake
from .closing import End
from .sender import MESSAGE_OVERHEAD, StreamSender, weight

MAX_IN_FLIGHT: Final = 32
CANCEL_BYTES: Final = 128
"""No cancellation is longer."""

log = structlog.get_logger("gradwire.stream")


@dataclass(slots=True)
class Waiting:
    """A message queued for the host.

    Attributes:
        human: it arrived as JSON.
        cancelled: it must not run.
        size: the bytes that it occupies in the queue.
        records: the number of op records of a frame.
        refusal: the error to reply in its turn, instead of giving it to the host.
        read_names: the names by which a frame in JSON reads tensors.
    """

    message: Frame | Chunk | Cancel
    buffers: Buffers
    human: bool
    size: int
    records: int | None = None
    refusal: GradwireError | None = None
    cancelled: bool = False
    read_names: Sequence[str] = ()


class Stream:
    """One accepted WebSocket of one client of a session."""

    def __init__(
        self,
        socket: WebSocket,
        session: Session,
        settings: Settings,
        metrics: Metrics,
        devices: list[str],
        meter: StreamMeter,
        decoding: Decoding,
        backlog: Backlog,
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
        self._seq = 0
        """The number of the last frame received."""
        self._cancelled = 0
        self._cancelling: set[asyncio.Task[int]] = set()
        self._in_flight = 0
        self._ready: deque[tuple[Reply, Buffers, bool]] = deque()
        self._queued_bytes = 0
        self._unsent_bytes = 0
        self._partial_bytes = 0
        self._unread_bytes = 0
        self.pending_bytes = 0
        """The sum of these bytes, as last reported to the tenant's :class:`Backlog`."""
        self._backlog = backlog
        self._end: End | None = None
        self._closed = False
        self._direct: LimitedStream | None = socket.scope.get("extensions", {}).get(DIRECT)
        """The connection, if it supports direct reception."""
        self._outgoing = StreamSender(socket, self._direct, metrics, meter)
        self._unread: deque[bytes | str] = deque()
        """Messages received but not queued: after reading was paused, the rest of the last read."""
        self._pace_timer: asyncio.TimerHandle | None = None
        self._pumping = False
        self._decoding = decoding
        self._decoding_task: asyncio.Task[None] | None = None
        """Decodes the first unread message in a thread."""
        self._most = decoded_limit(settings, session)
        self._defaults = defaults_of(session)
        self._defect: Exception | None = None
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()

    async def run(self) -> None:
        """Serve the stream until it ends."""
        try:
            accepted = await self._handshake()
        except WebSocketDisconnect:
            return
        if not accepted:
            return
        session = self.session
        other = session.streams.get(self.client)
        if other is not None:  # a concurrent handshake of the same client
            if other.epoch > self.epoch:
                await self._refuse(closing.RESUMED)
                return
            other.end_resumed()
        session.streams[self.client] = self
        self.metrics.streams.inc()
        reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._write())
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._closed = True
            if self._pace_timer is not None:
                self._pace_timer.cancel()
            tasks = [task for task in (reader, writer, self._decoding_task) if task is not None]
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            self._waiting.clear()
            self._unread.clear()
            self._ready.clear()
            self._backlog.leave(self)
            self.metrics.streams.dec()
            if session.streams.get(self.client) is self:
                del session.streams[self.client]
            session.touch()
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect):
                raise outcome

    # Ending

    def finish(self, end: End) -> None:
        """Close after the replies to running frames. Queued messages are dropped; the client resends them."""
        if self._end is None:
            self._end = end
            self._waiting.clear()
            self._unread.clear()
            if self._direct is not None:
                self._direct.pause_reading()
        self._wake.set()

    def end_resumed(self) -> None:
        """End the stream because its client resumed on another one."""
        self.finish(closing.RESUMED)

    def end_with_session(self, text: str) -> None:
        """End the stream because the session was deleted or expired."""
        self.finish(closing.session_gone(text))

    def end_with_key(self, text: str) -> None:
        """End the stream because its key was revoked or has expired."""
        self.finish(closing.key_ended(text))

    def end_unavailable(self, error: GradwireError) -> None:
        """End the stream because the session is unavailable."""
        self.finish(closing.session_unavailable(error))

    def end_with_server(self) -> None:
        """End the stream because the server is stopping."""
        self.finish(closing.SERVER_STOPS)

    async def abandon(self, error: InternalError) -> None:
        """Report a server bug to the client, if it is still connected, and close."""
        try:
            await self._refuse(closing.defect(error, "internal error"))
        except (WebSocketDisconnect, RuntimeError):
            log.debug("client already disconnected", session=self.session.id)

    # Handshake

    async def _handshake(self) -> bool:
        """Receive the hello and send the welcome. Returns False after a refusal, which closes the stream."""
        try:
            message = self._parse_hello(await asyncio.wait_for(self._receive(), handshake.HELLO_PATIENCE_S))
            hello = handshake.check_hello(message, self.session, self.settings.max_streams)
            previous = self.session.streams.get(hello.client)
            if previous is not None and (not hello.epoch or hello.instance == previous.instance):
                previous.end_resumed()  # else another program has resumed the client meanwhile
            # The host handles this after the previous stream's frames, so the number of the next frame is final.
            self.instance = hello.instance
            self.client, expected, self.epoch = await self.session.host.join(hello.client, hello.instance, hello.epoch)
        except TimeoutError:
            await self._refuse(closing.SILENT)
            return False
        except GradwireError as error:
            await self._refuse(closing.hello_refused(error))
            return False
        if self.tracing is not None:
            self._parent = self.tracing.parent(hello.trace)
        self._cancelled = hello.cancelled
        bind_contextvars(client=self.client)  # before the reader and writer tasks copy the context
        log.info("stream opened", session=self.session.id, client=self.client, agent=hello.agent[:100])
        welcome = handshake.welcome(
            self.session, self.settings, self.devices, hello.version, self.client, expected, self.epoch
        )
        await self._outgoing.send(welcome, [], self.human)
        return True

    # Receiving

    def _parse_hello(self, data: bytes | str) -> Message:
        """Decode the first message.

        Raises:
            MalformedFrame: when it is invalid or too large for a hello.
        """
        self.human = isinstance(data, str)
        if is_large(data):
            raise MalformedFrame(f"the first message of a stream must be a hello, not {len(data):,} bytes")
        self.metrics.stream_in.inc(len(data))
        return decode(data, self._most).message

    async def _receive(self) -> bytes | str:
        """The next message from ASGI.

        Raises:
            WebSocketDisconnect: when the client has disconnected.
        """
        event = await self.socket.receive()
        if event["type"] == "websocket.disconnect":
            self.closed_with = event.get("code", 1006)
            raise WebSocketDisconnect(self.closed_with)
        data: bytes | str = event.get("bytes") or event.get("text") or b""
        return data

    def _decode(self, data: bytes | str) -> Waiting:
        """Decode a message for the host. Thread-safe.

        Raises:
            MalformedFrame: when it is invalid.
            LimitExceeded: when it is too large and not a numbered frame, which would get a reply instead.
        """
        human = isinstance(data, str)
        try:
            message, buffers, weight, names = decode(data, self._most, self._defaults)
        except RefusedFrame as refused:
            error = refused.error.with_traceback(None)
            return Waiting(Frame(seq=refused.seq), [], human, len(data) + MESSAGE_OVERHEAD, 0, error)
        except LimitExceeded as error:
            seq = 0 if isinstance(data, str) else bounds.number_of(envelope.header_of(data))
            if not seq:
                raise
            return Waiting(Frame(seq=seq), [], human, len(data) + MESSAGE_OVERHEAD, 0, error.with_traceback(None))
        records = None
        if isinstance(message, Frame):
            message.client = self.client
            message.spelled_out()
            records = self.meter.usage.records(message, human)
        elif isinstance(message, Cancel):
            return Waiting(message, [], human, len(data) + MESSAGE_OVERHEAD)
        elif not isinstance(message, Chunk):
            raise MalformedFrame(f"unexpected message: {type(message).__name__.lower()}")
        elif len(buffers) != 1:
            raise MalformedFrame(f"a chunk must have one buffer, not {len(buffers)}")
        size = len(data) + weight + MESSAGE_OVERHEAD
        return Waiting(message, buffers, human, size, records, read_names=names)

    async def _read(self) -> None:
        """Receive messages from ASGI, and after the switch to direct reception only the disconnect."""
        context = copy_context()  # for log lines

        def deliver(data: bytes | str) -> None:
            context.run(self._on_message, data)

        while True:
            if self._direct is not None:
                self._direct.receive_directly(deliver, self._on_partial_message)
            self._on_message(await self._receive())
            while self._unread:  # without direct reception, this stops reading from the client
                self._drained.clear()
                await self._drained.wait()

    def _on_message(self, data: bytes | str) -> None:
        """Handle a message. The connection calls this, so an exception must end the stream through its task."""
        if self._closed:
            return
        if self._unread and len(data) <= CANCEL_BYTES:
            self._cancel_early(data)
        self._unread.append(data)
        self._unread_bytes += len(data)
        try:
            self._drain_unread()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log.error("handling a message failed", session=self.session.id, exc_info=error)
        self._defect = error
        self._wake.set()

    def _drain_unread(self) -> None:
        """Queue unread messages as far as the memory and rate limits allow."""
        if self._pace_timer is not None or self._decoding_task is not None:
            return
        while self._unread and self._end is None:
            if self._full:
                break
            if self.meter.paced and (left := self.meter.wait) > 0:
                loop = asyncio.get_running_loop()
                self._pace_timer = loop.call_later(left, self._on_budget_refilled, time.monotonic())
                break
            data = self._unread[0]
            if len(data) > LARGE_BYTES and is_large(data):
                self._count_unread()
                if not self._backlog.may_read(self):
                    break
                self._decoding_task = asyncio.create_task(self._decode_in_thread(data))
                break
            self._enqueue(self._try_decode(data))
        if self._end is not None:
            self._unread.clear()
        if not self._unread:
            self._unread_bytes = 0
            self._drained.set()
        full = self._full
        self._count_unread()
        if self._direct is not None and self._end is None:
            if self._unread or full or (self.pending_bytes > SMALL_BYTES and not self._backlog.may_read(self)):
                self._direct.pause_reading()
            elif self._direct.read_paused:
                self._direct.resume()

    @property
    def _full(self) -> bool:
        return self._queued_bytes + self._unsent_bytes > self.settings.max_stream_backlog_bytes

    def _count_unread(self) -> None:
        pending = self._partial_bytes + self._unread_bytes + self._queued_bytes + self._unsent_bytes
        if pending != self.pending_bytes and not self._closed:
            self._backlog.update(self, pending)

    def _on_partial_message(self, part: int) -> None:
        """Handle the arrival of a part of a message; ``part`` is the number of bytes so far."""
        self._partial_bytes = part
        self._count_unread()
        if part > SMALL_BYTES and self._direct is not None and not self._backlog.may_read(self):
            self._direct.pause_reading()

    def resume_reading(self) -> None:
        """Continue, because other streams of the tenant have freed memory."""
        if not self._closed:
            self._drain_unread()

    def _on_budget_refilled(self, since: float) -> None:
        """Continue after a delay by the rate limits."""
        self.meter.held += time.monotonic() - since
        self._pace_timer = None
        self._drain_unread()

    async def _decode_in_thread(self, data: bytes | str) -> None:
        """Decode a large message in a thread and queue it, then the messages behind it."""
        try:
            found = await self._decoding.run_in_thread(self.session.tenant, lambda: self._try_decode(data))
            self._decoding_task = None
            if self._closed or self._end is not None:
                return
            self._enqueue(found)
            self._drain_unread()
        except Exception as error:
            self._fail(error)

    def _try_decode(self, data: bytes | str) -> Waiting | MalformedFrame | LimitExceeded:
        try:
            return self._decode(data)
        except (MalformedFrame, LimitExceeded) as error:
            return error.with_traceback(None)  # the traceback would keep the message alive

    def _enqueue(self, waiting: Waiting | MalformedFrame | LimitExceeded) -> None:
        """Queue the first unread message, which was decoded, for the host."""
        data = self._unread.popleft()
        self._unread_bytes -= len(data)
        self.human = isinstance(data, str)
        self.metrics.stream_in.inc(len(data))
        if isinstance(waiting, GradwireError):
            self.finish(closing.malformed(waiting))
            return
        self.meter.received(len(data), waiting.size, waiting.records)
        if isinstance(waiting.message, Cancel):
            self._cancel(waiting.message)
            return
        if isinstance(waiting.message, Frame):
            self._seq = waiting.message.seq
            waiting.cancelled = self._seq <= self._cancelled
        self._waiting.append(waiting)
        self._queued_bytes += waiting.size
        self._pump()

    # Cancellation

    def _cancel(self, message: Cancel) -> None:
        """Cancel received frames, queued or running."""
        work = self.session.cancel(self.client, message.first, min(message.last, self._seq))
        task = asyncio.get_running_loop().create_task(work)
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    def _cancel_early(self, data: bytes | str) -> None:
        """Apply a cancellation at once, although it is behind unread messages. It is applied again in its turn, because
        it may concern those messages."""
        found = self._try_decode(data)
        if isinstance(found, Waiting) and isinstance(found.message, Cancel):  # errors are reported in its turn
            self._cancel(found.message)

    def cancel_waiting(self, first: int, last: int) -> int:
        """Cancel queued frames; returns their number."""
        found = 0
        for waiting in self._waiting:
            if isinstance(waiting.message, Frame) and first <= waiting.message.seq <= last:
                waiting.cancelled = True
                found += 1
        return found

    def _pump(self) -> None:
        """Give queued messages to the host. The host may reply within this call."""
        if self._pumping:
            return
        self._pumping = True
        try:
            self._pump_loop()
        finally:
            self._pumping = False

    def _pump_loop(self) -> None:
        host, limit = self.session.host, self.settings.max_stream_backlog_bytes
        while self._waiting and self._in_flight < MAX_IN_FLIGHT and self._unsent_bytes <= limit:
            if self._waiting[0].refusal is not None and self._in_flight:
                return  # earlier frames are answered first
            waiting = self._waiting.popleft()
            self._in_flight += 1
            if waiting.refusal is not None:
                seq = waiting.message.seq if isinstance(waiting.message, Frame) else 0
                self._answer(waiting)(Reply(seq=seq, refused=to_problem(waiting.refusal)), [])
                continue
            try:
                if isinstance(waiting.message, Chunk):
                    host.add_chunk(self.client, waiting.message, waiting.buffers[0], self._on_chunk_done(waiting.size))
                elif isinstance(waiting.message, Frame):
                    host.submit(
                        waiting.message, waiting.buffers, waiting.human, self._answer(waiting), waiting.cancelled
                    )
            except (Unavailable, SessionGone) as error:
                self._in_flight -= 1
                self.finish(closing.host_refused(error))

    def _on_chunk_done(self, size: int) -> Any:
        """The callback for a chunk's completion."""

        def answer(failure: BaseException | None) -> None:
            self._in_flight -= 1
            self._queued_bytes -= size
            if isinstance(failure, MalformedFrame | SessionGone):
                self.finish(closing.chunk_refused(failure))
            elif isinstance(failure, Unavailable):
                self.end_unavailable(failure)  # the client resumes and resends the upload
            elif failure is not None and not isinstance(failure, LimitExceeded | OutOfMemory):
                # An upload over a limit fails the frame that uses it; any other error here is a bug.
                log.error("adding a chunk failed", session=self.session.id, exc_info=failure)
                self.finish(closing.defect(InternalError("adding a chunk failed; the server's log has details")))
            self._on_progress()

        return answer

    def _answer(self, waiting: Waiting) -> Any:
        """The callback for a frame's reply."""

        received = time.perf_counter_ns()
        if self.tracing is not None and isinstance(waiting.message, Frame):
            waiting.message.timed = True

        def answer(reply: Reply, buffers: Buffers) -> None:
            self._in_flight -= 1
            self._queued_bytes -= waiting.size
            if not self._closed:
                reply = with_names(reply, waiting.read_names)
                if reply.errors or reply.refused is not None:
                    self.metrics.count_errors(reply, "stream")
                    reply = self._with_request_id(reply)
                waits = waiting.human or self._ready or self._end is not None
                if waits or not self._outgoing.try_send(reply, buffers):
                    self._unsent_bytes += weight(reply, buffers)
                    self._ready.append((reply, buffers, waiting.human))
            if self.tracing is not None and isinstance(waiting.message, Frame):
                sent = sum(b.nbytes for b in buffers)
                self.tracing.frame(
                    self._parent, self.session.id, waiting.message, waiting.human, received, waiting.size, sent, reply
                )
            self._on_progress()

        return answer

    def _with_request_id(self, reply: Reply) -> Reply:
        """A copy of the reply with this stream's request id in its errors."""

        def mark(problem: Problem) -> Problem:
            return msgspec.structs.replace(problem, extra={"request_id": self.request_id} | problem.extra)

        refused = None if reply.refused is None else mark(reply.refused)
        return msgspec.structs.replace(reply, errors=[mark(problem) for problem in reply.errors], refused=refused)

    def _on_progress(self) -> None:
        if self._closed:
            return
        self._count_unread()
        if self._waiting:
            self._pump()
        if self._unread or (self._direct is not None and self._direct.read_paused):
            self._drain_unread()
        if self._ready or self._end is not None:
            self._wake.set()

    # Sending

    async def _write(self) -> None:
        while True:
            if self._defect is not None:
                raise self._defect
            if self._end is not None and self._end.at_once:
                await self._refuse(self._end)
                return
            if self._ready:
                reply, buffers, human = self._ready.popleft()
                await self._outgoing.reply(reply, buffers, human)
                self._unsent_bytes -= weight(reply, buffers)
                self._on_progress()
            elif self._end is not None and not self._in_flight:
                await self._refuse(self._end)
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _refuse(self, end: End) -> None:
        """Send the reason and close the WebSocket."""
        if end.problem is not None:
            self.metrics.error(end.problem.code, "stream")
            await self._outgoing.send(Refusal(to_problem(end.problem)), [], self.human)
        log.info("stream closed", session=self.session.id, client=self.client, code=end.code, reason=end.reason)
        self.closed_with = end.code
        await self.socket.close(end.code, end.reason)
