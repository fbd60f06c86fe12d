"""Exactly-once delivery of frames: numbering, unacknowledged frames, reconnection and resending.

A link outlives its connections. User code notices a dropped connection only as a delay.

Frames are numbered without gaps, and a frame is kept until its reply has arrived. After a connection broke, all
unanswered frames are sent again; the server applies those that it has not applied, and answers the others from the
replies that it keeps.

A signal handler may run at any point, and send and wait itself. Hence a frame is added to the window in one step;
frames are written in order, whoever writes them; and a wait first checks what has been answered.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.awake import SPIN_S
from gradwire_protocol.errors import Cancelled, GradwireError, InternalError, MalformedFrame, SessionGone
from gradwire_protocol.frames import PROTOCOL_VERSION, Chunk, Frame, Hello, Refusal, Reply, Welcome

from ..context.trace_context import traceparent
from ..context.version import __version__
from ..context.waiting import Facts, Kind, Wait
from . import link_errors
from .connection import HEARTBEAT_S, PINGS_MISSED, STALLS, Connection, Disconnected
from .dialer import DIAL_S, Dialer
from .frame_encoder import FrameEncoder, replace_by_empty
from .guarded_connection import ConnectionTaken, GuardedConnection
from .replies import Downloads, error_of, gather
from .retry import PATIENCE_S, RetryPolicy
from .send_window import Answer, SendLock, SendWindow, SentFrame
from .server_clock import ServerClock
from .transfers import Transfers, frame_facts

if TYPE_CHECKING:
    from .frame_travel import FrameTravel

FAILURES_KEPT: Final = 64
UNKNOWN_AT_MOST: Final = 3
"""How often the server may ask for the structure of one frame; a defective server might never stop."""
MALFORMED_AT_MOST: Final = 2
"""How many malformed replies to one frame end its reads: the server resends the reply that it keeps, which may be the
same each time."""
PROMPT_BYTES: Final = 1 << 20
"""With more unanswered bytes than this, the server may be too busy to answer pings."""
CLOSE_PATIENCE_S: Final = 10.0
LOOK_FROM: Final = 16
LOOK_EVERY: Final = 8
"""With this many unanswered frames, each eighth frame checks for replies: a check costs as much as sending."""

_THROTTLED: Final = ("too_many_requests", "unavailable")


class Link:
    """A reliable link to one session.

    Args:
        url, session, key: the server, the session's id and the API key.
        patience: seconds to keep trying to reconnect before :class:`ConnectionLost`.
        heartbeat: seconds of silence after which a ping is sent while waiting for an answer; 0 for never.
        client: the client number to take over from another program; 0 for a new client.
        spin: seconds to busy-wait for an answer, if answers usually arrive that soon.
        direct: whether to follow a gateway's redirects; by default what ``GRADWIRE_DIRECT`` says.
        asks: asks the server what the session does, for those who look at a long wait.

    Attributes:
        epoch: from the last welcome. It increases each time the client resumes.
        durability: what an acknowledged frame survives on this server.
        clock: the estimated offset of the server's clock.
        cancelling: asks the server, over a separate connection, to cancel all waiting and running frames of this
            client.
        recorded: whether ops have been recorded that are not sent yet.
        cancelled: number of the last cancelled frame; 0 if there is none.
        stalled: called when recording had to wait for room, with the time at which the wait began.
        watched: called with each frame before it is sent, and its structure, hash, payloads and lines.
    """

    def __init__(
        self, url: str, session: str, key: str | None, patience: float = PATIENCE_S, heartbeat: float = HEARTBEAT_S,
        client: int = 0, spin: float = SPIN_S, direct: bool | None = None, asks: Callable[[], str] | None = None,
    ) -> None:  # fmt: skip
        self.url = url
        self.session = session
        self.patience = patience
        self.heartbeat = heartbeat
        self.instance = secrets.token_hex(8)
        self.lock = threading.RLock()
        self._dialer = Dialer(url, session, key, heartbeat, spin, direct)
        self._patience = RetryPolicy(patience)
        self._window = SendWindow()
        self._answers: dict[int, Answer] = {}
        self._downloads = Downloads()
        self._outgoing = FrameEncoder()
        self.failed: list[Answer] = []
        self.round_trips = self.resent = 0
        self.reconnects = -1
        self.clock = ServerClock()
        self.stalled: Callable[[int], None] | None = None
        self.cancelling: Callable[[], None] | None = None
        self.recorded: Callable[[], bool] | None = None
        self.cancelled = 0
        self.watched: Callable[[Frame, bytes, bytes, list[Any], list[Any]], None] | None = None
        self.client = client
        self.epoch = 0
        self.taken_over = client != 0
        self._over: GradwireError | None = None
        self._not_before = 0.0
        self._asks = asks
        self._waiting: Wait | None = None
        self._transfers = Transfers()
        self._cause = ""
        self._way = GuardedConnection()
        self._attempts = self._written = 0
        welcome = self._reconnect("no connection yet")
        self.limits = welcome.limits
        self.devices = welcome.devices
        self.durability = welcome.durability
        self._outgoing.tells_lines = welcome.durability != "none"
        # Half of what the server accepts before it stops reading and answering pings.
        window = self._window
        window.most_bytes = min(window.most_bytes, welcome.limits.get("max_stream_backlog_bytes", 64 << 20) // 2)
        self._outgoing.number_uploads(self.epoch)

    # State

    @property
    def bytes_sent(self) -> int:
        return self._way.bytes_sent

    def stats(self) -> dict[str, int]:
        """The link's part of the session's ``stats()``."""
        way, window, structures, dialer = self._way, self._window, self._outgoing, self._dialer
        return {
            "round_trips": self.round_trips, "bytes_sent": way.bytes_sent, "bytes_received": way.bytes_received,
            "reconnects": self.reconnects, "acknowledged": window.answered, "unanswered": len(window),
            "unanswered_bytes": window.held, "resent": self.resent, "direct": int(way.direct),
            "redirects": dialer.redirects, "fallbacks": dialer.fallbacks, "structure_hits": structures.hits,
            **{f"structure_{reason}": count for reason, count in structures.misses.items()},
        }  # fmt: skip

    @property
    def next_frame(self) -> int:
        """The number of the next frame. It increases at the moment when a frame is certain to be sent."""
        return self._window.next

    def mend(self) -> None:
        """Recompute the window's counts, after an exception that may have come at any point."""
        with self.lock:
            self._window.count()

    @property
    def unanswered(self) -> int:
        """The number of frames that were sent, or wait to be sent again, and have no answer."""
        return len(self._window)

    @property
    def has_room(self) -> bool:
        """Whether a small frame can be sent without waiting for answers to others."""
        return self._window.fits(0, 0)

    @property
    def doubtful(self) -> str:
        """A description of the frames that may or may not have been applied."""
        return self._window.describe()

    def close(self, settle: bool = False) -> None:
        """Close the connection. With ``settle``, first wait until everything sent is applied.

        Raises:
            ConnectionLost: when the server cannot be reached to settle.
        """
        with self.lock:
            try:
                if settle and self._over is None:
                    self._settle()
            finally:
                self._way.close()
                self._over = self._over or InternalError("the session is closed")

    def _settle(self) -> None:
        self._patience = RetryPolicy(min(self.patience, CLOSE_PATIENCE_S))
        while self._window:
            try:
                self._drain(None, self._window.answered)
            except Disconnected as error:
                self._reconnect(error)

    def confirm(self) -> None:
        """Check that the session and this program's client still exist, if the server can be reached.

        Raises:
            SessionGone: when the session ended.
            Superseded: when another program has taken over the client.
        """
        with self.lock:
            self._check()
            try:
                self._drain(0)
            except Disconnected:
                self._not_before = 0.0
                self._try_to_reconnect()

    def _check(self) -> None:
        if self._over is not None:
            raise self._over.with_traceback(None)

    # Sending

    def make_room(self, size: int = 0, read_bytes: int = 0) -> None:
        """Wait until ``size`` and ``read_bytes`` more may be unanswered. This bounds memory here and on the server.

        Raises:
            ConnectionLost: when the server cannot be reached; nothing has changed then.
        """
        with self.lock:
            if self._over is not None:
                self._check()
            if self._window.fits(size, read_bytes):
                return
            began = time.perf_counter_ns()
            with _Told(self, self._facts_of_room):
                while True:
                    seen = self._window.answered
                    if self._window.fits(size, read_bytes):
                        break
                    self._wait(seen)
            if self.stalled is not None:
                self.stalled(began)

    def submit(
        self,
        frame: Frame,
        structure: bytes,
        key: bytes,
        payloads: list[memoryview],
        lines: list[Any],
        wait: bool,
        reads: int = 0,
        read_bytes: int = 0,
        note: FrameTravel | None = None,
        kept: Callable[[], None] | None = None,
        turn: SendLock | None = None,
    ) -> int:
        """Send a frame and return its number. ``key`` is the structure's hash, or empty not to cache it.

        ``kept`` is called once the frame is certain to be sent, whatever happens afterwards. :attr:`next_frame` shows
        whether an exception came before or after that. Returns 0, with nothing sent, if ``turn`` was taken by another
        caller meanwhile.

        While the server cannot be reached, the frame is kept and sent later, as long as there is room.
        """
        with self.lock:
            if self._over is not None:
                self._check()
            frame.seq = self._window.next
            frame.client = self.client
            frame.hash = key
            if self.watched is not None:
                self.watched(frame, structure, key, payloads, lines)
            sent = self._outgoing.pack(frame, structure, payloads, lines, reads, read_bytes)
            sent.note, sent.wanted = note, wait
            try:
                if not self._window.add(sent, turn):
                    return 0
                if kept is not None:
                    kept()
                try:
                    if self._way.connection is None:
                        self._try_to_reconnect()
                    else:
                        self._way.use(self._write_due, sent)
                        if not wait and len(self._window) >= LOOK_FROM and not sent.frame.seq % LOOK_EVERY:
                            self._drain(0)  # a caller that waits checks anyway
                except Disconnected:
                    self._try_to_reconnect()
            except BaseException:
                self._way.let_go()  # a frame that was kept but not sent is sent on the next connection
                raise
            return frame.seq

    def has_answer(self, seq: int) -> bool:
        """Whether the answer to a frame that was submitted with ``wait`` has arrived."""
        with self.lock:
            return seq in self._answers

    def wait(self, seq: int, counts: bool = True) -> Answer:
        """Return the answer to a frame submitted with ``wait``. It counts as a round trip, unless ``counts`` is False.

        Raises:
            ConnectionLost: when the server cannot be reached. The frame is kept, and another wait tries again.
        """
        with self.lock:
            self.round_trips += counts
            if seq in self._answers:
                return self._answers.pop(seq)
            with _Told(self, self._facts):
                while True:
                    seen = self._window.answered
                    if seq in self._answers:
                        return self._answers.pop(seq)
                    self._check()
                    # Busy-wait only if no other frame comes first: those may take long.
                    self._wait(seen, awake=len(self._window) == 1)

    def until(self, seq: int) -> None:
        """Wait until this frame is answered, without taking the answer.

        Raises:
            ConnectionLost: when the server cannot be reached.
        """
        with self.lock:
            if self._window.answered >= seq:
                return
            with _Told(self, self._facts):
                while (seen := self._window.answered) < seq:
                    self._check()
                    self._wait(seen)

    def _facts(self) -> Facts:
        """What the thread waits for that has the lock; called by another one."""
        moved = self._transfers.facts() or self._downloads.facts()
        return moved or frame_facts(self._window)

    def _facts_of_room(self) -> Facts:
        return self._transfers.facts() or frame_facts(self._window, "room")

    def _wait(self, seen: int, awake: bool = False) -> None:
        """Wait for a message, unless a frame after ``seen`` has been answered already.

        An interrupt cancels the frames that the program waited for, unless it was reconnecting: then nothing is lost,
        and everything is sent once there is a connection.
        """
        try:
            self._drain(None, seen, awake)
        except Disconnected as error:
            self._reconnect(error)
        except KeyboardInterrupt:
            self.cancel()
            # Ops recorded before the interrupt go into one more frame, which is cancelled too. The next hello reports
            # it, since an interrupt ends the connection.
            if self._window and self.recorded is not None and self.recorded():
                self.cancelled = self._window.next
            raise

    def cancel(self) -> None:
        """Ask the server to cancel the unanswered frames. Any thread may call this; it does not wait for the lock.

        Frames that have not arrived there yet are cancelled when they do. Nothing is raised: if the server cannot be
        reached now, the next hello tells it.
        """
        if not self._window:
            return
        self.cancelled = self._window.next - 1
        if self.cancelling is not None and self._over is None:
            self.cancelling()

    def give_up(self, seq: int) -> None:
        """Discard the answer to this frame: nobody will wait for it any more."""
        with self.lock:
            sent = self._window.find(seq)
            if sent is not None:
                sent.wanted = False
            self._answers.pop(seq, None)

    def tick(self) -> None:
        """Receive what has arrived, and answer pings. Called when the program is idle."""
        with self.lock:
            try:
                if self._way.connection is not None:
                    self._drain(0)
                elif self._window and self._over is None:
                    self._try_to_reconnect()
            except (Disconnected, GradwireError):
                pass  # the next use reconnects or raises the error

    def _write_due(self, connection: Connection, sent: SentFrame) -> None:
        """Write this frame after all earlier ones: a signal handler may submit one while another is not yet written."""
        seq = sent.frame.seq
        if self._written == seq - 1:
            self._written = seq
            self._write(connection, sent)
        else:
            self._write_rest(connection)

    def _write_rest(self, connection: Connection) -> None:
        """Write the frames that this connection does not carry yet, in order."""
        for sent in self._window:
            if self._written < sent.frame.seq:
                self._written = sent.frame.seq
                self._write(connection, sent)

    def _write(self, connection: Connection, sent: SentFrame) -> None:
        if self._way.connection is not connection:
            raise ConnectionTaken
        sent.frame.ack = self._window.answered
        sent.frame.epoch = self.epoch
        if sent.uploads:
            self._send_uploads(connection, sent)
        connection.send(self._outgoing.message(sent))

    def _send_uploads(self, connection: Connection, sent: SentFrame) -> None:
        transfers = self._transfers
        transfers.begin(sum(data.nbytes for data in sent.uploads.values()))
        wait = Wait(lambda: transfers.facts() or frame_facts(self._window), began=transfers.began)
        try:
            for chunk in self._outgoing.chunks(sent):
                connection.send(chunk, wait)
                transfers.moved(len(chunk))
                wait.look()
        finally:
            wait.end()
            transfers.pause()

    # Receiving

    def _drain(self, timeout: float | None, seen: int = 0, awake: bool = False) -> None:
        self._way.use(self._take_in, timeout, seen, awake)

    def _take_in(self, connection: Connection, timeout: float | None, seen: int = 0, awake: bool = False) -> None:
        if timeout is None and self._window.answered != seen:
            return  # a signal handler waited meanwhile, and received this answer too
        # A server applies backpressure by not reading; then it does not see pings either.
        full = timeout is None and self._window.held > PROMPT_BYTES
        wait = self._waiting if timeout is None else None
        for message, buffers in connection.receive(timeout, STALLS if full else PINGS_MISSED, awake, wait):
            if self._way.connection is not connection:
                raise ConnectionTaken
            if isinstance(message, Reply):
                self._answer(connection, message, buffers)
            elif isinstance(message, Chunk):
                self._downloads.take(message, buffers, self._expected_bytes())
            else:
                self._ended(message)

    def _expected_bytes(self) -> int:
        return min(self._window.reading, self.limits.get("max_read_bytes", 1 << 32))

    def _ended(self, message: Any) -> None:
        """Handle a refusal, which ends the stream. Resending helps only if it is retryable."""
        if not isinstance(message, Refusal):
            raise MalformedFrame(f"expected a reply from the server, got a {type(message).__name__.lower()}")
        problem = message.problem
        if problem.retryable:
            raise Disconnected(f"the server ended the stream: {problem.detail}")
        raise self._final(error_of(problem, f"the server ended the stream: {problem.detail}"))

    def _answer(self, connection: Connection, reply: Reply, buffers: list[memoryview]) -> None:
        sent = self._window.first
        if sent is None or reply.seq < sent.frame.seq:
            return  # an answer to a frame that was sent twice
        if reply.refused is not None:
            self._refused(connection, reply)
            return
        if reply.seq != sent.frame.seq:
            raise MalformedFrame(f"expected the reply to frame {sent.frame.seq}, got the reply to frame {reply.seq}")
        downloads = [value.download for value in reply.values if value.download is not None]
        try:
            gathered = gather(reply, buffers, self._downloads, sent.reads)
        except MalformedFrame as error:
            sent.malformed += 1
            if sent.malformed < MALFORMED_AT_MOST:
                raise
            reply, gathered = sent.without_values(error), []
        answer = Answer(reply, gathered, sent.lines, sent.refusal)
        if self._window.first is not sent:
            return  # it was answered meanwhile, on another connection
        # This order is safe under interrupts: as long as the frame is kept, it is answered again.
        if sent.wanted:
            self._answers[reply.seq] = answer
        # The program knows that the frame was cancelled; values that depend on it raise when they are read.
        expected = sent.refusal is None and reply.seq <= self.cancelled and all(
            problem.code == Cancelled.code for problem in reply.errors
        )  # fmt: skip
        if (reply.errors or sent.refusal is not None) and not expected and len(self.failed) < FAILURES_KEPT:
            self.failed.append(answer)  # the first cause is among the first; the rest is bounded
        self._window.answer(sent)
        for transfer in downloads:
            self._downloads.drop(transfer)
        if reply.timing is not None:
            self._timed(sent, reply, answer.buffers)
        if self._patience.tries or self._patience.spent:
            self._patience.renew()

    def _timed(self, sent: SentFrame, reply: Reply, buffers: list[memoryview]) -> None:
        arrived, timing = time.perf_counter_ns(), reply.timing
        assert timing is not None
        if sent.sent_at > 0:  # otherwise it was sent twice, and the times are ambiguous
            self.clock.exchanged(sent.sent_at, timing.received, timing.committed or timing.finished, arrived)
        if sent.note is not None:
            sent.note.answered(timing if sent.sent_at > 0 else None, buffers, arrived, self.clock)

    def _refused(self, connection: Connection, reply: Reply) -> None:
        problem = reply.refused
        assert problem is not None
        if problem.code == "frame_out_of_order":
            return  # a consequence of an earlier refusal, whose handling resends this frame
        sent = self._window.find(reply.seq)
        if sent is None:
            return
        error = error_of(problem)
        if isinstance(error, link_errors.FINAL):
            raise self._final(error)
        if problem.code == "unknown_structure":
            sent.unknown += 1
            if sent.unknown > UNKNOWN_AT_MOST:
                raise MalformedFrame(f"the server keeps asking for the structure of frame {reply.seq}, which was sent")
            self._outgoing.forget("forgotten")
        elif problem.code == "reply_forgotten":
            # The bounds of the window should prevent this.
            self._answer(connection, sent.without_values(error), [])
            return
        elif problem.code in _THROTTLED:
            asked = problem.extra.get("retry_after_s", 0)
            if not self._patience.pause(float(asked) if isinstance(asked, int | float) else 0.0):
                raise error
        elif sent.refusal is None:
            replace_by_empty(sent, error)
        else:
            raise error  # even the empty frame is refused: retrying would never end
        for later in [s for s in self._window if s.frame.seq >= reply.seq]:
            self._write(connection, later)

    # Connecting

    def _reconnect(self, cause: Disconnected | str) -> Welcome:
        """Reconnect, resume and resend, with growing pauses and jitter.

        Raises:
            ConnectionLost: when the retry time is used up; it names the frames that may not be applied.
        """
        wait, before = Wait(lambda: self._connecting(wait), self._asks), self._dialer.wait
        self._dialer.wait = wait
        try:
            return self._keep_trying(cause, wait)
        finally:
            self._dialer.wait = before
            wait.end()

    def _connecting(self, wait: Wait) -> Facts:
        patience = self._patience
        kind: Kind = "session" if wait.greeted else "connection"
        return Facts(kind, url=self.url, cause=self._cause, again_at=patience.again_at, left=patience.left)

    def _keep_trying(self, cause: Disconnected | str, wait: Wait) -> Welcome:
        patience = self._patience
        tried = False
        while True:
            self._cause = str(cause)
            wait.look()
            if isinstance(cause, ConnectionTaken) or (not tried and not patience.tries):
                more = True  # at once: most broken connections can be reopened
            else:
                asked = cause.retry_after if isinstance(cause, Disconnected) else 0.0
                more = patience.pause(asked, wait)
            if not more:
                lost = link_errors.out_of_reach(cause, self.url, patience.seconds, self._window)
                patience.renew()  # for the next use
                raise lost
            try:
                tried = True
                return self._attempt()
            except Disconnected as error:
                cause = error

    def _try_to_reconnect(self) -> None:
        """Attempt to reconnect once, unless an attempt failed a moment ago. Unsent frames are kept."""
        if time.monotonic() < self._not_before:
            return
        spent = self._patience.spent
        try:
            self._attempt()
            self._not_before = 0.0
        except ConnectionTaken:
            pass
        except Disconnected as error:
            pause = max(error.retry_after, self._patience.next_pause())
            self._not_before = time.monotonic() + pause
        self._patience.spent = min(self._patience.spent, spent)  # the program did not wait

    def _attempt(self) -> Welcome:
        """Attempt once to connect, resume and send the unanswered frames.

        Raises:
            Disconnected: when another attempt may succeed.
        """
        self._attempts = attempt = self._attempts + 1
        self._way.let_go()
        self._check()
        self._outgoing.forget("reconnected")
        self._downloads.clear()
        self._window.count()
        resumes = self.reconnects >= 0
        hello = Hello(
            version=PROTOCOL_VERSION,
            client=self.client,
            acked=self._window.answered,
            agent=f"gradwire-python/{__version__}",
            instance=self.instance,
            epoch=self.epoch,
            trace=traceparent(),
            cancelled=self.cancelled,
        )
        asked = time.perf_counter_ns()
        try:
            with self._patience.trying(DIAL_S):
                connection = self._dialer.dial(hello, bool(self._window))
        except GradwireError as error:  # first, since some of them are OSErrors as well
            if self._attempts != attempt:
                raise ConnectionTaken() from None
            if resumes and error.retryable:
                raise Disconnected(error.message) from None
            if resumes and isinstance(error, MalformedFrame) and "code" in error.details:  # reported by the server
                error = SessionGone(f"the session no longer knows this client ({error.message})")
            raise self._final(error) from None
        except OSError as error:
            raise error if isinstance(error, Disconnected) else Disconnected(str(error)) from None
        welcome = connection.welcome
        clock = ServerClock(welcome.clock, asked, time.perf_counter_ns())
        if not resumes and self.taken_over:
            self._window.answered = welcome.expected - 1  # by the previous program
        fits = self._window.answered < welcome.expected <= self._window.next
        if self._attempts != attempt:  # a signal handler has reconnected meanwhile
            connection.drop()
            raise ConnectionTaken
        if not fits:
            connection.drop()
            lost = f"the server's session has lost frames: it expects frame {welcome.expected} next"
            raise self._final(SessionGone(lost))
        # In one statement: a signal handler sees either no connection, or the connection with its state.
        self._way.connection, self.clock, self._written = connection, clock, self._window.answered
        self.client, self.epoch, self.durability = welcome.client, welcome.epoch, welcome.durability
        self._outgoing.tells_lines = welcome.durability != "none"
        self.reconnects += 1
        self._patience.tries += self.reconnects > 0  # not a success until a frame is answered
        self.resent += len(self._window)
        self._way.use(self._write_rest)
        return welcome

    # Ends

    def _final(self, error: GradwireError) -> GradwireError:
        """Complete an error for the program, and keep it if it is final."""
        if isinstance(error, link_errors.FINAL):
            link_errors.explain(error, self.session, self.client, self._window, self.reconnects >= 0)
            self._over = error
        return error


class _Told:
    """A ``with`` around a wait for the server: it can be looked at while it lasts.

    Waits may be nested: a signal handler waits in the middle of another wait.
    """

    __slots__ = ("_before", "_facts", "_link", "_wait")

    def __init__(self, link: Link, facts: Callable[[], Facts]) -> None:
        self._link = link
        self._facts = facts

    def __enter__(self) -> None:
        link = self._link
        self._before = link._waiting
        self._wait = link._waiting = Wait(self._facts, link._asks)

    def __exit__(self, *_: object) -> None:
        self._link._waiting = self._before
        self._wait.end()
