"""The messages of the protocol, as msgspec structs, for MessagePack and JSON.

A frame is the unit of transport, retry, journal, compilation and quota. Its *structure* (ops, attributes, reads) is
separate from its *data* (ids, numbers, payloads), so a step that repeats has a byte-identical structure and travels as
a hash from the second time on.

References inside a structure are ints: ``n >= 0`` is result n of this frame, ``-1 - k`` is entry k of the frame's table
of external ids, which the frame's names of tensors continue. Result n has the id ``first + n``.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final

import msgspec

from .errors import MalformedFrame

PROTOCOL_VERSION: Final = 1
MIN_PROTOCOL_VERSION: Final = 1
"""The oldest version that this one still speaks: the previous one, so that clients and servers need no common day."""
REDIRECT: Final = "redirect"
"""The capability of a client that follows a :class:`Redirect`."""
MAX_ID: Final = 2**53 - 1
ID_BITS: Final = 32
"""A tensor id is ``client << 32 | counter``, so ids of a session's clients never collide."""

_INDEX_BITS: Final = 18
_SEQ_BITS: Final = 23
SEQS: Final = 1 << _SEQ_BITS
"""How many frame numbers a position distinguishes, before they wrap."""


def position_of(client: int, seq: int, index: int) -> int:
    """One number for a record: its client, the frame (modulo 2**23) and the index in it. 0 means none."""
    return (client << _SEQ_BITS | seq % SEQS) << _INDEX_BITS | index


def place_of_position(position: int) -> tuple[int, int, int]:
    """The inverse of :func:`position_of`: client, frame (modulo 2**23) and index."""
    frame, index = divmod(position, 1 << _INDEX_BITS)
    client, seq = divmod(frame, 1 << _SEQ_BITS)
    return client, seq, index


# Every field has a bound, which :mod:`.bounds` enforces. These are maxima that no message needs to exceed; servers
# allow less (``max_decoded_bytes`` for all fields together, ``max_ops_per_frame``, ...). Numbers that a server echoes,
# such as that of a refused frame, may have any value.

MAX_ENTRIES: Final = 1 << 21
"""Entries of a list of records, references, ids or numbers."""
MAX_BUFFERS: Final = 1 << 16
MAX_NESTING: Final = 80
"""Nesting depth of lists: an array has at most 64 dimensions, and is inside a payload, a list and a message."""
MAX_TEXT: Final = 1 << 20
"""Length of a text in arguments, values and explanations."""
MAX_NAME: Final = 512
"""Length of a name."""
MAX_ADDRESS: Final = 1 << 14
"""Length of a URL or a ticket."""
MAX_NAME_CHARS: Final = 200
MAX_LINE_CHARS: Final = 400
"""Length of the name of a tensor in a session."""
_INT64: Final = (1 << 63) - 1

Whole = Annotated[int, msgspec.Meta(ge=-_INT64 - 1, le=_INT64)]
Count = Annotated[int, msgspec.Meta(ge=0, le=_INT64)]
"""A number, a size, or a time in nanoseconds."""
Id = Annotated[int, msgspec.Meta(ge=-MAX_ID, le=MAX_ID)]
"""A tensor's id. No tensor has a negative one; the lookup reports that."""
ClientNumber = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID >> ID_BITS)]
Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
LineText = Annotated[str, msgspec.Meta(max_length=MAX_LINE_CHARS)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Address = Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)]
Nested = Annotated[Any, msgspec.Meta(extra={"bound": (MAX_ENTRIES, MAX_NESTING, MAX_TEXT)})]
"""Any value, within bounds."""
Wholes = Annotated[list[Whole], msgspec.Meta(max_length=MAX_ENTRIES)]
Ids = Annotated[list[Id], msgspec.Meta(max_length=MAX_ENTRIES)]
Sizes = Annotated[list[Count], msgspec.Meta(max_length=MAX_BUFFERS)]
Extents = Annotated[list[Whole], msgspec.Meta(max_length=MAX_NAME)]

Record = Annotated[list[Nested], msgspec.Meta(min_length=2, max_length=3)]
"""One op: its name, its arguments, and the number of results if the op leaves it open.

Arguments follow the order of the op's parameters; trailing defaults may be omitted. By kind of parameter:

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
        heard: the client waits for the reply although it reads nothing, so it learns of earlier failures.
        keeps: names that tensors of these references get in the session at the end of the frame. A name held before
            moves. A result that gets a name has no id. A name of null is removed.
    """

    ops: Annotated[list[Record], msgspec.Meta(max_length=MAX_ENTRIES)]
    reads: Wholes = []
    drops: Wholes = []
    heard: bool = False
    keeps: Annotated[dict[Name, Whole | None], msgspec.Meta(max_length=MAX_BUFFERS)] = {}


