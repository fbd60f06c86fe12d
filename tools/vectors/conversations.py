"""Scripts of messages on streams."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from gradwire.cli.conformance.scripts import packed
from gradwire.cli.conformance.vectors import Vector
from gradwire_protocol.frames import structure_hash

from .steps import (
    ANYTHING,
    NOTHING,
    PATH,
    STREAM,
    Step,
    close,
    closed,
    connect,
    encoded,
    ended,
    hello,
    not_applied,
    numbered,
    receive,
    refused,
    reply,
    request,
    script,
    send,
    send_bytes,
    send_text,
    structure,
    value,
)

CLIENT: Final = "${client_a}"
ADD: Final[list[Any]] = [["add_", [-1, "int"]]]
CHUNK: Final[list[Any]] = [["upload", ["payload", "float32", [3]]], ["neg", [0]]]
PAGE: Final = {"Origin": "${origin}"}


def floats(*values: float) -> bytes:
    """float32 numbers as bytes."""
    return struct.pack(f"<{len(values)}f", *values)


def vectors() -> Iterator[Vector]:
    """The group."""
    for make in (
        _handshake,
        _frames,
        _structures,
        _chunks,
        _resuming,
        _takeover,
        _cancelling,
        _ends,
        _people,
        _tickets,
    ):
        for vector in make():
            yield vector | {"id": f"stream/{vector['id']}"}


def exchange(
    sent: dict[str, Any], expected: dict[str, Any], stream: str = "a", buffers: list[bytes] | None = None
) -> list[Step]:
    """A message and its answer."""
    return [send(sent, stream, buffers), receive(expected, stream)]


def made(stream: str = "a") -> list[Step]:
    """Frame 1: a zero under the client's first id."""
    return exchange(numbered(1, [["zeros", [[1]]]], first=1, near=True), reply(1, made=1), stream)


def added(seq: int, total: float, stream: str = "a", **fields: Any) -> list[Step]:
    """A frame that adds 1 to it, and reads it."""
    sent = numbered(seq, ADD, [-1], external=[1], scalars=[1], near=True, **fields)
    return exchange(sent, reply(seq, values=[value("float32", [total])]), stream)


def _handshake() -> Iterator[Vector]:
    welcome = {
        "expected": 1, "client": {"$above": 1}, "epoch": {"$above": 0}, "session": "${session}",
        "clock": ANYTHING, "devices": ANYTHING, "capabilities": ["chunks", "json", "structures", "resume", "cancel"],
        "limits": {"max_message_bytes": {"$above": 0}, "chunk_bytes": {"$above": 0},
            "max_ops_per_frame": {"$above": 0}},
    }  # fmt: skip
    yield script(
        "handshake/welcome", "a new client is welcomed", hello(expect=welcome, agent="conformance", instance="p1")
    )
    yield script(
        "handshake/two-clients", "two streams of a session are two clients",
        hello("a"), hello("b", {"client": {"$above": CLIENT}}), made("a"), made("b"), added(2, 1.0, "a"),
            added(2, 1.0, "b"),
    )  # fmt: skip
    yield script(
        "handshake/version", "another protocol version",
        connect(), send({"type": "hello", "version": 8}),
        ended("version_mismatch", 4426, extra={"client": 8, "server": 1}),
    )  # fmt: skip
    yield script("handshake/no-hello", "the first message is no hello",
                 connect(), send(numbered(1, [])), ended("malformed_frame", 4400))  # fmt: skip
    yield script(
        "handshake/twice",
        "a second hello",
        hello(),
        send({"type": "hello", "version": 1}),
        ended("malformed_frame", 4400),
    )
    yield script("handshake/client", "a client that never was cannot resume",
                 connect(), send({"type": "hello", "version": 1, "client": 77}),
                     ended("malformed_frame", 4400))  # fmt: skip
    yield script(
        "handshake/capabilities", "capabilities that the server does not know are ignored",
        hello(expect={"expected": 1}, capabilities=["later", "redirected"]), made(),
    )  # fmt: skip
    yield script(
        "handshake/redirect", "a redirect, which only servers send, is no hello",
        connect(), send({"type": "redirect", "url": "https://worker-3.example:8443", "ticket": "eyJr.c2ln"}),
        ended("malformed_frame", 4400),
    )  # fmt: skip
    yield script("handshake/no-key", "no key", connect(status=401, code="unauthorized", key="none"))
    yield script("handshake/no-session", "a session that never was",
                 connect(status=404, code="not_found", path="/v1/sessions/s_nobody/stream"), session=None)  # fmt: skip
    yield script("handshake/stranger", "another tenant's session",
                 connect(status=404, code="not_found", key="other"), needs=["other_key"])  # fmt: skip


