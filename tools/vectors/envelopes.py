"""Messages and their bytes, both ways; and bytes that are no message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gradwire.cli.conformance.vectors import Vector
from gradwire_protocol import envelope
from gradwire_protocol.errors import MalformedFrame
from gradwire_protocol.frames import (
    Cancel,
    Chunk,
    Frame,
    FromClient,
    Hello,
    Payload,
    Problem,
    Redirect,
    Refusal,
    Reply,
    Structure,
    Timing,
    Value,
    Welcome,
    structure_hash,
)

CLIENT: Final = {kind.__name__ for kind in FromClient.__args__}
"""The types of messages that a client sends; a chunk goes both ways."""

STRUCTURE: Final = Structure(ops=[["full", [[2], "float"]], ["mul", [0, -1]]], reads=[1], drops=[0])
ENCODED: Final = envelope.encode_part(STRUCTURE)
RAW: Final = msgspec.Raw(ENCODED)
PROBLEM: Final = Problem(
    code="limit_exceeded", detail="too large", op="zeros", seq=3, index=1, retryable=True,
    extra={"setting": "GRADWIRE_MAX_TENSOR_BYTES", "limit": 1000, "value": 4000},
)  # fmt: skip

MESSAGES: Final[tuple[tuple[str, str, Any, list[bytes]], ...]] = (
    ("hello", "the first message of a new client", Hello(version=1, agent="conformance", instance="p1"), []),
    ("hello-resume", "a client that resumes: number, last reply, epoch, cancelled frames, trace",
     Hello(version=1, client=3, acked=17, agent="conformance", instance="p1", epoch=2, cancelled=19,
           trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), []),
    ("welcome", "the answer to a hello",
     Welcome(version=1, client=3, expected=18, session="s_1", capabilities=["chunks", "json"],
             limits={"max_message_bytes": 4194304, "chunk_bytes": 2097152}, devices=["cpu", "cuda:0"], epoch=3,
             durability="durable", clock=123456789012345), []),
    ("welcome-short", "a welcome with nothing but the fields that are always there",
     Welcome(version=1, client=2, expected=1), []),
    ("refusal", "why a stream ends", Refusal(PROBLEM), []),
    ("frame-empty", "a frame that does nothing", Frame(seq=1,
        structure=msgspec.Raw(envelope.encode_part(Structure([])))),
     []),
    ("frame", "a frame with numbers, ids and a structure to remember",
     Frame(seq=2, client=3, first=3 << 32 | 1, structure=RAW, hash=structure_hash(ENCODED), external=[3 << 32],
           scalars=[2.5], releases=[3 << 32 | 7, 3 << 32 | 9], ack=1, epoch=2), []),
    ("frame-near", "a frame with counters instead of ids, its structure known by its hash",
     Frame(seq=3, first=5, hash=structure_hash(ENCODED), external=[0, 200, 70000], scalars=[-1], releases=[1, 65536],
           near=True, ack=2), []),
    ("frame-scalars", "numbers of every kind: bool, small and large ints, floats, complex",
     Frame(seq=4, structure=RAW, scalars=[True, False, 0, 127, 128, -32, -33, 65535, 65536, -32769, 4294967295,
                                          4294967296, 0.5, 1e300, -0.0, [1.5, -2.5]]), []),
    ("frame-payload", "one tensor's data: the buffer begins at the next multiple of 64",
     Frame(seq=5, structure=RAW, payloads=[Payload(buffer=0)]), [bytes(range(16))]),
    ("frame-payloads", "two buffers, the first of a length that leaves a gap, and one payload that was uploaded before",
     Frame(seq=6, structure=RAW, payloads=[Payload(buffer=0), Payload(upload=9), Payload(buffer=1)]),
     [bytes(range(65)), b"\xff\x00\x7f"]),
    ("frame-empty-buffer", "a tensor without elements, between two with some",
     Frame(seq=7, structure=RAW, payloads=[Payload(buffer=0), Payload(buffer=1), Payload(buffer=2)]),
     [b"\x01", b"", b"\x02"]),
    ("frame-exact-buffer", "a buffer of exactly 64 bytes needs no padding before the next",
     Frame(seq=8, structure=RAW, payloads=[Payload(buffer=0), Payload(buffer=1)]), [bytes(64), b"\x05\x06"]),
    ("frame-loop", "a frame that is repeated, and results wanted of each iteration",
     Frame(seq=9, structure=RAW, repeat=3, stacked=[1, -1], scalars=[1.0, 2.0, 3.0], external=[4]), []),
    ("frame-named", "tensors by their names in the session, and names for results",
     Frame(seq=11, external=[7], named=["w", "größe"], structure=msgspec.Raw(envelope.encode_part(
         Structure([["mul", [-2, -3]]], keeps={"y": 0, "w": None})))), []),
    ("frame-lines", "where the program called the structure's records, in a session with a journal",
     Frame(seq=12, structure=RAW, lines=["train.py:12", ""]), []),
    ("frame-timed", "a frame that asks for its times", Frame(seq=10, structure=RAW, timed=True, detailed=True), []),
    ("reply-empty", "the answer to a frame that read nothing", Reply(seq=1), []),
    ("reply-values", "values in buffers, an undefined one, and one that came in chunks",
     Reply(seq=2, values=[Value("float32", [2], buffer=0), Value("int64", [], buffer=1), Value(),
                          Value("float64", [1000, 1000], download=4)], made=2, first=12884901889),
     [bytes.fromhex("0000803f00000040"), (2**53 + 1).to_bytes(8, "little")]),
    ("reply-nested", "values as nested lists, as JSON frames get them",
     Reply(seq=3, values=[Value("float32", [2, 2], values=[[1.0, "NaN"], ["Infinity", -0.5]])], made=1), []),
    ("reply-named", "a value that was read by its name",
     Reply(seq=3, values=[Value("int64", [1], values=["9007199254740993"], name="y")]), []),
    ("reply-errors", "a failed op, and a value that depends on it",
     Reply(seq=3, values=[Value(error=0)], errors=[PROBLEM], made=2), []),
    ("reply-refused", "a frame that was not applied",
     Reply(seq=9, refused=Problem("frame_out_of_order", "got frame 9 instead of frame 4", retryable=True,
                                  extra={"expected": 4})), []),
    ("reply-timing", "the times of a frame, its records and its backward nodes",
     Reply(seq=4, timing=Timing(received=10, started=20, finished=70, committed=80, ops=[20, 30, 31, 69],
                                memory=[64, -64], nodes=[(1, "MulBackward0", 4398046511104, 32, 60)])), []),
    ("chunk", "the first piece of an upload", Chunk(transfer=9, offset=0, total=5), [b"abc"]),
    ("chunk-last", "its last piece", Chunk(transfer=9, offset=3, total=5), [b"de"]),
    ("cancel", "frames to cancel", Cancel(first=4, last=9), []),
    ("cancel-one", "one frame to cancel, with a number beyond 32 bits", Cancel(first=2**33, last=2**33), []),
    ("hello-capabilities", "a client that follows redirects, and a capability that nobody knows",
     Hello(version=1, agent="conformance", instance="p1", capabilities=["redirect", "later"]), []),
    ("redirect", "the session is served elsewhere", Redirect("https://worker-3.example:8443", "eyJr.c2ln"), []),
)  # fmt: skip


def plain(message: Any) -> dict[str, Any]:
    """A message as vectors have it: what a MessagePack library makes of the header, with bytes as hexadecimal."""
    header: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(message))
    header.pop("buffers", None)
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in header.items()}


def joined(message: Any, buffers: list[bytes]) -> bytes:
    """The bytes of a message."""
    return envelope.join(envelope.encode(msgspec.structs.replace(message), buffers))


def vectors() -> Iterator[Vector]:
    """The group."""
    for name, text, message, buffers in MESSAGES:
        facts: Vector = {"id": f"envelope/{name}", "text": text, "message": plain(message)}
        if buffers:
            facts["buffers"] = [each.hex() for each in buffers]
        yield facts | {"bytes": joined(message, buffers).hex()}
    for name, text, data in broken():
        try:
            envelope.decode(data)
        except MalformedFrame as error:
            yield {"id": f"envelope/broken/{name}", "text": text, "bytes": data.hex(), "error": error.code}
        else:
            raise AssertionError(f"{name} is a message")


def _headed(header: bytes, rest: bytes = b"") -> bytes:
    return len(header).to_bytes(4, "little") + header + rest


def _of(**fields: Any) -> bytes:
    return _headed(msgspec.msgpack.encode(fields))


def broken() -> Iterator[tuple[str, str, bytes]]:
    """Bytes that are no message: name, text, bytes."""
    whole = joined(Frame(seq=1, structure=RAW), [])
    chunk = joined(Chunk(1, 0, 4), [b"abcd"])
    yield "no-bytes", "nothing at all", b""
    yield "no-length", "too few bytes for a header length", b"\x01\x00\x00"
    yield "truncated-header", "the header is shorter than its length says", whole[:-1]
    yield "endless-header", "a length of almost 4 GB", b"\xff\xff\xff\xff"
    yield "empty-header", "a header of no bytes", _headed(b"")
    yield "no-msgpack", "a byte that MessagePack does not use", _headed(b"\xc1")
    yield "truncated-msgpack", "a map whose value is missing", _headed(b"\x81\xa4type")
    yield "text-header", "a text instead of a map", _headed(msgspec.msgpack.encode("frame"))
    yield "list-header", "a list instead of a map", _headed(msgspec.msgpack.encode(["frame", 1]))
    yield "no-type", "a map without type", _of(seq=1)
    yield "unknown-type", "a type that no message has", _of(type="hug", seq=1)
    yield "wrong-kind", "a text where a number belongs", _of(type="frame", seq="one")
    yield "float-number", "a float where a number of a frame belongs", _of(type="frame", seq=1.5)
    yield "missing-field", "a chunk without its total", _of(type="chunk", transfer=1, offset=0)
    yield "negative-count", "a negative acknowledgement", _of(type="frame", seq=1, ack=-1)
    yield "bad-utf8", "a text that is not UTF-8", _headed(b"\x81\xa4type\xa5fr\xffme")
    yield "map-key", "a map with a number as key", _headed(b"\x81\x01\xa5frame")
    yield "surplus", "bytes after the header", whole + b"\x00"
    yield "surplus-after-buffer", "bytes after the last buffer", chunk + b"\x00"
    yield "truncated-buffer", "a buffer that ends early", chunk[:-1]
    yield (
        "absent-buffer",
        "a buffer that is announced and not there",
        _of(type="chunk", transfer=1, offset=0, total=4, buffers=[4]),
    )
    yield (
        "huge-buffer",
        "a buffer longer than any message",
        _of(type="chunk", transfer=1, offset=0, total=4, buffers=[2**62]),
    )
    yield (
        "negative-buffer",
        "a buffer of negative length",
        _of(type="chunk", transfer=1, offset=0, total=4, buffers=[-4]),
    )