class Payload(msgspec.Struct, omit_defaults=True):
    """A tensor's data outside of the structure: exactly one field is set.

    Attributes:
        buffer: index of a raw buffer after the header (MessagePack only), little-endian, row-major.
        values: nested lists (JSON). NaN and infinities are the strings "NaN", "Infinity", "-Infinity";
            a complex number is ``[re, im]``; integers beyond 2**53 may be strings.
        upload: id of an upload whose chunks arrived earlier.
    """

    buffer: Whole | None = None
    values: Nested = None
    upload: Whole | None = None


class Frame(msgspec.Struct, omit_defaults=True, tag_field="type", tag="frame"):
    """One ordered batch of op records.

    Attributes:
        seq: number of the frame, from 1 per client. 0 (REST only) means "the next one".
        client: the client's number in the session.
        first: id of this frame's first result; 0 (REST only) lets the server choose.
        structure: the encoded :class:`Structure`; absent if only its hash is sent.
        hash: blake2b-128 of the encoded structure; empty if the server should not remember it.
        external: ids of tensors from earlier frames, in order of first mention.
        named: names of tensors in the session; their references follow those of ``external``.
        scalars: the numbers that are data, in order of mention. A complex number is ``[re, im]``.
        payloads: tensor data, in order of mention.
        releases: ids that the client dropped.
        ack: the last frame whose reply the client received; the server may forget replies up to it.
        epoch: the client's epoch (see :class:`Welcome`); frames of older epochs are refused. 0 is not checked.
        timed: ask for the reply's ``timing``.
        detailed: include the times of each record in it.
        repeat: how many times to apply the frame in a row; 0 and 1 mean once. ``scalars`` then holds the numbers of all
            iterations in order. The results of the last iteration remain.
        stacked: references to results that are wanted of every iteration. Each is stacked along a new first dimension,
            in a tensor whose id follows those of the results.
        near: ``first``, ``external`` and ``releases`` are this client's counters, without its number.
        lines: with a structure, where the program called each record, as ``file:line`` or empty. Nothing depends on it:
            the server keeps it with the structure, and names the line when it is asked where something began.
        buffers: byte lengths of the raw buffers after the header (MessagePack only).
    """

    seq: Whole = 0
    client: ClientNumber = 0
    first: Id = 0
    structure: Annotated[msgspec.Raw, msgspec.Meta(extra={"of": Structure})] = msgspec.Raw()
    hash: Annotated[bytes, msgspec.Meta(max_length=64)] = b""
    external: Ids = []
    named: Annotated[list[Name], msgspec.Meta(max_length=MAX_BUFFERS)] = []
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
    lines: Annotated[list[LineText], msgspec.Meta(max_length=MAX_ENTRIES)] = []
    buffers: Sizes = []

    def spelled_out(self) -> Frame:
        """This frame with full ids. Every received frame must pass through here.

        Raises:
            MalformedFrame: for an invalid counter or client number.
        """
        if self.near:
            ends = [self.first]
            for counters in (self.external, self.releases):
                if counters:
                    ends += (min(counters), max(counters))
            if min(ends) < 0 or max(ends) >> ID_BITS or not 0 <= self.client <= MAX_ID >> ID_BITS:
                raise MalformedFrame(
                    f"client {self.client} sent counters from {min(ends)} to {max(ends)}; they must be from 0 to "
                    f"2**{ID_BITS} - 1 in a frame with near"
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
        name: the name by which a frame in JSON reads it.
        buffer: index of the raw buffer after the header (MessagePack).
        values: nested lists, in the JSON form of :class:`Payload`.
        download: id of the chunks just before the reply that carried a large value.
        error: index into the reply's errors, if the tensor could not be computed.
    """

    dtype: Name = ""
    shape: Extents = []
    buffer: Whole | None = None
    values: Nested = None
    download: Whole | None = None
    error: Whole | None = None
    name: Name = ""


class Problem(msgspec.Struct, omit_defaults=True):
    """An error; as a whole response, an RFC 9457 problem.

    Attributes:
        code: from the error vocabulary.
        detail: what is wrong, with the value and the limit.
        op: name of the op that failed.
        seq, index: frame and position of the op that failed first; later failures only depend on it.
        retryable: whether the same request may succeed later.
        extra: machine-readable details (the setting of a limit, the expected frame number, ...).
    """

    code: Name
    detail: Text
    op: Text = ""
    seq: Whole = 0
    index: Whole = 0
    retryable: bool = False
    extra: Annotated[dict[Name, Nested], msgspec.Meta(max_length=MAX_NAME)] = {}


class Timing(msgspec.Struct, omit_defaults=True):
    """A frame's times in nanoseconds of the server's clock (see :class:`Welcome`).

    Attributes:
        received, started, finished: when it arrived, and when its application began and ended.
        committed: when the journal had it; 0 for a session without one.
        ops: start and end of each record, flat and in order. This and the next two only for ``detailed`` frames.
        memory: bytes of live memory that each record added (negative: released).
        nodes: backward nodes: the index of the record that ran the node, the node's name, the position of the record
            that made it (:func:`position_of`), start and end.
    """

    received: Whole = 0
    started: Whole = 0
    finished: Whole = 0
    committed: Whole = 0
    ops: Wholes = []
    memory: Wholes = []
    nodes: Annotated[list[tuple[Whole, Text, Whole, Whole, Whole]], msgspec.Meta(max_length=MAX_ENTRIES)] = []


class Reply(msgspec.Struct, omit_defaults=True, tag_field="type", tag="reply"):
    """The answer to a frame.

    Attributes:
        seq: the frame answered.
        values: one per read, in order.
        errors: failed ops of this frame, and earlier ones that a read depends on.
        refused: why the whole frame was not applied (out of order, unknown structure, over a limit).
        made: the frame's number of results.
        first: id of the first result, chosen by the server if the frame left it open.
        timing: for a frame that asked for it.
        buffers: byte lengths of the raw buffers after the header.
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
        transfer: id of the upload or download, unique per sender.
        offset: the piece's position in the transfer.
        total: bytes of the whole transfer.
    """

    transfer: Count
    offset: Count
    total: Count
    buffers: Sizes = []


class Cancel(msgspec.Struct, omit_defaults=True, tag_field="type", tag="cancel"):
    """Cancel unanswered frames of this client that were sent before this message.

    A running frame stops between two kernels; a waiting one does not start. Each gets a reply with an error
    ``cancelled``; all its results are poisoned, and the session is as it was before the frame. A frame that already
    finished is answered as usual.

    Attributes:
        first, last: numbers of the frames.
    """

    first: Count
    last: Count


class Hello(msgspec.Struct, omit_defaults=True, tag_field="type", tag="hello"):
    """A client's first message on a stream.

    Attributes:
        version: the protocol version that it wants to speak; the answer has the same one.
        client: its number if it resumes, 0 for a new client.
        acked: the last reply it received.
        agent: name and version of the client, for the server's log.
        instance: a random name of the program, the same for all its connections.
        epoch: the client's epoch as this program knows it; 0 to take over the client's place from another program.
        trace: a W3C ``traceparent``, for servers that trace.
        cancelled: frames up to this number are cancelled (:class:`Cancel`) as they arrive on this stream.
        capabilities: what the client supports beyond the version, by name; servers ignore names that they do not know.
    """

    version: Whole
    client: ClientNumber = 0
    acked: Count = 0
    agent: Name = ""
    instance: Name = ""
    epoch: Count = 0
    trace: Name = ""
    cancelled: Count = 0
    capabilities: Annotated[list[Name], msgspec.Meta(max_length=MAX_NAME)] = []


class Welcome(msgspec.Struct, omit_defaults=True, tag_field="type", tag="welcome"):
    """The server's answer to :class:`Hello`.

    Attributes:
        client: the client's number in the session.
        expected: the number of the next frame that the server will apply.
        capabilities: features beyond the version, by name.
        limits: limits that concern clients, by setting name.
        devices: the devices of the server.
        epoch: increases each time the client resumes; frames of older epochs are refused.
        durability: what an acknowledged frame survives: ``none``, ``applied`` or ``durable``.
        clock: the server's current clock, in nanoseconds from an arbitrary origin.
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


class Redirect(msgspec.Struct, omit_defaults=True, tag_field="type", tag="redirect"):
    """The server's answer to a :class:`Hello` with the capability ``redirect``: the session is served elsewhere. The
    stream closes after it, and the client says the same hello there.

    Attributes:
        url: the base URL of the server that has the session, ``http://`` or ``https://``.
        ticket: opens one stream of this session there, once and within seconds, instead of the API key:
            ``/v1/sessions/{id}/stream?ticket=...``.
    """

    url: Address
    ticket: Address


class Refusal(msgspec.Struct, omit_defaults=True, tag_field="type", tag="refusal"):
    """The server's answer to a message that it cannot accept; the stream closes after it."""

    problem: Problem


FromClient = Frame | Chunk | Cancel | Hello
FromServer = Reply | Chunk | Welcome | Redirect | Refusal
Message = FromClient | FromServer


def structure_hash(encoded: bytes) -> bytes:
    """The identity of a structure: blake2b-128 of its MessagePack form."""
    return hashlib.blake2b(encoded, digest_size=16).digest()
