"""The messages that travel, and nothing else. All of them are msgspec structs: MessagePack and JSON alike.

A frame is the unit of the wire, of retry, of the journal, of compilation and of quota. Its *structure* (ops,
attributes, reads) is separate from its *data* (ids, numbers, payloads), so that a step repeated in a loop has a
byte-identical structure, which travels as a hash the second time.

References inside a structure are ints: ``n >= 0`` is the n-th result made in this frame, ``-1 - k`` is entry k of
the frame's table of external ids. The n-th result made in the frame has the id ``first + n``.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final

import msgspec

from .errors import MalformedFrame

PROTOCOL_VERSION: Final = 1
MAX_ID: Final = 2**53 - 1
ID_BITS: Final = 32
"""A tensor id is ``client << 32 | counter``: several clients of one session never collide."""

_INDEX_BITS: Final = 18
_SEQ_BITS: Final = 23
SEQS: Final = 1 << _SEQ_BITS
"""Numbers of frames that positions tell apart: those of later frames begin anew."""


def position_of(client: int, seq: int, index: int) -> int:
    """One number for a record: its client, the frame (modulo 2**23) and the place in it. 0 stands for none."""
    return (client << _SEQ_BITS | seq % SEQS) << _INDEX_BITS | index


def place_of_position(position: int) -> tuple[int, int, int]:
    """The client, the frame (modulo 2**23) and the index that :func:`position_of` was given."""
    frame, index = divmod(position, 1 << _INDEX_BITS)
    client, seq = divmod(frame, 1 << _SEQ_BITS)
    return client, seq, index


Record = Annotated[list[Any], msgspec.Meta(min_length=2, max_length=3)]
"""One op: its name, its arguments, and the number of results where the name does not settle it.

Arguments stand in the order of the op's parameters; trailing defaults may be left out. By kind of parameter:

=================== =====================================================================================
tensor              a reference
list of tensors     a list of references (or nulls where the op allows them)
tensor or number    a reference, or the number's kind ("bool", "int", "float", "complex"); the number
                    itself is the next entry of the frame's table of scalars