def _frames() -> Iterator[Vector]:
    yield script(
        "frames/buffers", "values travel as buffers, both ways",
        hello(), exchange(
            numbered(1, [["upload", ["payload", "float32", [2]]], ["upload", ["payload", "bool", [3]]],
                ["neg", [0]], ["logical_not", [1]]], [2, 3],
                     payloads=[{"buffer": 0}, {"buffer": 1}], first=1, near=True),
            reply(1, values=[value("float32", [-1.0, 2.5]), value("bool", [False, True, False])], made=4),
            buffers=[floats(1.0, -2.5), b"\x01\x00\x01"]),
    )  # fmt: skip
    yield script(
        "frames/special", "NaN, infinities, int64 beyond 2**53, half types and complex numbers in buffers",
        hello(), exchange(
            numbered(1, [["upload", ["payload", dtype, [2]]] for dtype in ("float32", "int64", "float16",
                "bfloat16", "complex64")],
                     [0, 1, 2, 3, 4], payloads=[{"buffer": i} for i in range(5)], first=1, near=True),
            reply(1, values=[
                value("float32", ["NaN", "-Infinity"]), value("int64", ["9007199254740993", "-9223372036854775808"]),
                value("float16", [0.5, "Infinity"]), value("bfloat16", [1.0, "NaN"]),
                value("complex64", [[1.0, -2.0], ["Infinity", 0.0]], [2])]),
            buffers=[bytes.fromhex("0000c07f000080ff"), struct.pack("<2q", 2**53 + 1, -(2**63)),
                bytes.fromhex("0038007c"),
                     bytes.fromhex("803fc07f"), floats(1.0, -2.0, float("inf"), 0.0)]),
    )  # fmt: skip
    yield script(
        "frames/storage", "dtypes for storage in buffers; a cast to float8_e4m3fn saturates",
        hello(), exchange(
            numbered(1, [*(["upload", ["payload", dtype, [2]]] for dtype in ("uint16", "uint32", "uint64",
                "float8_e5m2", "float32")), ["to", [4, "float8_e4m3fn"]], ["view_dtype", [3, "uint16"]]],
                     [0, 1, 2, 3, 5, 6], payloads=[{"buffer": i} for i in range(5)], first=1, near=True),
            reply(1, values=[
                value("uint16", [1, 65535]), value("uint32", [0, 4294967295]),
                value("uint64", [7, "18446744073709551615"]), value("float8_e5m2", [1.5, "-Infinity"]),
                value("float8_e4m3fn", [0.1015625, 448.0]), value("uint16", [64574])]),
            buffers=[struct.pack("<2H", 1, 65535), struct.pack("<2I", 0, 4294967295),
                struct.pack("<2Q", 7, 2**64 - 1),
                     bytes.fromhex("3efc"), floats(0.1, 1000.0)]),
    )  # fmt: skip
    order = [send(numbered(seq, ADD, [-1], external=[1], scalars=[1], near=True)) for seq in (2, 3, 4)]
    yield script(
        "frames/pipelined", "frames are answered in order, without waiting for each other",
        hello(), made(), order, [receive(reply(seq, values=[value("float32", [seq - 1.0])])) for seq in (2, 3, 4)],
    )  # fmt: skip
    yield script("frames/again", "a frame that is sent twice is applied once, and answered twice",
                 hello(), made(), added(2, 1.0), added(2, 1.0), added(3, 2.0))  # fmt: skip
    yield script(
        "frames/gap", "a gap is refused with the expected number; the stream goes on",
        hello(), exchange(numbered(5, [["ones", [[1]]]]), not_applied(5, "frame_out_of_order", retryable=True,
            extra={"expected": 1})), made(),
    )  # fmt: skip
    yield script(
        "frames/forgotten", "the reply of an acknowledged frame is not kept",
        hello(), made(), added(2, 1.0, ack=1), exchange(numbered(1, []),
            not_applied(1, "reply_forgotten", extra={"expected": 3})), added(3, 2.0),
    )  # fmt: skip
    yield script(
        "frames/failure", "a failed op, what depends on it in the next frame, and what does not",
        hello(), exchange(
            numbered(1, [["ones", [[2]]], ["ones", [[3]]], ["add", [0, 1]]], [2, 0], first=1, near=True),
            {"type": "reply", "seq": 1, "refused": NOTHING, "values": [{"error": 0}, value("float32", [1.0, 1.0])],
             "errors": [{"code": "shape_mismatch", "op": "add", "seq": 1, "index": 2, "detail": ANYTHING}]}),
        exchange(
            numbered(2, [["exp", [-1]], ["neg", [-2]]], [0, 1], external=[3, 1], first=4, near=True),
            {"type": "reply", "seq": 2, "values": [{"error": 0}, value("float32", [-1.0, -1.0])],
             "errors": [{"code": "shape_mismatch", "op": "add", "seq": 1, "index": 2}]}),
    )  # fmt: skip
    yield script(
        "frames/poisoned-memory", "memory that an in-place op failed to change is poisoned until the next read",
        hello(), made(),
        exchange(numbered(2, [["ones", [[2, 3]]], ["add_", [-1, 0]]], external=[1], first=2, near=True),
                 {"type": "reply", "seq": 2, "errors": [{"code": "shape_mismatch", "op": "add_"}]}),
        exchange(numbered(3, [], [-1], external=[1], near=True),
            {"type": "reply", "seq": 3, "values": [{"error": 0}], "errors": [{"op": "add_", "seq": 2}]}),
        exchange(numbered(4, [], [-1], external=[1], near=True), reply(4, values=[value("float32", [0.0])])),
    )  # fmt: skip
    yield script(
        "frames/skipped-step", "an optimizer step after a failed backward is skipped until the next read",
        hello(),
        exchange(numbered(1, [["ones", [[1]]], ["requires_grad_", [0]], ["set_grad", [0, 0]], ["zeros", [[]]],
            ["backward", [[1], [None]]]], first=1, near=True),
                 {"type": "reply", "seq": 1, "errors": [{"code": "graph_error", "op": "backward"}]}),
        *[exchange(numbered(seq, [["sgd_step", [[-1], [None], "float"]]], [-1], external=[1], scalars=[0.5], near=True),
                   reply(seq, values=[value("float32", [found])])) for seq, found in ((2, 1.0), (3, 0.5))],
    )  # fmt: skip
    yield script(
        "frames/heard", "a client that waits but reads nothing",
        hello(), exchange(numbered(1, []) | {"structure": {"ops": [["ones", [[1]]]], "heard": True}}, reply(1, made=1)),
    )  # fmt: skip
    yield script(
        "frames/releases", "dropped and released tensors do not exist any more",
        hello(), exchange(numbered(1, [], first=1, near=True) | {"structure": {"ops": [["ones", [[1]]],
            ["neg", [0]]], "drops": [1]}}, reply(1, made=2)),
        exchange(numbered(2, [], [-1], external=[1], releases=[1], near=True),
            reply(2, values=[value("float32", [1.0])])),
        exchange(numbered(3, [], [-1, -2], external=[1, 2], near=True),
                 {"type": "reply", "seq": 3, "values": [{"error": 0}, {"error": 1}],
                     "errors": [{"code": "unknown_tensor"}] * 2}),
    )  # fmt: skip
    named = {"type": "frame", "near": True, "named": ["w"]}
    yield script(
        "frames/named", "a result gets a name instead of an id; frames refer to it until the name is removed",
        hello(),
        exchange({"type": "frame", "seq": 1, "structure": {"ops": [["ones", [[1]]]], "keeps": {"w": 0}}}, reply(1)),
        exchange(named | {"seq": 2, "external": [], "structure": structure([["add_", [-1, "int"]]], [-1]),
            "scalars": [4]},
                 reply(2, values=[value("float32", [5.0])])),
        exchange(named | {"seq": 3, "structure": structure([], [-1], keeps={"w": None})},
                 reply(3, values=[value("float32", [5.0])])),
        exchange(named | {"seq": 4, "structure": structure([], [-1])}, not_applied(4, "unknown_tensor")),
        exchange(numbered(4, []), reply(4)),
    )  # fmt: skip
    yield script(
        "frames/undefined", "a gradient that is not there is a value without dtype",
        hello(), exchange(numbered(1, [["ones", [[1]]], ["requires_grad_", [0]], ["grad_of", [0]]], [1], first=1,
            near=True),
                          reply(1, values=[{"dtype": NOTHING, "buffer": NOTHING, "error": NOTHING}])),
    )  # fmt: skip
    yield script(
        "frames/repeat", "a loop in one frame, with stacked values",
        hello(), made(),
        exchange(numbered(2, [["add_", [-1, "int"]], ["mul", [-1, "int"]]], external=[1], scalars=[1, 10, 2, 10, 3, 10],
                          repeat=3, stacked=[0, -1], first=2, near=True), reply(2, made=3)),
        exchange(numbered(3, [], [-1, -2, -3], external=[2, 3, 4], near=True), reply(3, values=[
            value("float32", [60.0]), value("float32", [[10.0], [30.0], [60.0]]),
                value("float32", [[1.0], [3.0], [6.0]])])),
    )  # fmt: skip
    yield script(
        "frames/timed", "times of a frame, its records and its memory",
        hello(), exchange(numbered(1, [["ones", [[2]]], ["neg", [0]]], timed=True, detailed=True, first=1, near=True),
                          reply(1, timing={"received": {"$above": 0}, "started": {"$above": 0},
                              "finished": {"$above": 0},
                                           "ops": [{"$above": 0}] * 4, "memory": [8, 8]})),
    )  # fmt: skip
    yield script(
        "frames/callbacks",
            "a derivative of the client's own, in frames of their own: the client computes between two pauses",
        hello(),
        exchange(numbered(1, [["upload", ["payload", "float32", [2]]], ["requires_grad_", [0]], ["set_mode", [0]],
            ["mul", [0, 0]], ["set_mode", [1]],
                              ["attach_function", ["Square", [0], [1], [0]]], ["sum", [1]],
                                  ["begin_backward", [[3], [None], None, [2], [1]]],
                              ["advance", [4, 0, [], 1], 1]], [5], payloads=[{"buffer": 0}], first=1, near=True),
                 reply(1, values=[value("float32", [1.0, 1.0])], made=6), buffers=[floats(1.0, 2.0)]),
        exchange(numbered(2, [["upload", ["payload", "float32", [2]]], ["finish_backward", [-1, 1, [0]], 0],
            ["grad_of", [-2]]], [1],
                          external=[5, 1], payloads=[{"buffer": 0}], first=7, near=True),
                 reply(2, values=[value("float32", [2.0, 4.0])]), buffers=[floats(2.0, 4.0)]),
    )  # fmt: skip


