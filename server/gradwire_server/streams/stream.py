"""A stream: frames over a WebSocket, in order and pipelined, with large payloads in chunks beside them.

The life of a stream. The client says ``hello``, the server ``welcome``, with the number of the next frame it will
apply. Then both sides talk at once: frames and chunks one way, replies and chunks the other. A stream ends with the
client, with the session or with the server; frames that were applied stay applied, and their replies are kept for
the client's next stream.

Memory is bounded by ``max_stream_backlog_bytes``: beyond it, in frames that wait or in replies that wait to be read,
the server stops reading. A message counts with its bytes and with what its values take once it is decoded. One that is
large is decoded in a thread (:mod:`..decoding`), and those behind it wait: their order is kept. The streams of a tenant
have a bound together (:mod:`.backlog`), in which what has come of a message counts before it is whole. At most
``FRAMES_AHEAD`` frames are given to the host at a time, so that a client that does not read replies cannot have more
than those computed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
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

from ..access.rates import Meter
from ..decoding import Decoding, allowed, decode, is_large
from ..http import problems
from ..http.reception import DIRECT, StreamReception
from ..jobs import Buffers
from ..metrics import Metrics
from ..refusals import to_problem
from ..sessions import Session
from ..settings import Settings
from ..tracing import Tracing
from . import ends, handshake
from .backlog import SMALL_BYTES, Backlog
from .ends import End
from .outgoing import MESSAGE_OVERHEAD, Outgoing, weight

FRAMES_AHEAD: Final = 32
CANCEL_BYTES: Final = 128
"""More than a cancellation takes."""

HELLO_PATIENCE_S: Final = 20.0

log = structlog.get_logger("gradwire.stream")


@dataclass(slots=True)
class Waiting:
    """A message that waits to be given to the host.

    Attributes:
        human: it came as JSON.
        cancelled: it is not to run.
        size: bytes that it holds here.
        records: how many a frame runs.
        refusal: why it is not given to the host but answered with this, when its turn comes.
    """

    message: Frame | Chunk | Cancel
    buffers: Buffers
    human: bool
    size: int
    records: int | None = None
    refusal: GradwireError | None = None
    cancelled: bool = False


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
        """Of the last frame that came."""
        self._cancelled = 0
        self._cancelling: set[asyncio.Task[int]] = set()
        self._ahead = 0
        self._ready: deque[tuple[Reply, Buffers, bool]] = deque()
        self._held_in = 0
        self._held_out = 0
        self._coming = 0
        self._unread_bytes = 0
        self.held = 0
        """All of this together, as its tenant's :class:`Backlog` knows it."""
        self._backlog = backlog
        self._end: End | None = None
        self._over = False
        self._direct: StreamReception | None = socket.scope.get("extensions", {}).get(DIRECT)
        """The connection itself, where this server's own protocol carries it."""
        self._outgoing = Outgoing(socket, self._direct, metrics, meter)
        self._unread: deque[bytes | str] = deque()
        """What came after the server had stopped to read: the rest of what it had read at once."""
        self._later: asyncio.TimerHandle | None = None
        self._feeding = False
        self._decoding = decoding
        self._apart: asyncio.Task[None] | None = None
        """What decodes the first of the unread messages in a thread."""
        self._most = allowed(settings, session)
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
                await self._refuse(ends.RESUMED)
                return
            rival.finish(ends.RESUMED)
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
            tasks = [task for task in (reader, writer, self._apart) if task is not None]
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
        self.finish(ends.session_gone(text))

    def end_with_key(self, text: str) -> None:
        """The key that opened the stream was revoked or has expired."""
        self.finish(ends.key_ended(text))

    def end_with_trouble(self, error: GradwireError) -> None:
        """The session cannot be used for now."""
        self.finish(ends.in_trouble(error))

    def end_with_server(self) -> None:
        """The server is stopping."""
        self.finish(ends.SERVER_STOPS)

    async def abandon(self, error: InternalError) -> None:
        """Tell the client of a defect, if it is still there, and close."""
        try:
            await self._refuse(ends.defect(error, "internal error"))
        except (WebSocketDisconnect, RuntimeError):
            log.debug("nobody to tell", session=self.session.id)

    # Handshake

    async def _greet(self) -> bool:
        """Take the hello and send the welcome; or refuse, close, and return False."""
        try:
            message = self._first(await asyncio.wait_for(self._arrival(), HELLO_PATIENCE_S))
            hello = handshake.checked(message, self.session, self.settings.max_streams)
            previous = self.session.streams.get(hello.client)
            if previous is not None and (not hello.epoch or hello.instance == previous.instance):
                previous.finish(ends.RESUMED)  # else it is the newcomer who has lost the client's place
            # After what the previous stream still has with the host: only then the number of the next frame is sure.
            self.instance = hello.instance
            self.client, expected, self.epoch = await self.session.host.join(hello.client, hello.instance, hello.epoch)
        except TimeoutError:
            await self._refuse(ends.SILENT)
            return False
        except GradwireError as error:
            await self._refuse(ends.not_welcome(error))
            return False
        if self.tracing is not None:
            self._parent = self.tracing.parent(hello.trace)
        self._cancelled = hello.cancelled
        bind_contextvars(client=self.client)  # before the tasks that read and write are made
        log.info("stream opened", session=self.session.id, client=self.client, agent=hello.agent[:100])
        welcome = handshake.welcome(self.session, self.settings, self.devices, self.client, expected, self.epoch)
        await self._outgoing.send(welcome, [], self.human)
        return True

    # Reading

    def _first(self, data: bytes | str) -> Message:
        """The message that a stream begins with.

        Raises:
            MalformedFrame: when it is none.
        """
        self.human = isinstance(data, str)
        if is_large(data):
            raise MalformedFrame(f"the first message of a stream must be a hello, not {len(data):,} bytes")
        self.metrics.stream_in.inc(len(data))
        return decode(data, self._most).message

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

    def _decoded(self, data: bytes | str) -> Waiting:
        """A message for the host, with all that belongs to it. Threads may call this.

        Raises:
            MalformedFrame: when it is none.
            LimitExceeded: when it is too much, and no frame that could be answered.
        """
        human = isinstance(data, str)
        try:
            message, buffers, weight = decode(data, self._most)
        except LimitExceeded as error:
            seq = 0 if isinstance(data, str) else bounds.number_of(envelope.header_of(data))
            if not seq:
                raise
            return Waiting(Frame(seq=seq), [], human, len(data) + MESSAGE_OVERHEAD, 0, error.with_traceback(None))
        records = None
        if isinstance(message, Frame):
            message.client = self.client
            message.spelled_out()
            records = self.meter.records(message, human)
        elif isinstance(message, Cancel):
            return Waiting(message, [], human, len(data) + MESSAGE_OVERHEAD)
        elif not isinstance(message, Chunk):
            raise MalformedFrame(f"a {type(message).__name__.lower()} has no place here")
        elif len(buffers) != 1:
            raise MalformedFrame(f"a chunk has one buffer, this one {len(buffers)}")
        return Waiting(message, buffers, human, len(data) + weight + MESSAGE_OVERHEAD, records)

    async def _read(self) -> None:
        """Take in messages, by ASGI until they come directly, and the end of the connection."""
        context = copy_context()  # of the log

        def deliver(data: bytes | str) -> None:
            context.run(self._arrived, data)

        while True:
            if self._direct is not None:
                self._direct.take_over(deliver, self._arriving)
            self._arrived(await self._arrival())
            while self._unread:  # without a protocol of ours, not asking for more is what stops the client
                self._room.clear()
                await self._room.wait()

    def _arrived(self, data: bytes | str) -> None:
        """A message is there. Called by the connection, so a defect ends the stream by way of its task."""
        if self._over:
            return
        if self._unread and len(data) <= CANCEL_BYTES:
            self._cancel_early(data)
        self._unread.append(data)
        self._unread_bytes += len(data)
        try:
            self._take_in()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log.error("taking a message failed", session=self.session.id, exc_info=error)
        self._defect = error
        self._wake.set()

    def _take_in(self) -> None:
        """Take what has come, as far as there is room for it and the key has paid for what it took."""
        if self._later is not None or self._apart is not None:
            return
        while self._unread and self._end is None:
            if self._full:
                break
            if self.meter.paced and (left := self.meter.wait) > 0:
                self._later = asyncio.get_running_loop().call_later(left, self._paid, time.monotonic())
                break
            if is_large(self._unread[0]):
                self._tally()
                if not self._backlog.room(self):
                    break
                self._apart = asyncio.create_task(self._take_apart(self._unread[0]))
                break
            self._take(self._next())
        if self._end is not None:
            self._unread.clear()
        if not self._unread:
            self._unread_bytes = 0
            self._room.set()
        self._tally()
        if self._direct is not None and self._end is None:
            if self._unread or self._full or not self._backlog.room(self):
                self._direct.hold()
            else:
                self._direct.go_on()

    @property
    def _full(self) -> bool:
        return self._held_in + self._held_out > self.settings.max_stream_backlog_bytes

    def _next(self) -> bytes | str:
        data = self._unread.popleft()
        self._unread_bytes -= len(data)
        return data

    def _tally(self) -> None:
        if not self._over:
            self._backlog.tell(self, self._coming + self._unread_bytes + self._held_in + self._held_out)

    def _arriving(self, part: int) -> None:
        """So much has come of a message that is not whole yet."""
        self._coming = part
        self._tally()
        if part > SMALL_BYTES and self._direct is not None and not self._backlog.room(self):
            self._direct.hold()

    def read_on(self) -> None:
        """The other streams of the tenant hold less."""
        if not self._over:
            self._take_in()

    def _paid(self, since: float) -> None:
        """The key may have paid by now: until then its client found the network slower."""
        self.meter.held += time.monotonic() - since
        self._later = None
        self._take_in()

    async def _take_apart(self, data: bytes | str) -> None:
        """Take a large message, which is decoded in a thread; then those that came behind it."""
        try:
            found = await self._decoding.apart(self.session.tenant, lambda: self._outcome(data))
            self._apart = None
            if self._over or self._end is not None:
                return
            self._put(self._next(), found)
            self._take_in()
        except Exception as error:
            self._fail(error)

    def _take(self, data: bytes | str) -> None:
        """Take a message."""
        self._put(data, self._outcome(data))

    def _outcome(self, data: bytes | str) -> Waiting | MalformedFrame | LimitExceeded:
        try:
            return self._decoded(data)
        except (MalformedFrame, LimitExceeded) as error:
            return error.with_traceback(None)  # which holds the message

    def _put(self, data: bytes | str, waiting: Waiting | MalformedFrame | LimitExceeded) -> None:
        """Put a message among those that wait for the host."""
        self.human = isinstance(data, str)
        self.metrics.stream_in.inc(len(data))
        if isinstance(waiting, GradwireError):
            self.finish(ends.malformed(waiting))
            return
        self.meter.took(len(data), waiting.size, waiting.records)
        if isinstance(waiting.message, Cancel):
            self._cancel(waiting.message)
            return
        if isinstance(waiting.message, Frame):
            self._seq = waiting.message.seq
            waiting.cancelled = self._seq <= self._cancelled
        self._waiting.append(waiting)
        self._held_in += waiting.size
        self._feed()

    # Cancelling

    def _cancel(self, message: Cancel) -> None:
        """Cancel frames that have come, here and where they run."""
        work = self.session.cancel(self.client, message.first, min(message.last, self._seq))
        task = asyncio.get_running_loop().create_task(work)
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    def _cancel_early(self, data: bytes | str) -> None:
        """Heed a cancellation at once that stands behind messages which the key has not paid for, or there is no room
        for. It is taken again in its turn, since it may concern those, too."""
        found = self._outcome(data)
        if isinstance(found, Waiting) and isinstance(found.message, Cancel):  # what is wrong is told in its turn
            self._cancel(found.message)

    def cancel_waiting(self, first: int, last: int) -> int:
        """Let frames that wait here not run; how many there are."""
        found = 0
        for waiting in self._waiting:
            if isinstance(waiting.message, Frame) and first <= waiting.message.seq <= last:
                waiting.cancelled = True
                found += 1
        return found

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
            if self._waiting[0].refusal is not None and self._ahead:
                return  # the answers to those before it come first
            waiting = self._waiting.popleft()
            self._ahead += 1
            if waiting.refusal is not None:
                seq = waiting.message.seq if isinstance(waiting.message, Frame) else 0
                self._answer(waiting)(Reply(seq=seq, refused=to_problem(waiting.refusal)), [])
                continue
            try:
                if isinstance(waiting.message, Chunk):
                    host.add_chunk(self.client, waiting.message, waiting.buffers[0], self._took(waiting.size))
                elif isinstance(waiting.message, Frame):
                    host.submit(
                        waiting.message, waiting.buffers, waiting.human, self._answer(waiting), waiting.cancelled
                    )
            except (Unavailable, SessionGone) as error:
                self._ahead -= 1
                self.finish(ends.not_taken(error))

    def _took(self, size: int) -> Any:
        """What to do when a chunk was taken."""

        def answer(failure: BaseException | None) -> None:
            self._ahead -= 1
            self._held_in -= size
            if isinstance(failure, MalformedFrame | SessionGone):
                self.finish(ends.chunk_refused(failure))
            elif isinstance(failure, Unavailable):
                self.end_with_trouble(failure)  # the client resumes and sends the upload again
            elif failure is not None and not isinstance(failure, LimitExceeded | OutOfMemory):
                # An upload over a limit fails the frame that needs it; anything else here is a defect.
                log.error("chunk failed", session=self.session.id, exc_info=failure)
                self.finish(ends.defect(InternalError("taking a chunk failed; the log has details")))
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
                waits = waiting.human or self._ready or self._end is not None
                if waits or not self._outgoing.sent_now(reply, buffers):
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
        self._tally()
        self._feed()
        if self._unread or (self._direct is not None and self._direct.read_paused):
            self._take_in()
        if self._ready or self._end is not None:
            self._wake.set()

    # Writing

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
                self._held_out -= weight(reply, buffers)
                self._step()
            elif self._end is not None and not self._ahead:
                await self._refuse(self._end)
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _refuse(self, end: End) -> None:
        """Say why, and close."""
        if end.problem is not None:
            self.metrics.error(end.problem.code, "stream")
            await self._outgoing.send(Refusal(to_problem(end.problem)), [], self.human)
        log.info("stream closed", session=self.session.id, client=self.client, code=end.code, reason=end.reason)
        self.closed_with = end.code
        await self.socket.close(end.code, end.reason)
