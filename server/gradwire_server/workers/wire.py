"""What server and worker say to each other over a socket pair, and its bytes.

A message is a struct and its raw buffers, in the protocol's own envelope, behind the envelope's length as a
``uint64``. Both ends are of the same release, so there is no version and nothing is checked twice.

Every message of the server that wants an answer has a number, ``call``; answers come in any order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
import numpy as np

from gradwire_engine.compiled.toolchain import Mode
from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError, from_code
from gradwire_protocol.frames import Chunk, Frame, Problem, Reply

from ..durable.spec import JournalPolicy, SessionSpec
from ..metrics import Applied
from ..runner import How

Buffers = list[memoryview]

SCRATCH_BYTES: Final = 256 << 10
"""Messages up to this size are cut out of one buffer; longer ones are received into memory of their own."""

JOIN_BYTES: Final = 64 << 10
"""Pieces up to this size together are written as one: a copy is cheaper than a list for the system call."""

_PREFIX: Final = 8
_NOTHING: Final = Frame().structure


class Setup(msgspec.Struct, tag="setup", array_like=True):
    """First message to a worker.

    Attributes:
        max_bytes: memory that it may take beyond what it needs at start; 0 for no limit.
        log_level, log_format: of the server.
        policy: of its journals.
        compiled_kernels, cache_dir, compute_threads, spin_s: of the server.
    """

    max_bytes: int
    log_level: str
    log_format: str
    policy: JournalPolicy
    compiled_kernels: Mode
    cache_dir: str | None
    compute_threads: int
    spin_s: float


class Open(msgspec.Struct, tag="open", array_like=True):
    """Begin a session on this worker.

    Attributes:
        folder: where it is kept on disk; empty for one in memory only.
        how: ``new``; ``recover`` what is in the folder; ``adopt`` the file that is the message's buffer.
    """

    call: int
    session: str
    spec: SessionSpec
    folder: str
    how: How
    buffers: list[int] = []


class Submit(msgspec.Struct, tag="submit", array_like=True):
    """Apply a frame.

    Attributes:
        known: the families of its structure's ops need not be told.
        text: the structure as JSON, of a frame by a person; the frame itself has none then.
        numbers: scalars and payloads as JSON, where MessagePack has no form for an integer among them.
        cancelled: it was cancelled before it came here.
    """

    call: int
    session: str
    frame: Frame
    human: bool = False
    known: bool = False
    text: bytes = b""
    numbers: str = ""
    cancelled: bool = False
    buffers: list[int] = []


class Take(msgspec.Struct, tag="take", array_like=True):
    """Take a piece of an upload."""

    call: int
    session: str
    client: int
    chunk: Chunk
    buffers: list[int] = []


class Ask(msgspec.Struct, tag="ask", array_like=True):
    """Call a method of the session's host, by name."""

    call: int
    session: str
    method: str
    arguments: list[Any]


class Share(msgspec.Struct, tag="share", array_like=True):
    """So many workers compute at once."""

    workers: int


class Ping(msgspec.Struct, tag="ping", array_like=True):
    """Are you there?"""

    number: int


class Replied(msgspec.Struct, tag="replied", array_like=True):
    """A frame's reply, and what the metrics shall make of it."""

    call: int
    reply: Reply
    told: Applied | None = None
    buffers: list[int] = []


class Result(msgspec.Struct, tag="result", array_like=True):
    """What another call came to: a value, or an error. A file is the message's buffer."""

    call: int
    value: Any = None
    problem: Problem | None = None
    buffers: list[int] = []


class Pong(msgspec.Struct, tag="pong", array_like=True):
    """I am. The first one, number 0, follows the setup."""

    number: int


Message = Setup | Open | Submit | Take | Ask | Share | Ping | Replied | Result | Pong

_encoder = msgspec.msgpack.Encoder(enc_hook=repr)  # particulars of an error may be anything
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def submission(call: int, session: str, frame: Frame, human: bool, known: bool, cancelled: bool = False) -> Submit:
    """The message that submits a frame. Its structure stays as it is encoded: one in JSON travels beside it."""
    if not human:
        return Submit(call, session, frame, False, known, cancelled=cancelled)
    text = bytes(frame.structure)
    return Submit(
        call, session, msgspec.structs.replace(frame, structure=_NOTHING), True, known, text, cancelled=cancelled
    )


