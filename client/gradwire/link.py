"""Frames that arrive exactly once: numbering, unacknowledged frames, reconnection and resending.

A link outlives its connections. User code sees a dropped connection only as time passing.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from gradwire_protocol import envelope
from gradwire_protocol.errors import ConnectionLost, GradwireError, from_code
from gradwire_protocol.frames import PROTOCOL_VERSION, Chunk, Frame, Hello, Payload, Refusal, Reply, Welcome
from gradwire_protocol.frames import Structure as StructureMessage

from .connection import Connection, Disconnected
from .version import __version__

CHUNK_BYTES: Final = 2 << 20
IN_FLIGHT_FRAMES: Final = 256
FAILURES_KEPT: Final = 64
FIRST_WAIT_S: Final = 0.05
LONGEST_WAIT_S: Final = 5.0
_chance: Final = random.Random()  # not the generator that programs seed
_EMPTY: Final = envelope.encode_part(StructureMessage(ops=[]))


@dataclass
class Sent:
    """A frame that was sent and not yet answered.

    Attributes:
        structure: its encoded structure, in case the server has forgotten the hash.
        lines: where in the program each op was issued.
        uploads: large payloads, sent in chunks before the frame.
    """

    frame: Frame
    structure: bytes
    buffers: list[memoryview | bytes]
    lines: list[Any]
    uploads: dict[int, memoryview] = field(default_factory=dict)
    refusal: GradwireError | None = None


@dataclass
class Answer:
    """A reply with the values' bytes gathered."""

    reply: Reply
    buffers: list[memoryview]
    lines: list[Any]
    refusal: GradwireError | None


