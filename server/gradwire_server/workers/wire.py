"""The messages between server and worker over a socket pair, and their encoding.

A message is a struct with raw buffers in the protocol's envelope, preceded by the envelope's length as ``uint64``. Both
ends have the same release, so there is no version and no second validation.

A message of the server that expects a response has a number, ``call``. Responses arrive in any order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
import numpy as np

from gradwire_engine.kernels.cpu.toolchain import Mode
from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError, from_code
from gradwire_protocol.frames import Chunk, Frame, Problem, Reply

from ..hosting.runner import How
from ..observability.metrics import Applied
from ..settings.session_spec import JournalPolicy, SessionSpec

Buffers = list[memoryview]

SCRATCH_BYTES: Final = 256 << 10
"""The receive buffer for messages up to this size. Larger messages get their own buffer."""

JOIN_BYTES: Final = 64 << 10
"""Messages up to this total size are joined: a copy costs less than a vectored write."""

_PREFIX: Final = 8
_NO_STRUCTURE: Final = Frame().structure


class Setup(msgspec.Struct, tag="setup", array_like=True):
    """The first message to a worker.

    Attributes:
        max_bytes: the memory limit beyond the memory at start; 0 for no limit.
        policy: the limits of its journals.
        log_level, log_format, compiled_kernels, cache_dir, compute_threads, spin_s: the server's settings.
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
    """Open a session.

    Attributes:
        folder: its folder on disk; empty for a session in memory only.
        how: see :data:`..hosting.runner.How`; the message's buffer has the image.
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
        known: the server knows the op families of its structure.
        text: the structure of a JSON frame; the frame's own structure is empty then.
        numbers: scalars and payloads as JSON, if they contain an integer that MessagePack cannot represent.
        cancelled: the frame was cancelled before this message.
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


class AddChunk(msgspec.Struct, tag="take", array_like=True):
    """Add a chunk of an upload."""

    call: int
    session: str
    client: int
    chunk: Chunk
    buffers: list[int] = []


class HostCall(msgspec.Struct, tag="ask", array_like=True):
    """Call a method of the session's host, by name."""

    call: int
    session: str
    method: str
    arguments: list[Any]


class ComputeShare(msgspec.Struct, tag="share", array_like=True):
    """The number of workers that compute at the same time."""

    workers: int


class Ping(msgspec.Struct, tag="ping", array_like=True):
    """Heartbeat request."""

    number: int


class Replied(msgspec.Struct, tag="replied", array_like=True):
    """A frame's reply and statistics."""

    call: int
    reply: Reply
    stats: Applied | None = None
    buffers: list[int] = []


class Result(msgspec.Struct, tag="result", array_like=True):
    """The result of another call: a value or an error. A file is in the message's buffer."""

    call: int
    value: Any = None
    problem: Problem | None = None
    buffers: list[int] = []


class Pong(msgspec.Struct, tag="pong", array_like=True):
    """Heartbeat response. The worker also sends number 0 after the setup."""

    number: int


Message = Setup | Open | Submit | AddChunk | HostCall | ComputeShare | Ping | Replied | Result | Pong

_encoder = msgspec.msgpack.Encoder(enc_hook=repr)  # details of an error may be any object
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def submission(call: int, session: str, frame: Frame, human: bool, known: bool, cancelled: bool = False) -> Submit:
    """The message that submits a frame. A JSON structure travels beside the frame, as text."""
    if not human:
        return Submit(call, session, frame, False, known, cancelled=cancelled)
    text = bytes(frame.structure)
    return Submit(
        call, session, msgspec.structs.replace(frame, structure=_NO_STRUCTURE), True, known, text, cancelled=cancelled
    )


def submitted(message: Submit) -> Frame:
    """The original frame of a submission."""
    frame = message.frame
    if message.text:
        frame.structure = msgspec.Raw(message.text)
    if message.numbers:
        frame.scalars, values = json.loads(message.numbers)
        for payload, value in zip(frame.payloads, values, strict=True):
            payload.values = value
    return frame


def _with_json_numbers(message: Submit) -> Submit:
    frame = message.frame
    numbers = json.dumps([frame.scalars, [payload.values for payload in frame.payloads]])
    bare = [msgspec.structs.replace(payload, values=None) for payload in frame.payloads]
    return msgspec.structs.replace(
        message, numbers=numbers, frame=msgspec.structs.replace(frame, scalars=[], payloads=bare)
    )


def problem_of(error: GradwireError) -> Problem:
    """An error with all its details, to be raised on the other side."""
    more = {name: value for name, value in error.details.items() if name not in ("code", "message")}
    return Problem(error.details.get("code", error.code), error.message, extra=more)


def error_of(problem: Problem) -> GradwireError:
    """The inverse of :func:`problem_of`."""
    return from_code(problem.code, problem.detail, **problem.extra)


def parts(message: Message, buffers: Sequence[memoryview] = ()) -> list[bytes | memoryview]:
    """The message's bytes as a list of parts; buffers are not copied."""
    try:
        made = _envelope(message, buffers)
    except OverflowError:
        if not isinstance(message, Submit):
            raise
        made = _envelope(_with_json_numbers(message), buffers)
    size = sum(len(each) if isinstance(each, bytes) else each.nbytes for each in made)
    return [size.to_bytes(_PREFIX, "little"), *made]


def _envelope(message: Message, buffers: Sequence[memoryview]) -> list[bytes | memoryview]:
    return envelope.encode(message, buffers, _encoder)


class Wire(asyncio.BufferedProtocol):
    """One end of the socket pair, in an event loop.

    Args:
        on_message: called with each message and its buffers, which own their memory.
        on_closed: called once when the connection is closed.
    """

    def __init__(self, on_message: Callable[[Any, Buffers], None], on_closed: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_closed = on_closed
        self._transport: asyncio.WriteTransport | None = None
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._start = 0
        self._end = 0
        self._large: memoryview | None = None
        self._filled = 0

    # Sending

    def send(self, message: Message, buffers: Sequence[memoryview] = ()) -> None:
        """Send a message. Unread data is buffered. After the connection is closed, nothing is sent."""
        transport = self._transport
        if transport is None:
            return
        made = parts(message, buffers)
        if sum(len(each) if isinstance(each, bytes) else each.nbytes for each in made) <= JOIN_BYTES:
            transport.write(b"".join(made))
        else:
            transport.writelines(made)

    def close(self) -> None:
        """Send buffered data and close."""
        if self._transport is not None:
            self._transport.close()

    # Receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's transport lacks this base class

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._on_closed()

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
                # Not a bytearray, which would be zeroed first.
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
        self._on_message(*envelope.decode(data, _decoder))
