"""Steps of scripts, and what they are made of."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gradwire.cli.conformance.scripts import packed
from gradwire.cli.conformance.vectors import Vector
from gradwire_protocol import envelope

Step = dict[str, Any]

PATH: Final = "/v1/sessions/${session}"
FRAMES: Final = f"{PATH}/frames"
STREAM: Final = f"{PATH}/stream"
JSON: Final = {"Content-Type": "application/json"}
MSGPACK: Final = {"Content-Type": "application/msgpack"}
NOTHING: Final = {"$absent": True}
ANYTHING: Final = {"$present": True}


def script(name: str, text: str, *steps: Step | list[Step], session: Any = "default", **facts: Any) -> Vector:
    """A vector of steps. ``session``: the body of the request that starts its session; ``None`` for no session."""
    flat = [step for each in steps for step in (each if isinstance(each, list) else [each])]
    found: Vector = {"id": name, "text": text}
    if session != "default":
        found["session"] = session
    return found | facts | {"steps": flat}


# HTTP


def request(
    method: str, path: str, status: int, body: Any = None, answer: Any = None, *, capture: dict[str, str] | None = None,
    headers: dict[str, str] | None = None, answer_headers: dict[str, Any] | None = None, **facts: Any,
) -> Step:  # fmt: skip
    """A request with a JSON body, and what is expected. ``facts``: ``hex``, ``text`` or ``key``."""
    step: Step = {"do": "request", "method": method, "path": path} | facts
    if headers:
        step["headers"] = headers
    if body is not None:
        step["json"] = body
    step["expect"] = {"status": status}
    if answer_headers:
        step["expect"]["headers"] = answer_headers
    if answer is not None:
        step["expect"]["json"] = answer
    if capture:
        step["capture"] = capture
    return step


def refused(method: str, path: str, status: int, code: str, body: Any = None, **facts: Any) -> Step:
    """A request that gets a problem document."""
    extra = facts.pop("extra", None)
    problem: dict[str, Any] = {"code": code, "status": status, "type": f"urn:gradwire:problem:{code}",
                               "title": ANYTHING, "detail": ANYTHING, "request_id": ANYTHING}  # fmt: skip
    if extra is not None:
        problem["extra"] = extra
    media = {"Content-Type": "application/problem+json", "X-Request-ID": ANYTHING}
    return request(method, path, status, body, problem, answer_headers=media, **facts)


def post(frame: dict[str, Any], answer: Any = None, **facts: Any) -> Step:
    """A frame over REST that is applied without errors."""
    return request("POST", FRAMES, 200, frame, {"errors": []} | (answer or {}), **facts)


def structure(ops: list[Any], reads: list[int] | None = None, **more: Any) -> dict[str, Any]:
    """A structure."""
    return {"ops": ops} | ({"reads": reads} if reads else {}) | more


def frame(ops: list[Any], reads: list[int] | None = None, **fields: Any) -> dict[str, Any]:
    """A frame as JSON."""
    return {"structure": structure(ops, reads)} | fields


def value(dtype: str, values: Any, shape: list[int] | None = None) -> dict[str, Any]:
    """An expected value."""
    if shape is None:
        shape, inner = [], values
        while isinstance(inner, list):
            shape.append(len(inner))
            inner = inner[0] if inner else None
    return {"dtype": dtype, "shape": shape, "values": values}


def failed(code: str, **facts: Any) -> dict[str, Any]:
    """A reply with one failed op."""
    return {"errors": [{"code": code} | facts]}


# Streams


def connect(stream: str = "a", status: int = 101, code: str = "", **facts: Any) -> Step:
    """Open a stream, or be refused."""
    step: Step = {"do": "connect", "stream": stream, "path": facts.pop("path", STREAM)} | facts
    step["expect"] = {"status": status} | ({"json": {"code": code}} if code else {})
    return step


def send(message: dict[str, Any], stream: str = "a", buffers: list[bytes] | None = None) -> Step:
    """Send a message; with its bytes, unless a variable is in it."""
    step: Step = {"do": "send", "stream": stream, "message": message}
    if buffers:
        step["buffers"] = [each.hex() for each in buffers]
    if "${" not in str(message):
        step["hex"] = packed(message, buffers or []).hex()
    return step


def send_bytes(data: bytes, stream: str = "a") -> Step:
    """Send bytes that need be no message."""
    return {"do": "send", "stream": stream, "hex": data.hex()}


def send_text(text: Any, stream: str = "a") -> Step:
    """Send a text message: JSON, or a text that is none."""
    return {"do": "send", "stream": stream, "text": text}


def receive(message: dict[str, Any], stream: str = "a", capture: dict[str, str] | None = None) -> Step:
    """Expect a message."""
    return {"do": "receive", "stream": stream, "message": message} | ({"capture": capture} if capture else {})


def closed(code: int, stream: str = "a") -> Step:
    """Expect the end of a stream."""
    return {"do": "closed", "stream": stream, "code": code}


def close(stream: str = "a") -> Step:
    """End a stream."""
    return {"do": "close", "stream": stream}


def hello(stream: str = "a", expect: dict[str, Any] | None = None, **fields: Any) -> list[Step]:
    """Open a stream, say hello, and be welcomed; captures ``client`` and ``epoch`` under the stream's name."""
    captured = {f"client_{stream}": "/client", f"epoch_{stream}": "/epoch"}
    return [
        connect(stream),
        send({"type": "hello", "version": 1} | fields, stream),
        receive({"type": "welcome", "version": 1} | (expect or {}), stream, captured),
    ]


def numbered(seq: int, ops: list[Any], reads: list[int] | None = None, **fields: Any) -> dict[str, Any]:
    """A frame on a stream."""
    return {"type": "frame", "seq": seq, "structure": structure(ops, reads)} | fields


def reply(seq: int, **fields: Any) -> dict[str, Any]:
    """An expected reply without errors."""
    return {"type": "reply", "seq": seq, "errors": [], "refused": NOTHING} | fields


def not_applied(seq: int, code: str, **facts: Any) -> dict[str, Any]:
    """An expected reply to a frame that is refused."""
    return {"type": "reply", "seq": seq, "refused": {"code": code} | facts}


def ended(code: str, close_code: int, stream: str = "a", **facts: Any) -> list[Step]:
    """Expect a refusal and the end of the stream."""
    return [receive({"type": "refusal", "problem": {"code": code} | facts}, stream), closed(close_code, stream)]


def encoded(what: dict[str, Any]) -> bytes:
    """A structure's bytes."""
    return envelope.encode_part(what)


def message_hex(message: dict[str, Any], buffers: list[bytes] | None = None) -> str:
    """A message's bytes."""
    return packed(message, buffers or []).hex()


def raw(data: bytes) -> Any:
    """Bytes of MessagePack as a part of a message."""
    return msgspec.Raw(data)
