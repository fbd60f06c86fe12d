"""Frames that arrive exactly once: numbering, unacknowledged frames, reconnection and resending.

A link outlives its connections. User code sees a dropped connection only as time passing.

What makes it exact: frames are numbered without gaps, and a frame is kept here until its reply is. After a connection
broke, everything unanswered is sent again; the server applies what it has not applied, and answers the rest from the
replies that it keeps.

A signal's handler may come in the middle of any of this, and send and wait itself. So a frame is added to those on
their way in one step; frames are written in order, whoever writes; and who waits looks first what was answered.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.awake import SPIN_S
from gradwire_protocol.errors import (
    Cancelled,
    GradwireError,
    InternalError,
    MalformedFrame,
    SessionGone,
)
from gradwire_protocol.frames import PROTOCOL_VERSION, Chunk, Frame, Hello, Refusal, Reply, Welcome

from . import endings
from .clocks import Clock
from .connection import ATTEMPT_S, HEARTBEAT_S, PINGS_MISSED, STALLS, Connection, Disconnected
from .guarded_connection import GuardedConnection, WayTaken
from .outgoing import Outgoing, replace_by_empty
from .patience import PATIENCE_S, Patience
from .replies import Downloads, error_of, gather
from .tracing import traceparent
from .version import __version__
from .window import Answer, Sent, Turn, Window

if TYPE_CHECKING:
    from .recorder import Travelled

FAILURES_KEPT: Final = 64
UNKNOWN_AT_MOST: Final = 3
"""Times that the structure of one frame may be asked for; a server with a defect would go on."""
PROMPT_BYTES: Final = 1 << 20
"""With more on its way than that, the server may be too busy to answer pings."""
CLOSE_PATIENCE_S: Final = 10.0
LOOK_FROM: Final = 16
LOOK_EVERY: Final = 8
"""Unanswered frames from which on each eighth frame looks for replies: to look costs as much as to send."""

_THROTTLED: Final = ("too_many_requests", "unavailable")


class Link:
    """The reliable way to one session.

    Args:
        url, session, key: where to.
        patience: seconds to keep trying to reconnect before :class:`ConnectionLost`.
        heartbeat: seconds of silence after which a connection that somebody waits for is pinged; 0 for never.
        client: the client's place to take over from another program; 0 for a place of its own.
        spin: seconds in which an answer is waited for awake, if answers usually come that soon.

    Attributes:
        epoch: of the last welcome. It rises each time the client resumes.
        durability: what an acknowledged frame survives on this server.
        clock: how far the server's clock is ahead.
        cancelling: asks the server to cancel all frames of this client that wait or run there, by a way of its own.
        recorded: whether something is recorded and not sent yet.
        cancelled: number of the last frame that is cancelled; 0 before.
        stalled: told when recording had to pause for room, with the time at which the pause began.
        watched: told of each frame before it is sent, with its structure, hash, payloads and lines.
    """

    def __init__(
        self, url: str, session: str, key: str | None, patience: float = PATIENCE_S, heartbeat: float = HEARTBEAT_S,
        client: int = 0, spin: float = SPIN_S,
    ) -> None:  # fmt: skip
        self.url = url
        self.session = session
        self.patience = patience
        self.heartbeat = heartbeat
        self.spin = spin
        self.instance = secrets.token_hex(8)
        self.lock = threading.RLock()
        self._key = key
        self._patience = Patience(patience)
        self._window = Window()
        self._answers: dict[int, Answer] = {}
        self._downloads = Downloads()
        self._outgoing = Outgoing()
        self.failed: list[Answer] = []
        self.round_trips = self.resent = 0
        self.reconnects = -1
        self.clock = Clock()
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
        self._way = GuardedConnection()
        self._attempts = self._written = 0
        welcome = self._reconnect("no connection yet")
        self.limits = welcome.limits
        self.devices = welcome.devices
        self.durability = welcome.durability
        # Half of what the server takes before it stops reading, and answering pings.
        window = self._window
        window.most_bytes = min(window.most_bytes, welcome.limits.get("max_stream_backlog_bytes", 64 << 20) // 2)
        self._outgoing.number_uploads(self.epoch)

    # State

    @property
    def bytes_sent(self) -> int:
        return self._way.bytes_sent

    @property
    def bytes_received(self) -> int:
        return self._way.bytes_received

    @property
    def structures(self) -> dict[str, int]:
        """How many structures travelled as their hash, and how many did not, by the reason why."""
        return {"hits": self._outgoing.hits, **self._outgoing.misses}

    @property
    def acknowledged(self) -> int:
        """The last frame whose reply is here: it is applied, and so are all before it."""
        return self._window.answered

    @property
    def next_frame(self) -> int:
        """The number that the next frame will get. It rises in the moment in which a frame is certain to be sent."""
        return self._window.next

    def mend(self) -> None:
        """Count anew what is on its way, after an exception at any moment."""
        with self.lock:
            self._window.count()

    @property
    def unanswered(self) -> int:
        """How many frames were sent, or wait to be sent again, and are not answered."""
        return len(self._window)

    @property
    def has_room(self) -> bool:
        """Whether a small frame can be sent without waiting for answers to others."""
        return self._window.fits(0, 0)

    @property
    def doubtful(self) -> str:
        """Which frames may have been applied or not, in words."""
        return self._window.describe()

    @property
    def unanswered_bytes(self) -> int:
        """About how many bytes those hold here."""
        return self._window.held

    def close(self, settle: bool = False) -> None:
        """Close the connection. With ``settle``, wait until everything that was sent is applied.

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
        self._patience = Patience(min(self.patience, CLOSE_PATIENCE_S))
        while self._window:
            try:
                self._drain(None, self._window.answered)
            except Disconnected as error:
                self._reconnect(error)

    def confirm(self) -> None:
        """Look whether the session and this program's place in it are still there, if a server can be asked.

        Raises:
            SessionGone: when the session ended.
            Superseded: when another program took the place.
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
        """Wait until so much more may be on its way. Keeps what is held here bounded, and what the server keeps.

        Raises:
            ConnectionLost: when the server cannot be reached; nothing has changed then.
        """
        with self.lock:
            if self._over is not None:
                self._check()
            began = 0
            while True:
                seen = self._window.answered
                if self._window.fits(size, read_bytes):
                    break
                began = began or time.perf_counter_ns()
                self._wait(seen)
            if began and self.stalled is not None:
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
        note: Travelled | None = None,
        kept: Callable[[], None] | None = None,
        turn: Turn | None = None,
    ) -> int:
        """Send a frame and return its number. ``key`` is the structure's hash, or empty not to remember it.

        ``kept`` is called once the frame is certain to be sent, whatever happens then. Whether an exception came
        before or after that is told by :attr:`next_frame`. 0, with nothing sent, if ``turn`` says that somebody came
        in between.

        While the server cannot be reached the frame waits here, as long as there is room.
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
                            self._drain(0)  # whoever waits will look anyway
                except Disconnected:
                    self._try_to_reconnect()
            except BaseException:
                self._way.let_go()  # a frame that is kept and was not sent is sent again on the next connection
                raise
            return frame.seq

    def has_answer(self, seq: int) -> bool:
        """Whether the answer to a frame that was submitted with ``wait`` has arrived."""
        with self.lock:
            return seq in self._answers

    def wait(self, seq: int, counts: bool = True) -> Answer:
        """The answer to a frame that was submitted with ``wait``; one round trip, unless it is known to have come.

        Raises:
            ConnectionLost: when the server cannot be reached. The frame stays, and waiting again tries again.
        """
        with self.lock:
            self.round_trips += counts
            while True:
                seen = self._window.answered
                if seq in self._answers:
                    return self._answers.pop(seq)
                self._check()
                # What comes before it is not worth staying awake for: it takes the server as long as it takes.
                self._wait(seen, awake=len(self._window) == 1)

    def until(self, seq: int) -> None:
        """Wait until this frame is answered, whoever wants the answer.

        Raises:
            ConnectionLost: when the server cannot be reached.
        """
        with self.lock:
            while (seen := self._window.answered) < seq:
                self._check()
                self._wait(seen)

    def _wait(self, seen: int, awake: bool = False) -> None:
        """Wait for something to arrive, unless more than frame ``seen`` is answered already.

        An interrupt cancels what the program has waited for, unless that was for a way to the server: then nothing is
        lost, and all is sent when there is one.
        """
        try:
            self._drain(None, seen, awake)
        except Disconnected as error:
            self._reconnect(error)
        except KeyboardInterrupt:
            self.cancel()
            # What was recorded before the interrupt goes in one frame more. The next hello tells, since an interrupt
            # costs the connection.
            if self._window and self.recorded is not None and self.recorded():
                self.cancelled = self._window.next
            raise

    def cancel(self) -> None:
        """Let the server stop what was sent and is not answered. For any thread: it may not wait for one that waits.

        What has not arrived there by now is cancelled when it does. Nothing is raised: a server that cannot be reached
        now is told when it can be.
        """
        if not self._window:
            return
        self.cancelled = self._window.next - 1
        if self.cancelling is not None and self._over is None:
            self.cancelling()

    def give_up(self, seq: int) -> None:
        """Nobody will wait for this answer any more."""
        with self.lock:
            sent = self._window.find(seq)
            if sent is not None:
                sent.wanted = False
            self._answers.pop(seq, None)

    def tick(self) -> None:
        """Take in what has arrived, and answer pings. Called when the program is quiet."""
        with self.lock:
            try:
                if self._way.connection is not None:
                    self._drain(0)
                elif self._window and self._over is None:
                    self._try_to_reconnect()
            except (Disconnected, GradwireError):
                pass  # the next use reconnects, or meets the error itself

    def _write_due(self, connection: Connection, sent: Sent) -> None:
        """Write this frame, after those before it: a signal's handler may submit one while another waits its turn."""
        seq = sent.frame.seq
        if self._written == seq - 1:
            self._written = seq
            self._write(connection, sent)
            return
        for each in self._window:
            if self._written < each.frame.seq:
                self._written = each.frame.seq
                self._write(connection, each)

    def _write(self, connection: Connection, sent: Sent) -> None:
        self._way.check(connection)
        sent.frame.ack = self._window.answered
        sent.frame.epoch = self.epoch
        if sent.uploads:
            for chunk in self._outgoing.chunks(sent):
                connection.send(chunk)
        connection.send(self._outgoing.message(sent))

    # Receiving

    def _drain(self, timeout: float | None, seen: int = 0, awake: bool = False) -> None:
        self._way.use(self._take_in, timeout, seen, awake)

    def _take_in(self, connection: Connection, timeout: float | None, seen: int = 0, awake: bool = False) -> None:
        if timeout is None and self._window.answered != seen:
            return  # a signal's handler has waited meanwhile, and for this, too
        # A server that has as much as it takes, or paces its clients, stops reading: then it does not see pings either.
        full = timeout is None and self._window.held > PROMPT_BYTES
        for message, buffers in connection.receive(timeout, STALLS if full else PINGS_MISSED, awake):
            self._way.check(connection)
            if isinstance(message, Reply):
                self._answer(connection, message, buffers)
            elif isinstance(message, Chunk):
                self._downloads.take(message, buffers, self._expected_bytes())
            else:
                self._ended(message)

    def _expected_bytes(self) -> int:
        return min(self._window.reading, self.limits.get("max_read_bytes", 1 << 32))

    def _ended(self, message: Any) -> None:
        """The server ended the stream with a reason. Resending helps only where the reason says so."""
        if not isinstance(message, Refusal):
            raise MalformedFrame(f"the server sent a {type(message).__name__.lower()} where a reply belongs")
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
            raise MalformedFrame(f"the server answered frame {reply.seq}, the answer to {sent.frame.seq} is due")
        downloads = [value.download for value in reply.values if value.download is not None]
        answer = Answer(reply, gather(reply, buffers, self._downloads, sent.reads), sent.lines, sent.refusal)
        if self._window.first is not sent:
            return  # it was answered meanwhile, on another connection
        # In this order an interrupt leaves nothing half done: as long as the frame is kept, it is answered again.
        if sent.wanted:
            self._answers[reply.seq] = answer
        # That it was cancelled is no news to the program; what depends on it says so when it is read.
        expected = sent.refusal is None and reply.seq <= self.cancelled and all(
            problem.code == Cancelled.code for problem in reply.errors
        )  # fmt: skip
        if (reply.errors or sent.refusal is not None) and not expected and len(self.failed) < FAILURES_KEPT:
            self.failed.append(answer)  # the first cause is among the first; a program that never reads needs no more
        self._window.answer(sent)
        for transfer in downloads:
            self._downloads.drop(transfer)
        if reply.timing is not None:
            self._timed(sent, reply, answer.buffers)
        if self._patience.tries or self._patience.spent:
            self._patience.renew()

    def _timed(self, sent: Sent, reply: Reply, buffers: list[memoryview]) -> None:
        arrived, timing = time.perf_counter_ns(), reply.timing
        assert timing is not None
        if sent.sent_at > 0:  # else nobody knows which sending these times belong to
            self.clock.exchanged(sent.sent_at, timing.received, timing.committed or timing.finished, arrived)
        if sent.note is not None:
            sent.note.answered(timing if sent.sent_at > 0 else None, buffers, arrived, self.clock)

    def _refused(self, connection: Connection, reply: Reply) -> None:
        problem = reply.refused
        assert problem is not None
        if problem.code == "frame_out_of_order":
            return  # follows from an earlier refusal, whose handling sends this frame again
        sent = self._window.find(reply.seq)
        if sent is None:
            return
        error = error_of(problem)
        if isinstance(error, endings.FINAL):
            raise self._final(error)
        if problem.code == "unknown_structure":
            sent.unknown += 1
            if sent.unknown > UNKNOWN_AT_MOST:
                raise MalformedFrame(f"the server does not know the structure of frame {reply.seq}, which it was sent")
            self._outgoing.forget("forgotten")
        elif problem.code == "reply_forgotten":
            # It was applied, and its values are lost. A window that is bounded like ours does not let this happen.
            sent.refusal, sent.reads = error, 0
            self._answer(connection, Reply(seq=reply.seq), [])
            return
        elif problem.code in _THROTTLED:
            asked = problem.extra.get("retry_after_s", 0)
            if not self._patience.pause(float(asked) if isinstance(asked, int | float) else 0.0):
                raise error
        elif sent.refusal is None:
            replace_by_empty(sent, error)
        else:
            raise error  # not even the empty frame in its place is taken: asking on would be for ever
        for later in [s for s in self._window if s.frame.seq >= reply.seq]:
            self._write(connection, later)

    # Connecting

    def _reconnect(self, cause: Disconnected | str) -> Welcome:
        """Reconnect, resume and resend, with growing pauses and jitter.

        Raises:
            ConnectionLost: when patience ends, naming what was not applied.
        """
        patience = self._patience
        tried = False
        while True:
            if isinstance(cause, WayTaken) or (not tried and not patience.tries):
                more = True  # at once: most connections that break can be had again
            else:
                asked = cause.retry_after if isinstance(cause, Disconnected) else 0.0
                more = patience.pause(asked)
            if not more:
                lost = endings.out_of_reach(cause, self.url, patience.seconds, self._window)
                patience.renew()  # for the next use
                raise lost
            try:
                tried = True
                return self._attempt()
            except Disconnected as error:
                cause = error

    def _try_to_reconnect(self) -> None:
        """One try, unless the last one failed a moment ago. What could not be sent is sent when there is a way."""
        if time.monotonic() < self._not_before:
            return
        spent = self._patience.spent
        try:
            self._attempt()
            self._not_before = 0.0
        except WayTaken:
            pass
        except Disconnected as error:
            pause = max(error.retry_after, self._patience.next_pause())
            self._not_before = time.monotonic() + pause
        self._patience.spent = min(self._patience.spent, spent)  # nobody has waited

    def _attempt(self) -> Welcome:
        """One try to connect, to resume and to send what is unanswered.

        Raises:
            Disconnected: when another one may succeed.
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
            with self._patience.trying(ATTEMPT_S):
                connection = Connection(self.url, self.session, self._key, hello, self.heartbeat, self.spin)
        except GradwireError as error:  # first, since some of them are OSErrors as well
            if self._attempts != attempt:
                raise WayTaken() from None
            if resumes and error.retryable:
                raise Disconnected(error.message) from None
            if resumes and isinstance(error, MalformedFrame) and "code" in error.details:  # by the server's word
                error = SessionGone(f"the session does not know this program any more ({error.message})")
            raise self._final(error) from None
        except OSError as error:
            raise error if isinstance(error, Disconnected) else Disconnected(str(error)) from None
        welcome = connection.welcome
        clock = Clock(welcome.clock, asked, time.perf_counter_ns())
        if not resumes and self.taken_over:
            self._window.answered = welcome.expected - 1  # by the program before
        fits = self._window.answered < welcome.expected <= self._window.next
        if self._attempts != attempt:  # a signal's handler has found a way meanwhile
            connection.drop()
            raise WayTaken
        if not fits:
            connection.drop()
            went = f"the server's session is not the one that it was: it expects frame {welcome.expected}"
            raise self._final(SessionGone(went))
        # At one go: who comes in between has no connection, or has it with all that belongs to it.
        self._way.connection, self.clock, self._written = connection, clock, self._window.answered
        self.client, self.epoch, self.durability = welcome.client, welcome.epoch, welcome.durability
        self.reconnects += 1
        self._patience.tries += self.reconnects > 0  # until something is answered, this was no success
        self._way.use(self._resend)
        return welcome

    def _resend(self, connection: Connection) -> None:
        """Go on where the server stands: send what is unanswered."""
        for sent in self._window:
            if self._written < sent.frame.seq:
                self._written = sent.frame.seq
                self.resent += 1
                self._write(connection, sent)

    # Ends

    def _final(self, error: GradwireError) -> GradwireError:
        """The error as the program is told of it; one that nothing can mend is remembered."""
        if isinstance(error, endings.FINAL):
            endings.explain(error, self.session, self.client, self._window, self.reconnects >= 0)
            self._over = error
        return error