def submitted(message: Submit) -> Frame:
    """The frame of a submission, as it was."""
    frame = message.frame
    if message.text:
        frame.structure = msgspec.Raw(message.text)
    if message.numbers:
        frame.scalars, values = json.loads(message.numbers)
        for payload, value in zip(frame.payloads, values, strict=True):
            payload.values = value
    return frame


def _in_text(message: Submit) -> Submit:
    frame = message.frame
    numbers = json.dumps([frame.scalars, [payload.values for payload in frame.payloads]])
    bare = [msgspec.structs.replace(payload, values=None) for payload in frame.payloads]
    return msgspec.structs.replace(
        message, numbers=numbers, frame=msgspec.structs.replace(frame, scalars=[], payloads=bare)
    )


def problem_of(error: GradwireError) -> Problem:
    """An error with all its particulars, to be raised again on the other side."""
    more = {name: value for name, value in error.details.items() if name not in ("code", "message")}
    return Problem(error.details.get("code", error.code), error.message, extra=more)


def error_of(problem: Problem) -> GradwireError:
    """The error that :func:`problem_of` was given."""
    return from_code(problem.code, problem.detail, **problem.extra)


def pieces(message: Message, buffers: Sequence[memoryview] = ()) -> list[bytes | memoryview]:
    """The message's bytes as a list of pieces; buffers are not copied."""
    try:
        made = _envelope(message, buffers)
    except OverflowError:
        if not isinstance(message, Submit):
            raise
        made = _envelope(_in_text(message), buffers)
    size = sum(len(each) if isinstance(each, bytes) else each.nbytes for each in made)
    return [size.to_bytes(_PREFIX, "little"), *made]


def _envelope(message: Message, buffers: Sequence[memoryview]) -> list[bytes | memoryview]:
    return envelope.encode(message, buffers, _encoder)


class Wire(asyncio.BufferedProtocol):
    """One end of the socket pair, in an event loop.

    Args:
        take: called with every message that arrives, and its buffers: views of memory that is theirs alone.
        lost: called once, when the other end is gone.
    """

    def __init__(self, take: Callable[[Any, Buffers], None], lost: Callable[[], None]) -> None:
        self._take = take
        self._lost = lost
        self._transport: asyncio.WriteTransport | None = None
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._start = 0
        self._end = 0
        self._large: memoryview | None = None
        self._filled = 0

    # Writing

    def send(self, message: Message, buffers: Sequence[memoryview] = ()) -> None:
        """Send a message. What the other end does not read yet is kept; to one that is gone, nothing is sent."""
        transport = self._transport
        if transport is None:
            return
        made = pieces(message, buffers)
        if sum(len(each) if isinstance(each, bytes) else each.nbytes for each in made) <= JOIN_BYTES:
            transport.write(b"".join(made))
        else:
            transport.writelines(made)

    def close(self) -> None:
        """Send what is left and close."""
        if self._transport is not None:
            self._transport.close()

    # Reading

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's has no base class that tells

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return self._large[self._filled :]
        return self._scratch[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._large is not None:
            self._filled += nbytes
            if self._filled == self._large.nbytes:
                whole, self._large = self._large, None
                self._deliver(whole)
            return
        self._end += nbytes
        while self._end - self._start >= _PREFIX:
            begin = self._start + _PREFIX
            size = int.from_bytes(self._scratch[self._start : begin], "little")
            if begin + size <= self._end:
                self._start = begin + size
                self._deliver(memoryview(bytes(self._scratch[begin : self._start])))
            elif size > SCRATCH_BYTES - _PREFIX:
                # Not a bytearray: that would be filled with zeros first.
                self._large = np.empty(size, np.uint8).data
                self._filled = self._end - begin
                self._large[: self._filled] = self._scratch[begin : self._end]
                self._start = self._end
                break
            else:
                break
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start:
            left = bytes(self._scratch[self._start : self._end])
            self._scratch[: len(left)] = left
            self._start, self._end = 0, len(left)

    def _deliver(self, data: memoryview) -> None:
        self._take(*envelope.decode(data, _decoder))
