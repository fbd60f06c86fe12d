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


# Every field has a bound (:mod:`.bounds` sees to that): these are what no message needs to pass, whatever a server
# allows. What a server does allow is less: ``max_decoded_bytes`` of all fields together, ``max_ops_per_frame``, ...
# Numbers that a server repeats, such as the one of a frame that it refuses, may be any.

MAX_ENTRIES: Final = 1 << 21
"""Of a list of records, references, ids or numbers."""
MAX_BUFFERS: Final = 1 << 16
MAX_NESTING: Final = 80
"""Lists inside one another: an array has 64 dimensions at most, and stands in a payload, in a list, in a message."""
MAX_TEXT: Final = 1 << 20
"""Of a text among arguments, values and explanations."""
MAX_NAME: Final = 512
"""Of a text that names something."""
_INT64: Final = (1 << 63) - 1

Whole = Annotated[int, msgspec.Meta(ge=-_INT64 - 1, le=_INT64)]
Count = Annotated[int, msgspec.Meta(ge=0, le=_INT64)]
"""A number or a size, a moment in nanoseconds."""
Id = Annotated[int, msgspec.Meta(ge=-MAX_ID, le=MAX_ID)]
"""Of a tensor; below 0 there are none, which is for whoever looks for it to say."""
ClientNumber = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID >> ID_BITS)]
Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Nested = Annotated[Any, msgspec.Meta(extra={"bound": (MAX_ENTRIES, MAX_NESTING, MAX_TEXT)})]
"""Anything, so long as it is not too much of it."""
Wholes = Annotated[list[Whole], msgspec.Meta(max_length=MAX_ENTRIES)]
Ids = Annotated[list[Id], msgspec.Meta(max_length=MAX_ENTRIES)]
Sizes = Annotated[list[Count], msgspec.Meta(max_length=MAX_BUFFERS)]
Extents = Annotated[list[Whole], msgspec.Meta(max_length=MAX_NAME)]

Record = Annotated[list[Nested], msgspec.Meta(min_length=2, max_length=3)]
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

    ops: Annotated[list[Record], msgspec.Meta(max_length=MAX_ENTRIES)]
    reads: Wholes = []
    drops: Wholes = []
    heard: bool = False


class Payload(msgspec.Struct, omit_defaults=True):
    """A tensor's data beside the frame: exactly one field is set.

    Attributes:
        buffer: index of a raw buffer behind the header (MessagePack only), little-endian, row-major.
        values: nested lists (JSON). NaN and infinities are the strings "NaN", "Infinity", "-Infinity";
            a complex number is ``[re, im]``; integers beyond 2**53 may be strings.
        upload: id of an upload whose chunks arrived before.
    """

    buffer: Whole | None = None
    values: Nested = None
    upload: Whole | None = None


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

    seq: Whole = 0
    client: ClientNumber = 0
    first: Id = 0
    structure: Annotated[msgspec.Raw, msgspec.Meta(extra={"of": Structure})] = msgspec.Raw()
    hash: Annotated[bytes, msgspec.Meta(max_length=64)] = b""
    external: Ids = []
    scalars: Annotated[list[Nested], msgspec.Meta(max_length=MAX_ENTRIES)] = []
    payloads: Annotated[list[Payload], msgspec.Meta(max_length=MAX_ENTRIES)] = []
    releases: Ids = []
    ack: Count = 0
    epoch: Count = 0
    timed: bool = False
    detailed: bool = False
    near: bool = False
    repeat: Count = 0
    stacked: Wholes = []
    buffers: Sizes = []

    def spelled_out(self) -> Frame:
        """The frame itself, once its ids are whole: what comes from outside is passed through here.

        Raises:
            MalformedFrame: for what is no counter, or no client's number.
        """
        if self.near:
            ends = [self.first]
            for counters in (self.external, self.releases):
                if counters:
                    ends += (min(counters), max(counters))
            if min(ends) < 0 or max(ends) >> ID_BITS or not 0 <= self.client <= MAX_ID >> ID_BITS:
                raise MalformedFrame(
                    f"client {self.client} names ids from {min(ends)} to {max(ends)}: in a frame that is near they are "
                    f"counters below 2**{ID_BITS}"
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

    dtype: Name = ""
    shape: Extents = []
    buffer: Whole | None = None
    values: Nested = None
    download: Whole | None = None
    error: Whole | None = None


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

    code: Name
    detail: Text
    op: Text = ""
    seq: Whole = 0
    index: Whole = 0
    retryable: bool = False
    extra: Annotated[dict[Name, Nested], msgspec.Meta(max_length=MAX_NAME)] = {}


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

    received: Whole = 0
    started: Whole = 0
    finished: Whole = 0
    committed: Whole = 0
    ops: Wholes = []
    memory: Wholes = []
    nodes: Annotated[list[tuple[Whole, Text, Whole, Whole, Whole]], msgspec.Meta(max_length=MAX_ENTRIES)] = []


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

    seq: Whole
    values: Annotated[list[Value], msgspec.Meta(max_length=MAX_ENTRIES)] = []
    errors: Annotated[list[Problem], msgspec.Meta(max_length=MAX_ENTRIES)] = []
    refused: Problem | None = None
    made: Whole = 0
    first: Whole = 0
    timing: Timing | None = None
    buffers: Sizes = []


class Chunk(msgspec.Struct, omit_defaults=True, tag_field="type", tag="chunk"):
    """A piece of a large payload (client to server) or of a large value (server to client).

    Attributes:
        transfer: id of the upload or download, unique for its sender.
        offset: where the piece belongs.
        total: bytes of the whole transfer.
    """

    transfer: Count
    offset: Count
    total: Count
    buffers: Sizes = []


class Cancel(msgspec.Struct, omit_defaults=True, tag_field="type", tag="cancel"):
    """Stop frames of this client that were sent before this message and are not answered.

    A frame that runs stops between two kernels, one that waits does not begin. Each is answered like any other, with
    all its results poisoned and an error ``cancelled``: the session is as it was before it. One that is over by then is
    answered as if nothing had been said.

    Attributes:
        first, last: numbers of the frames.
    """

    first: Count
    last: Count


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
        cancelled: frames up to this number that come on this stream are cancelled (:class:`Cancel`) as they arrive.
    """

    version: Whole
    client: ClientNumber = 0
    acked: Count = 0
    agent: Name = ""
    instance: Name = ""
    epoch: Count = 0
    trace: Name = ""
    cancelled: Count = 0


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

    version: Whole
    client: Whole
    expected: Whole
    session: Name = ""
    capabilities: Annotated[list[Name], msgspec.Meta(max_length=MAX_NAME)] = []
    limits: Annotated[dict[Name, Whole], msgspec.Meta(max_length=MAX_NAME)] = {}
    devices: Annotated[list[Name], msgspec.Meta(max_length=MAX_NAME)] = []
    epoch: Whole = 0
    durability: Name = "none"
    clock: Whole = 0


class Refusal(msgspec.Struct, omit_defaults=True, tag_field="type", tag="refusal"):
    """The server's answer to a message it cannot take; the stream closes after it."""

    problem: Problem


FromClient = Frame | Chunk | Cancel | Hello
FromServer = Reply | Chunk | Welcome | Refusal
Message = FromClient | FromServer


def structure_hash(encoded: bytes) -> bytes:
    """The identity of a structure: blake2b-128 of its MessagePack form."""
    return hashlib.blake2b(encoded, digest_size=16).digest()