def _structures() -> Iterator[Vector]:
    whole = structure([["full", [[2], "float"]]], [0])
    digest = structure_hash(encoded(whole)).hex()
    short = {"type": "frame", "hash": digest}
    full = short | {"structure": whole}
    yield script(
        "structures/hash", "a structure travels once; an unknown hash is refused, and the frame is sent whole",
        hello(),
        exchange(short | {"seq": 1, "scalars": [1.0], "first": 1, "near": True},
            not_applied(1, "unknown_structure", retryable=True)),
        exchange(full | {"seq": 1, "scalars": [1.0], "first": 1, "near": True},
            reply(1, values=[value("float32", [1.0, 1.0])])),
        exchange(short | {"seq": 2, "scalars": [2.0], "first": 2, "near": True},
            reply(2, values=[value("float32", [2.0, 2.0])])),
    )  # fmt: skip
    yield script(
        "structures/plans", "the same structure many times, with other numbers: the answers stay the same",
        hello(), exchange(full | {"seq": 1, "scalars": [1.0], "first": 1, "near": True}, reply(1)),
        [step for seq in range(2, 10) for step in exchange(
            short | {"seq": seq, "scalars": [seq / 2], "first": seq, "near": True, "ack": seq - 1},
            reply(seq, values=[value("float32", [seq / 2, seq / 2])]))],
    )  # fmt: skip
    yield script(
        "structures/wrong-hash", "a hash of other bytes refuses the frame",
        hello(), exchange(short | {"seq": 1, "structure": structure([["ones", [[2]]]])},
            not_applied(1, "malformed_frame")), made(),
    )  # fmt: skip
    yield script(
        "structures/neither", "a frame with neither a structure nor a hash",
        hello(), exchange({"type": "frame", "seq": 1}, not_applied(1, "malformed_frame")), made(),
    )  # fmt: skip
    yield script(
        "structures/shared", "a structure that one client has sent is known to all of the session",
        hello("a"), exchange(full | {"seq": 1, "scalars": [1.0], "first": 1, "near": True}, reply(1)),
        hello("b"), exchange(short | {"seq": 1, "scalars": [3.0], "first": 1, "near": True},
            reply(1, values=[value("float32", [3.0, 3.0])]), "b"),
    )  # fmt: skip