class Link:
    """The reliable way to one session.

    Args:
        url, session, key: where to.
        patience: seconds to keep trying to reconnect before :class:`ConnectionLost`.
    """

    def __init__(self, url: str, session: str, key: str | None, patience: float = 120.0) -> None:
        self.url = url
        self.session = session
        self.patience = patience
        self._key = key
        self.lock = threading.RLock()
        self._unanswered: deque[Sent] = deque()
        self._answers: dict[int, Answer] = {}
        self._wanted: set[int] = set()
        self._downloads: dict[int, bytearray] = {}
        self._remembered: dict[bytes, None] = {}
        self._answered = 0
        self._next = 1
        self._transfer = 0
        self.failed: list[Answer] = []
        self.round_trips = 0
        self.reconnects = -1
        self._past_sent = 0
        self._past_received = 0
        self.client = 0
        self._connection: Connection | None = None
        welcome = self._reconnect()
        self.limits = welcome.limits
        self.devices = welcome.devices

    # State

    @property
    def bytes_sent(self) -> int:
        return self._past_sent + (self._connection.sent_bytes if self._connection else 0)

    @property
    def bytes_received(self) -> int:
        return self._past_received + (self._connection.received_bytes if self._connection else 0)

    def close(self) -> None:
        """Close the connection. The session itself is deleted by its owner."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._past_sent += self._connection.sent_bytes
                self._past_received += self._connection.received_bytes
            self._connection = None

    # Sending

    def submit(
        self,
        frame: Frame,
        structure: bytes,
        key: bytes,
        payloads: list[memoryview],
        lines: list[Any],
        wait: bool,
    ) -> int:
        """Send a frame and return its number. ``key`` is the structure's hash, or empty not to remember it."""
        with self.lock:
            frame.seq = self._next
            frame.client = self.client
            frame.ack = self._answered
            frame.hash = key
            self._next += 1
            sent = Sent(frame, structure, [], lines)
            for data in payloads:
                if data.nbytes > CHUNK_BYTES:
                    self._transfer += 1
                    sent.uploads[self._transfer] = data
                    frame.payloads.append(Payload(upload=self._transfer))
                else:
                    frame.payloads.append(Payload(buffer=len(sent.buffers)))
                    sent.buffers.append(data)
            if wait:
                self._wanted.add(frame.seq)
            self._unanswered.append(sent)
            try:
                self._write(sent)
                self._drain(0)
                while len(self._unanswered) > IN_FLIGHT_FRAMES:
                    self._drain(None)
            except Disconnected:
                self._reconnect()
            return frame.seq

    def has_answer(self, seq: int) -> bool:
        """Whether the answer to a frame that was submitted with ``wait`` has arrived."""
        with self.lock:
            return seq in self._answers

    def wait(self, seq: int, counts: bool = True) -> Answer:
        """The answer to a frame that was submitted with ``wait``; one round trip, unless it is known to have come."""
        with self.lock:
            self.round_trips += counts
            while seq not in self._answers:
                try:
                    self._drain(None)
                except Disconnected:
                    self._reconnect()
            self._wanted.discard(seq)
            return self._answers.pop(seq)

    def tick(self) -> None:
        """Take in what has arrived, and answer pings. Called when the program is quiet."""
        with self.lock:
            try:
                self._drain(0)
            except (Disconnected, OSError):
                pass  # the next use reconnects

    def _write(self, sent: Sent) -> None:
        connection = self._connection
        if connection is None:
            raise Disconnected("not connected")
        for transfer, data in sent.uploads.items():
            for offset in range(0, data.nbytes, CHUNK_BYTES):
                piece = data[offset : offset + CHUNK_BYTES]
                chunk = Chunk(transfer=transfer, offset=offset, total=data.nbytes)
                connection.send(envelope.join(envelope.encode(chunk, [piece])))
        frame = sent.frame
        known = frame.hash in self._remembered
        frame.structure = _NOTHING if known and frame.hash else _raw(sent.structure)
        if frame.hash and not known:
            self._remember(frame.hash)
        connection.send(envelope.join(envelope.encode(frame, sent.buffers)))

    def _remember(self, key: bytes) -> None:
        self._remembered[key] = None
        if len(self._remembered) > 128:
            del self._remembered[next(iter(self._remembered))]

    # Receiving

    def _drain(self, timeout: float | None) -> None:
        connection = self._connection
        if connection is None:
            raise Disconnected("not connected")
        for message, buffers in connection.receive(timeout):
            if isinstance(message, Reply):
                self._answer(message, buffers)
            elif isinstance(message, Chunk):
                whole = self._downloads.get(message.transfer)
                if whole is None:
                    whole = self._downloads[message.transfer] = bytearray(message.total)
                whole[message.offset : message.offset + buffers[0].nbytes] = buffers[0]
            else:
                self._ended(message)

    def _ended(self, message: Any) -> None:
        """The server ended the stream with a reason. Resending helps only where the reason says so."""
        problem = message.problem if isinstance(message, Refusal) else None
        if problem is None or problem.retryable:
            raise Disconnected(f"the server ended the stream: {problem.detail if problem else type(message).__name__}")
        if self._connection is not None:
            self._connection.drop()
            self._connection = None
        raise from_code(problem.code, f"the server ended the stream: {problem.detail}", **problem.extra)

    def _answer(self, reply: Reply, buffers: list[memoryview]) -> None:
        if not self._unanswered or reply.seq < self._unanswered[0].frame.seq:
            return  # an answer to a frame that was sent twice
        if reply.refused is not None:
            self._refused(reply)
            return
        sent = self._unanswered.popleft()
        while sent.frame.seq != reply.seq:
            sent = self._unanswered.popleft()
        self._answered = reply.seq
        for value in reply.values:
            if value.download is not None:
                value.buffer = len(buffers)
                buffers.append(memoryview(self._downloads.pop(value.download)))
        answer = Answer(reply, buffers, sent.lines, sent.refusal)
        if (reply.errors or sent.refusal is not None) and len(self.failed) < FAILURES_KEPT:
            self.failed.append(answer)  # the first cause is among the first; a program that never reads needs no more
        if reply.seq in self._wanted:
            self._answers[reply.seq] = answer

    def _refused(self, reply: Reply) -> None:
        problem = reply.refused
        assert problem is not None
        if problem.code == "frame_out_of_order":
            return  # follows from an earlier refusal, whose handling sends this frame again
        sent = next((s for s in self._unanswered if s.frame.seq == reply.seq), None)
        if sent is None:
            return
        if problem.code == "unknown_structure":
            self._remembered.clear()
        else:
            # The frame will never be applied. Its number is used up by an empty one, and the cause is kept.
            sent.refusal = from_code(problem.code, problem.detail, **problem.extra)
            sent.frame.scalars, sent.frame.payloads, sent.frame.external, sent.frame.buffers = [], [], [], []
            sent.structure, sent.frame.hash, sent.buffers, sent.uploads = _EMPTY, b"", [], {}
        for later in [s for s in self._unanswered if s.frame.seq >= reply.seq]:
            self._write(later)

    # Connecting

    def _connect(self) -> Connection:
        hello = Hello(
            version=PROTOCOL_VERSION,
            client=self.client,
            acked=self._answered,
            agent=f"gradwire-python/{__version__}",
        )
        return Connection(self.url, self.session, self._key, hello)

    def _reconnect(self) -> Welcome:
        """Reconnect, resume and resend, with growing pauses and jitter.

        Raises:
            ConnectionLost: when patience ends, naming what was not applied.
        """
        deadline = time.monotonic() + self.patience
        pause = FIRST_WAIT_S
        while True:
            if self._connection is not None:
                self._past_sent += self._connection.sent_bytes
                self._past_received += self._connection.received_bytes
                self._connection.drop()
                self._connection = None
            try:
                connection = self._connection = self._connect()
                self.client = connection.welcome.client
                self._resume()
                self.reconnects += 1
                return connection.welcome
            except (Disconnected, OSError) as error:
                if time.monotonic() > deadline:
                    raise ConnectionLost(
                        f"{self.url} could not be reached for {self.patience:g} s ({error}); "
                        f"{len(self._unanswered)} frames after frame {self._answered} may not have been applied",
                        answered=self._answered, unanswered=len(self._unanswered),
                    ) from None  # fmt: skip
            time.sleep(pause * _chance.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_WAIT_S)

    def _resume(self) -> None:
        self._remembered.clear()
        self._downloads.clear()
        for sent in list(self._unanswered):
            self._write(sent)


def _raw(encoded: bytes) -> Any:
    import msgspec

    return msgspec.Raw(encoded)


# The default itself: only that very object is left out when a frame is encoded.
_NOTHING: Final = Frame().structure
