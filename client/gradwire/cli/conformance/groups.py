"""What each group of vectors sends to the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from gradwire_protocol.frames import PROTOCOL_VERSION

from .scripts import Mismatch, Script, Target, packed
from .values import to_bytes, to_values
from .vectors import Vector

OFFLINE: Final = ("records", "errors")
"""Groups without an online half: a server neither encodes records nor rebuilds errors."""

STREAM: Final = "/v1/sessions/${session}/stream"
HELLO: Final = {"type": "hello", "version": PROTOCOL_VERSION}


class Outcome(NamedTuple):
    """What became of a vector.

    Attributes:
        verdict: ``passed``, ``failed``, ``skipped`` (the target lacks something) or ``offline``.
        lines: why it failed or was skipped.
    """

    vector: Vector
    verdict: str
    lines: tuple[str, ...] = ()
    seconds: float = 0.0


class SharedSession:
    """The session that the vectors of a group share, and a stream of it. They do not depend on each other."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._session = ""
        self._script: Script | None = None
        self._seq = 0

    @property
    def session(self) -> str:
        if not self._session:
            self._session = self.target.new_session({})
        return self._session

    def request(self, body: dict[str, Any], expect: dict[str, Any]) -> None:
        """Post a frame: ``json``, or ``hex`` with its ``headers``."""
        path = f"/v1/sessions/{self.session}/frames"
        step = {"do": "request", "method": "POST", "path": path, "expect": expect} | body
        Script(self.target, {}).step(step, "the frame over REST")

    def exchange(self, message: dict[str, Any], buffers: list[bytes], expected: dict[str, Any]) -> None:
        """Apply a frame on the stream, as bytes."""
        if self._script is None:
            self._script, self._seq = Script(self.target, {"session": self.session}), 0
            self._take({"do": "connect", "path": STREAM, "expect": {"status": 101}})
            self._take({"do": "send", "message": HELLO})
            self._take({"do": "receive", "message": {"type": "welcome"}})
        self._seq += 1
        numbered = {"type": "frame", "seq": self._seq, "first": self._seq << 10, "near": True, "ack": self._seq - 1}
        self._take({"do": "send", "message": numbered | message, "buffers": [each.hex() for each in buffers]})
        self._take({"do": "receive", "message": {"type": "reply", "seq": self._seq} | expected})

    def _take(self, step: dict[str, Any]) -> None:
        assert self._script is not None
        self._script.step(step | {"stream": "shared"}, f"the frame on a stream, {step['do']}")

    def close(self) -> None:
        """End the session; the next vector starts another."""
        if self._script is not None:
            self._script.close()
        if self._session:
            self.target.end_session(self._session)
        self._script, self._session = None, ""


def run_group(target: Target, group: str, vectors: list[Vector]) -> Iterator[Outcome]:
    """Run the vectors of a group one by one."""
    run = RUNNERS.get(group.split("/")[0], run_script)
    shared = SharedSession(target)
    try:
        for vector in vectors:
            missing = target.missing(vector.get("needs", []))
            if _is_offline(group, vector):
                yield Outcome(vector, "offline")
            elif missing:
                yield Outcome(vector, "skipped", tuple(f"needs {need}" for need in missing))
            else:
                yield _timed(run, shared, vector)
    finally:
        shared.close()


def _is_offline(group: str, vector: Vector) -> bool:
    """Whether there is nothing to ask a server: bytes that are messages, and digests of any bytes, are for clients."""
    return (
        group in OFFLINE
        or (group == "envelope" and "error" not in vector)
        or (group == "structure_hash" and "structure" not in vector)
    )


def _timed(run: Callable[[SharedSession, Vector], None], shared: SharedSession, vector: Vector) -> Outcome:
    began = time.monotonic()
    try:
        run(shared, vector)
    except Mismatch as mismatch:
        shared.close()
        return Outcome(vector, "failed", (f"{mismatch.step}:", *mismatch.lines), time.monotonic() - began)
    return Outcome(vector, "passed", (), time.monotonic() - began)


def run_script(shared: SharedSession, vector: Vector) -> None:
    """A script, in a session of its own unless ``session`` is null."""
    target, variables = shared.target, {"origin": shared.target.origin}
    wanted, session = vector.get("session", {}), ""
    if wanted is not None:
        session = variables["session"] = target.new_session(wanted)
    try:
        Script(target, variables).run(vector["steps"])
    finally:
        if session:
            target.end_session(session)