def chunks(data: bytes, size: int, transfer: int = 5) -> list[Step]:
    """An upload in chunks."""
    return [send({"type": "chunk", "transfer": transfer, "offset": at, "total": len(data)},
        buffers=[data[at : at + size]])
            for at in range(0, len(data), size)]  # fmt: skip


def _chunks() -> Iterator[Vector]:
    used = numbered(1, CHUNK, [1], payloads=[{"upload": 5}], first=1, near=True)
    negated = reply(1, values=[value("float32", [-1.0, -2.0, -3.0])])
    data = floats(1.0, 2.0, 3.0)
    yield script("chunks/upload", "a payload in pieces before its frame; small ones are allowed, too",
                 hello(), chunks(data, 5), exchange(used, negated))  # fmt: skip
    yield script(
        "chunks/again", "pieces may be repeated", hello(), chunks(data, 8), chunks(data, 4), exchange(used, negated)
    )
    yield script(
        "chunks/resent", "after a cut, the frame and its chunks are sent again: it is answered from the kept replies",
        hello(instance="p"), chunks(data, 8), exchange(used, negated), close(),
        hello("b", {"expected": 2}, client=CLIENT, instance="p", epoch="${epoch_a}"),
        [step | {"stream": "b"} for step in chunks(data, 8)], exchange(used, negated, "b"), made_later("b"),
    )  # fmt: skip
    yield script("chunks/two", "two uploads, their pieces mixed",
                 hello(), [step for pair in zip(chunks(data, 6, 5), chunks(data, 6, 6), strict=True) for step in pair],
                 exchange(numbered(1, [CHUNK[0], CHUNK[0], ["add", [0, 1]]], [2],
                     payloads=[{"upload": 6}, {"upload": 5}], first=1, near=True),
                          reply(1, values=[value("float32", [2.0, 4.0, 6.0])])))  # fmt: skip
    yield script("chunks/gap", "a piece that leaves a gap ends the stream",
                 hello(), send({"type": "chunk", "transfer": 5, "offset": 4, "total": 12}, buffers=[bytes(4)]),
                     ended("malformed_frame", 4400))  # fmt: skip
    yield script("chunks/no-buffer", "a piece without a buffer ends the stream",
                 hello(), send({"type": "chunk", "transfer": 5, "offset": 0, "total": 12}),
                     ended("malformed_frame", 4400))  # fmt: skip
    yield script(
        "chunks/incomplete", "an upload that is not complete fails the op that uses it",
        hello(), chunks(data, 4)[:2],
        exchange(used, {"type": "reply", "seq": 1, "errors": [{"code": "malformed_frame", "op": "upload",
            "index": 0}], "values": [{"error": 0}]}),
    )  # fmt: skip
    yield script(
        "chunks/limit", "an upload over a limit fails the frame that uses it, not the stream",
        hello(), chunks(data, 4),
        exchange(used, {"type": "reply", "seq": 1, "errors": [{"code": "limit_exceeded",
            "extra": {"setting": "GRADWIRE_MAX_TENSOR_BYTES"}}]}),
        made_later(), session={"limits": {"max_tensor_bytes": 8}},
    )  # fmt: skip
    yield script(
        "chunks/download", "a large value comes in chunks before its reply",
        hello(), send(numbered(1, [["ones", [[70000]]], ["sum", [0]]], [0, 1], first=1, near=True)),
        receive({"type": "chunk", "total": 280000, "offset": 0, "transfer": ANYTHING}),
        receive({"type": "reply", "seq": 1, "values": [{"dtype": "float32", "shape": [70000]},
            value("float32", 70000.0)]}),
    )  # fmt: skip