number, position    the kind; the number is the next entry of the table of scalars
attribute           the literal value; dtypes by name
payload             "payload"; the bytes are the next entry of the frame's payloads
=================== =====================================================================================
"""


class Structure(msgspec.Struct, omit_defaults=True):
    """The part of a frame that repeats from step to step.

    Attributes:
        ops: the records, in order of execution.
        reads: references to the tensors whose values the reply carries.
        drops: results made in this frame and released before its end.
        heard: the client waits for the reply although it reads nothing, and learns what has failed before.
    """

    ops: list[Record]
    reads: list[int] = []
    drops: list[int] = []
    heard: bool = False


class Payload(msgspec.Struct, omit_defaults=True):
    """A tensor's data beside the frame: exactly one field is set.

    Attributes:
        buffer: index of a raw buffer behind the header (MessagePack only), little-endian, row-major.
        values: nested lists (JSON). NaN and infinities are the strings "NaN", "Infinity", "-Infinity";
            a complex number is ``[re, im]``; integers beyond 2**53 may be strings.
        upload: id of an upload whose chunks arrived before.
    """

    buffer: int | None = None
    values: Any = None
    upload: int | None = None


class Frame(msgspec.Struct, omit_defaults=True, tag_field="type", tag="frame"):
    """One ordered batch of op records.

    Attributes:
        seq: number of the frame, counted from 1 per client. 0 (REST only) means "the next one".
        client: the client's number in the session.
        first: id of the first result made in this frame; 0 (REST only) lets the server choose.
        structure: the encoded :class:`Structure`; absent when only its hash is sent.
        hash: blake2b-128 of the encoded structure; empty when the client does not want it remembered.
        external: ids of tensors from earlier frames, in order of their first mention.
        scalars: the numbers that are data, in order of their mention. A complex number is ``[re, im]``.
        payloads: tensor data, in order of mention.
        releases: ids that the client has dropped.
        ack: the last frame whose reply the client has; replies up to it may be forgotten.
        epoch: the client's epoch (see :class:`Welcome`); a frame of an older one is refused. 0 leaves it unchecked.
        timed: ask for the reply's ``timing``.
        detailed: ask for the times of each record in it, too.
        repeat: how often the frame is applied, one time after the other; 0 and 1 are once. The table of scalars then
            holds the numbers of all times, one after the other. Results of the last time remain.
        stacked: references to results that are wanted of every time: each is stacked along a new first dimension, in a
            tensor whose id follows those of the results.
        near: ``first``, ``external`` and ``releases`` are counters of this client, without its number in front.
        buffers: byte lengths of the raw buffers behind the header (MessagePack only).
    """

    seq: int = 0
    client: int = 0
    first: int = 0
    structure: msgspec.Raw = msgspec.Raw()
    hash: bytes = b""
    external: list[int] = []
    scalars: list[Any] = []
    payloads: list[Payload] = []
    releases: list[int] = []
    ack: int = 0
    epoch: int = 0
    timed: bool = False
    detailed: bool = False
    near: bool = False
    repeat: int = 0
    stacked: list[int] = []
    buffers: list[int] = []

    def spelled_out(self) -> Frame:
        """The frame itself, once its ids are whole: what comes from outside is passed through here.

        Raises:
            MalformedFrame: for what is no counter, or no client's number.
        """
        if self.near:
            counters = [self.first, *self.external, *self.releases]
            if min(counters) < 0 or max(counters) >> ID_BITS or not 0 <= self.client <= MAX_ID >> ID_BITS:
                raise MalformedFrame(
                    f"client {self.client} names ids from {min(counters)} to {max(counters)}: in a frame that is near "
                    f"they are counters below 2**{ID_BITS}"
                )
            base = self.client << ID_BITS
            self.first += base
            self.external = [base + counter for counter in self.external]
            self.releases = [base + counter for counter in self.releases]
            self.near = False
        return self


class Value(msgspec.Struct, omit_defaults=True):
    """A tensor's value in a reply.

    Attributes:
        dtype, shape: of the tensor.
        buffer: index of the raw buffer behind the header (MessagePack).
        values: nested lists, in the JSON form described at :class:`Payload`.
        download: id under which the bytes came in chunks just before the reply, where they are many.
        error: index into the reply's errors, where the tensor could not be computed.
    """

    dtype: str = ""
    shape: list[int] = []
    buffer: int | None = None
    values: Any = None
    download: int | None = None
    error: int | None = None


class Problem(msgspec.Struct, omit_defaults=True):
    """An error, in the terms of RFC 9457 where it is a whole response.

    Attributes:
        code: from the error vocabulary.
        detail: what is wrong, with the value and the limit.
        op: name of the op that failed.
        seq, index: the frame and the position in it of the op that failed first; the others only depend on it.
        retryable: whether the same request may succeed later.
        extra: machine-readable particulars (the setting of a limit, the expected frame number, ...).
    """

    code: str
    detail: str
    op: str = ""
    seq: int = 0
    index: int = 0
    retryable: bool = False
    extra: dict[str, Any] = {}


class Timing(msgspec.Struct, omit_defaults=True):
    """When a frame was where, by the server's clock (:class:`Welcome` tells it). Nanoseconds.

    Attributes:
        received, started, finished: when it arrived, began to be applied, and was applied.
        committed: when the journal had it; 0 for a session without one.
        ops: start and end of each record, in order, flat, for a frame that asked for it; and so the next two.
        memory: bytes of live memory that each record added (or, below 0, gave back).
        nodes: what went on inside records: the record's index, the name of the node that backward ran, the position of
            the record that made the node (:func:`position_of`), start and end.
    """

    received: int = 0
    started: int = 0
    finished: int = 0
    committed: int = 0
    ops: list[int] = []
    memory: list[int] = []
    nodes: list[tuple[int, str, int, int, int]] = []


class Reply(msgspec.Struct, omit_defaults=True, tag_field="type", tag="reply"):
    """The one answer to a frame.

    Attributes:
        seq: the frame answered.
        values: one per read, in order.
        errors: ops of this frame that failed, and earlier ones that a read depends on.
        refused: the frame as a whole was not applied (out of order, unknown structure, over a limit).
        made: the number of results the frame made.
        first: id of the first of them, chosen by the server where the frame left it open.
        timing: for a frame that asked for it.
        buffers: byte lengths of the raw buffers behind the header.
    """

    seq: int
    values: list[Value] = []
    errors: list[Problem] = []
    refused: Problem | None = None
    made: int = 0
    first: int = 0
    timing: Timing | None = None
    buffers: list[int] = []


class Chunk(msgspec.Struct, omit_defaults=True, tag_field="type", tag="chunk"):
    """A piece of a large payload (client to server) or of a large value (server to client).

    Attributes:
        transfer: id of the upload or download, unique for its sender.
        offset: where the piece belongs.
        total: bytes of the whole transfer.
    """

    transfer: int
    offset: int
    total: int
    buffers: list[int] = []


class Hello(msgspec.Struct, omit_defaults=True, tag_field="type", tag="hello"):
    """First message of a client on a stream.

    Attributes:
        version: the protocol version it speaks.
        client: its number when it resumes, 0 for a new client.
        acked: the last reply it has.
        agent: name and version of the client, for the server's log.
        instance: a random name of the program that speaks, the same for all its connections.
        epoch: the client's epoch as this program knows it; 0 to take the client's place over from another program.
        trace: a W3C ``traceparent``, for a server that traces.
    """

    version: int
    client: int = 0
    acked: int = 0
    agent: str = ""
    instance: str = ""
    epoch: int = 0
    trace: str = ""


class Welcome(msgspec.Struct, omit_defaults=True, tag_field="type", tag="welcome"):
    """The server's answer to :class:`Hello`.

    Attributes:
        client: the number under which the client's frames are counted.
        expected: the number of the next frame the server will apply.
        capabilities: features beyond the version, by name.
        limits: the limits that a client should know of, by setting name.
        devices: the devices tensors can live on.
        epoch: rises each time the client resumes; frames of older epochs are refused.
        durability: what an acknowledged frame survives: ``none``, ``applied`` or ``durable``.
        clock: the server's clock at this moment, in nanoseconds from an origin of its own.
    """

    version: int
    client: int
    expected: int
    session: str = ""
    capabilities: list[str] = []
    limits: dict[str, int] = {}
    devices: list[str] = []
    epoch: int = 0
    durability: str = "none"
    clock: int = 0


class Refusal(msgspec.Struct, omit_defaults=True, tag_field="type", tag="refusal"):
    """The server's answer to a message it cannot take; the stream closes after it."""

    problem: Problem


Message = Frame | Reply | Chunk | Hello | Welcome | Refusal


def structure_hash(encoded: bytes) -> bytes:
    """The identity of a structure: blake2b-128 of its MessagePack form."""
    return hashlib.blake2b(encoded, digest_size=16).digest()