def run_envelope(shared: SharedSession, vector: Vector) -> None:
    """Bytes that are no message end a stream with 4400."""
    steps = [
        {"do": "connect", "path": STREAM, "expect": {"status": 101}},
        {"do": "send", "message": HELLO},
        {"do": "receive", "message": {"type": "welcome"}},
        {"do": "send", "hex": vector["bytes"]},
        {"do": "receive", "message": {"type": "refusal", "problem": {"code": vector["error"]}}},
        {"do": "closed", "code": 4400},
    ]  # fmt: skip
    Script(shared.target, {"session": shared.session}).run([step | {"stream": "own"} for step in steps])


def run_values(shared: SharedSession, vector: Vector) -> None:
    """Upload in one form, read in the other."""
    dtype, shape = vector["dtype"], vector["shape"]
    upload = {"ops": [["upload", ["payload", dtype, shape]]], "reads": [0]}
    value = {"dtype": dtype, "shape": shape}
    values = {"json": {"structure": upload, "payloads": [{"values": vector.get("values")}]}}
    if "error" in vector:
        shared.request(values, {"status": 200, "json": {"errors": [{"code": vector["error"]}]}})
        return
    data = bytes.fromhex(vector["bytes"])
    if vector.get("direction") != "decode":
        shared.request(values, {"status": 200, "json": {"errors": [], "values": [_exactly(vector, data)]}})
    if vector.get("direction") != "encode":
        message = {"structure": upload, "payloads": [{"buffer": 0}]}
        shared.exchange(message, [data], {"errors": [], "values": [value | {"values": vector["values"]}]})


def _exactly(vector: Vector, data: bytes) -> dict[str, Any]:
    """What reading the bytes gives: for an encoding half, other numbers than were written."""
    dtype, shape = vector["dtype"], vector["shape"]
    return {"dtype": dtype, "shape": shape, "values": to_values(data, dtype, shape)}


def run_structure(shared: SharedSession, vector: Vector) -> None:
    """The encoded structure is accepted with its hash; then the hash is enough."""
    digest = vector["hash"]
    whole = packed({"type": "frame", "hash": digest, "structure": msgspec.Raw(bytes.fromhex(vector["bytes"]))}, [])
    headers = {"Content-Type": "application/msgpack"}
    shared.request({"hex": whole.hex(), "headers": headers}, {"status": 200})
    short = packed({"type": "frame", "hash": digest}, [])
    shared.request({"hex": short.hex(), "headers": headers}, {"status": 200})


def run_natural(shared: SharedSession, vector: Vector) -> None:
    """A script, or a frame in natural JSON: it is refused, or answered as the compact frame that it stands for."""
    steps = vector.get("steps", [])
    post = {"do": "request", "method": "POST", "path": "/v1/sessions/${session}/frames", "json": vector.get("frame")}
    if "problem" in vector:
        status = vector["problem"].get("status", 400)
        steps = [post | {"expect": {"status": status, "json": vector["problem"]}}]
    elif not steps:
        nameless = [{n: v for n, v in each.items() if n != "name"} for each in vector["expect"]["values"]]
        expected: dict[str, Any] = {"errors": []}
        steps = [
            post | {"expect": {"status": 200, "json": expected | vector["expect"]}},
            post | {"json": vector["compact"], "expect": {"status": 200, "json": expected | {"values": nameless}}},
        ]
    run_script(shared, vector | {"steps": steps})


def run_op(shared: SharedSession, vector: Vector) -> None:
    """A frame as JSON over REST, and the same frame as bytes on a stream."""
    frame, expected = vector["frame"], vector["expect"]
    tolerance = {name: vector[name] for name in ("rtol", "atol") if name in vector}
    wanted = {"errors": []} | expected
    if "values" in expected:
        wanted["values"] = [each | tolerance for each in expected["values"]]
    if vector.get("fresh"):
        shared.close()
    shared.request({"json": frame}, {"status": 200, "json": wanted})
    if vector.get("fresh"):
        shared.close()
    records = [record for record in frame["structure"]["ops"] if record[0] == "upload"]
    buffers = [
        to_bytes(payload["values"], record[1][1], record[1][2])
        for payload, record in zip(frame.get("payloads", []), records, strict=True)
    ]
    message = frame | {"payloads": [{"buffer": i} for i in range(len(buffers))]}
    shared.exchange(message, buffers, wanted)


RUNNERS: Final[dict[str, Callable[[SharedSession, Vector], None]]] = {
    "envelope": run_envelope, "values": run_values, "structure_hash": run_structure, "natural": run_natural,
    "ops": run_op,
}  # fmt: skip