def made_later(stream: str = "a") -> list[Step]:
    """Frame 2: nothing."""
    return exchange(numbered(2, []), reply(2), stream)


def _resuming() -> Iterator[Vector]:
    resume = {"client": CLIENT, "instance": "p", "epoch": "${epoch_a}"}
    yield script(
        "resume/again", "a client resumes: a higher epoch, the expected number, kept replies, nothing twice",
        hello(instance="p"), made(), added(2, 1.0), close(),
        hello("b", {"client": CLIENT, "expected": 3, "epoch": {"$above": "${epoch_a}"}}, acked=1, **resume),
        added(2, 1.0, "b"), added(3, 2.0, "b"),
    )  # fmt: skip
    yield script(
        "resume/old-stream", "the stream that a client leaves behind is closed",
        hello(instance="p"), made(), hello("b", {"expected": 2}, **resume), closed(4409, "a"), added(2, 1.0, "b"),
    )  # fmt: skip
    yield script(
        "resume/old-epoch", "a frame of an earlier epoch is refused",
        hello(instance="p"), made(), close(), hello("b", **resume),
        exchange(numbered(2, [], epoch="${epoch_a}"), not_applied(2, "superseded", extra={"epoch": "${epoch_b}"}), "b"),
        exchange(numbered(2, [], epoch="${epoch_b}"), reply(2), "b"),
    )  # fmt: skip
    yield script(
        "resume/after-malformed", "a stream that ended with 4400 leaves the session as it was",
        hello(instance="p"), made(), send_bytes(b"\x01\x00\x00\x00\xc1"), ended("malformed_frame", 4400),
        hello("b", {"expected": 2}, **resume), added(2, 1.0, "b"),
    )  # fmt: skip


def _takeover() -> Iterator[Vector]:
    yield script(
        "takeover/fenced", "another program takes a client's place: the first is closed, and cannot come back",
        hello(instance="old"), made(),
        hello("b", {"expected": 2, "epoch": {"$above": "${epoch_a}"}}, client=CLIENT, instance="new"),
            closed(4409, "a"),
        connect("c"), send({"type": "hello", "version": 1, "client": CLIENT, "instance": "old",
            "epoch": "${epoch_a}"}, "c"),
        ended("superseded", 4409, "c"), added(2, 1.0, "b"),
    )  # fmt: skip
    yield script(
        "takeover/first", "after a takeover the session chooses ids that are free",
        hello(instance="old"), made(), close(), hello("b", client=CLIENT, instance="new"),
        send(numbered(2, [["ones", [[1]]]], [0]), "b"), receive(reply(2, first={"$above": 0},
            values=[value("float32", [1.0])]), "b", {"id": "/first"}),
        exchange(numbered(3, [], [-1], external=["${id}"]), reply(3, values=[value("float32", [1.0])]), "b"),
            added(4, 1.0, "b"),
    )  # fmt: skip


def _cancelling() -> Iterator[Vector]:
    resume = {"client": CLIENT, "instance": "p", "epoch": "${epoch_a}"}
    cancelled = {
        "type": "reply",
        "seq": 2,
        "refused": NOTHING,
        "errors": [{"code": "cancelled"}],
        "values": [{"error": 0}],
    }
    sent = numbered(2, ADD, [-1], external=[1], scalars=[1], near=True)
    yield script(
        "cancel/resent", "frames that a resuming client has cancelled: answered, poisoned, and without effect",
        hello(instance="p"), made(), close(), hello("b", cancelled=2, **resume),
        exchange(numbered(2, [*ADD, ["neg", [-1]]], [0], external=[1], scalars=[1], first=2, near=True), cancelled,
            "b"),
        exchange(numbered(3, [], [-1, -2], external=[1, 2], near=True),
                 {"type": "reply", "seq": 3, "values": [value("float32", [0.0]), {"error": 0}],
                     "errors": [{"code": "cancelled", "seq": 2}]}, "b"),
        added(4, 1.0, "b"),
    )  # fmt: skip
    yield script(
        "cancel/finished", "a frame that has finished is answered as usual; frames after the message are not cancelled",
        hello(), made(), added(2, 1.0), send({"type": "cancel", "first": 1, "last": 9}), added(3, 2.0), added(2, 1.0),
    )  # fmt: skip
    yield script(
        "cancel/again", "a cancelled frame that is sent again is answered the same",
        hello(instance="p"), made(), close(), hello("b", cancelled=2, **resume), exchange(sent, cancelled, "b"),
            exchange(sent, cancelled, "b"),
    )  # fmt: skip


def _ends() -> Iterator[Vector]:
    broken: tuple[tuple[str, str, bytes], ...] = (
        ("reply", "a message that only a server sends", packed({"type": "reply", "seq": 1}, [])),
        ("welcome", "a welcome", packed({"type": "welcome", "version": 1, "client": 2, "expected": 1}, [])),
        (
            "number",
            "a frame whose number is a text",
            packed({"type": "frame", "seq": "one", "structure": {"ops": []}}, []),
        ),
        ("empty", "a message of no bytes", b""),
    )
    for name, text, data in broken:
        yield script(
            f"ends/{name}", f"{text} ends the stream", hello(), send_bytes(data), ended("malformed_frame", 4400)
        )
    yield script(
        "ends/answers-first", "frames before a broken message are answered first",
        hello(), send(numbered(1, [["ones", [[1]]]], [0], first=1, near=True)), send_bytes(b"\x00"),
        receive(reply(1, values=[value("float32", [1.0])])), ended("malformed_frame", 4400),
    )  # fmt: skip
    yield script(
        "ends/deleted", "a session that is deleted ends its streams",
        hello(), request("DELETE", PATH, 204), receive({"type": "refusal", "problem": {"code": "session_gone"}}),
            closed(4404),
        connect("b", 404, "session_gone"),
    )  # fmt: skip
    yield script(
        "ends/structure", "a structure that is no structure refuses its frame; the stream goes on",
        hello(), exchange({"type": "frame", "seq": 1, "structure": {"ops": 7}}, not_applied(1, "malformed_frame")),
            made(),
    )  # fmt: skip
    own = {"Authorization": "Bearer ${key}"}
    yield script(
        "ends/key", "a revoked key ends its streams",
        request("POST", "/v1/keys", 201, {"name": "conformance"}, {}, key="admin",
            capture={"key": "/key", "key_id": "/id"}),
        request("POST", "/v1/sessions", 201, {}, {}, key="none", headers=own, capture={"own": "/id"}),
        connect(path="/v1/sessions/${own}/stream", key="none", headers=own), send({"type": "hello", "version": 1}),
            receive({"type": "welcome"}),
        request("DELETE", "/v1/sessions/${own}", 204, key="none", headers=own) | {"do": "request"},
        receive({"type": "refusal", "problem": {"code": "session_gone"}}), closed(4404),
        request("POST", "/v1/sessions", 201, {}, {}, key="none", headers=own, capture={"next": "/id"}),
        connect("b", path="/v1/sessions/${next}/stream", key="none", headers=own),
            send({"type": "hello", "version": 1}, "b"), receive({"type": "welcome"}, "b"),
        request("DELETE", "/v1/keys/${key_id}", 204, key="admin"),
        receive({"type": "refusal", "problem": {"code": "unauthorized"}}, "b"), closed(4401, "b"), session=None,
            needs=["admin_key"],
    )  # fmt: skip


def _people() -> Iterator[Vector]:
    yield script(
        "people/json", "text messages are JSON, answered in JSON",
        connect(), send_text({"type": "hello", "version": 1}), receive({"type": "welcome", "client": ANYTHING}),
        send_text({"type": "frame", "seq": 1, "structure": {"ops": [["full", [[2], "float"]]], "reads": [0]},
            "scalars": ["NaN"]}),
        receive(reply(1, values=[value("float32", ["NaN", "NaN"])])),
    )  # fmt: skip
    yield script("people/not-json", "a text that is not JSON",
                 connect(), send_text({"type": "hello", "version": 1}), receive({"type": "welcome"}),
                     send_text("hello?"), ended("malformed_frame", 4400))  # fmt: skip


def _tickets() -> Iterator[Vector]:
    issue = request("POST", "/v1/tickets", 201, {"session": "${session}"}, {}, capture={"ticket": "/ticket"})
    by_ticket = f"{STREAM}?ticket=${{ticket}}"
    plain: dict[str, Any] = {"key": "none", "path": by_ticket}
    page = plain | {"headers": PAGE}
    elsewhere = {"Origin": "https://elsewhere.invalid"}
    yield script(
        "tickets/once", "a ticket opens one stream; a program that is no browser sends no Origin",
        issue, connect(**plain), send({"type": "hello", "version": 1}), receive({"type": "welcome"}),
            connect("b", 401, "unauthorized", **plain),
    )  # fmt: skip
    yield script(
        "tickets/page", "a ticket opens a stream for a page of an allowed origin",
        issue, connect(**page), send({"type": "hello", "version": 1}), receive({"type": "welcome"}), needs=["origin"],
    )  # fmt: skip
    yield script(
        "tickets/origin", "a page of another origin is refused, and has used the ticket up",
        issue, connect("a", 403, "forbidden", **(plain | {"headers": elsewhere})),
            connect("b", 401, "unauthorized", **plain),
    )  # fmt: skip
    yield script(
        "tickets/other-session", "a ticket is for its session",
        request("POST", "/v1/sessions", 201, {}, {}, capture={"own": "/id"}), issue,
        connect("a", 401, "unauthorized", key="none", path="/v1/sessions/${own}/stream?ticket=${ticket}"),
        request("DELETE", "/v1/sessions/${own}", 204),
    )  # fmt: skip
    yield script(
        "tickets/none",
        "a ticket that is none",
        connect("a", 401, "unauthorized", key="none", path=f"{STREAM}?ticket=nobody"),
    )
    yield script("tickets/route", "a ticket opens no other route",
                 issue, refused("GET", f"{PATH}?ticket=${{ticket}}", 401, "unauthorized", key="none"))  # fmt: skip
    yield script(
        "tickets/key-origin",
        "a page of another site that has a key is refused",
        connect("a", 403, "forbidden", headers=elsewhere),
    )
