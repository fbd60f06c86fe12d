"""Other tenants get the same answers for an existing session as for an unknown one.

The requests come from the OpenAPI document, so new routes are covered automatically.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any, Final

import httpx
import msgspec
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from gradwire_protocol import envelope
from gradwire_protocol.frames import Structure, structure_hash
from tests.live_server import LiveServer

from .exchange import frame, upload

SESSION: Final = "session_id"
BODIES: Final[tuple[tuple[str, bytes], ...]] = (
    ("application/json", b"{}"),
    ("application/json", msgspec.json.encode({"values": 1.5})),
    ("application/json", msgspec.json.encode(frame([["ones", [[1]]]], [0]))),
    ("application/json", msgspec.json.encode({"tensors": [1], "outputs": [1], "inputs": [1]})),
    ("application/octet-stream", bytes(4)),
    ("application/msgpack", b"\x00\x01\x02"),
    ("", b""),
)
"""One of them fits each route well enough to get past its own checks."""

Call = tuple[str, str, str, bytes]
"""Method, path with ``{session_id}`` left in it, type and bytes of the body."""


def routes(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Method and path of everything that belongs to a session."""
    for path, item in document["paths"].items():
        if "{" + SESSION + "}" in path:
            for method in item:
                yield method.upper(), path


def calls(document: dict[str, Any], parameters: dict[str, str]) -> Iterator[Call]:
    """Each route with each body; its other parameters are the owner's."""
    for method, path in routes(document):
        for name, value in parameters.items():
            path = path.replace("{" + name + "}", value)
        for kind, body in BODIES if method in ("POST", "PUT", "PATCH") else BODIES[-1:]:
            yield method, path, kind, body


def unknown_id(session_id: str) -> str:
    """An id of the same form that no session ever had."""
    return "s_" + secrets.token_urlsafe(len(session_id))[: len(session_id) - 2]


def answer(http: httpx.Client, call: Call, session_id: str) -> tuple[int, Any, list[str]]:
    """Status, body and names of headers, with what tells the request itself apart replaced."""
    method, path, kind, body = call
    headers = {"Content-Type": kind, "Gradwire-Dtype": "float32", "Gradwire-Shape": "1"} if kind else {}
    response = http.request(method, path.replace("{" + SESSION + "}", session_id), content=body, headers=headers)
    text = response.text.replace(session_id, "ID")
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = text
    if isinstance(found, dict):
        found.pop("request_id", None)
    return response.status_code, found, sorted(response.headers)


def stream_answer(server: LiveServer, session_id: str, key: str) -> tuple[int, Any]:
    """The same for a stream."""
    url = f"{server.stream_url}{session_id}/stream"
    try:
        with connect(url, additional_headers={"Authorization": f"Bearer {key}"}, open_timeout=240):
            return 101, None
    except InvalidStatus as refused:
        body = msgspec.json.decode((refused.response.body or b"{}").decode().replace(session_id, "ID"))
        body.pop("request_id", None)
        return refused.response.status_code, body


NAME: Final = "weights of the owner"
STRUCTURE: Final = envelope.encode_part(Structure(ops=[["full", [[7], "float"]], ["neg", [0]]], reads=[1]))


def furnished(http: httpx.Client) -> tuple[str, dict[str, str]]:
    """An owner's session with a tensor, a name, a known structure and an upload; its id and path parameters."""
    session_id = http.post("/v1/sessions").json()["id"]
    path = f"/v1/sessions/{session_id}"
    reply = http.post(f"{path}/frames", json=upload([1.0, 2.0], "float32", [2])).json()
    http.post(f"{path}/frames", json=frame([["set_name", [-1, NAME]]], external=[reply["first"]]))
    # More of them, since ids begin alike in each session: a stranger's own must not be in the way.
    http.post(f"{path}/frames", json=frame([["ones", [[1]]]] * 40))
    return session_id, {"tensor": str(reply["first"]), "tensor_id": str(reply["first"]), "name": NAME, "seq": "1"}


def frames(owned: int) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Frames of a stranger, in a session of its own, that reach for what is the owner's; and the same for what never
    was. The field's name comes first."""
    never = owned + (1 << 31)
    yield "external", frame([["neg", [-1]]], [0], external=[owned]), frame([["neg", [-1]]], [0], external=[never])
    yield "releases", frame([], releases=[owned]), frame([], releases=[never])
    yield "reads", frame([], [-1], external=[owned]), frame([], [-1], external=[never])
    yield "client", frame([], client=2002, seq=1), frame([], client=3999, seq=1)
    yield "name", frame([["by_name", [NAME]]], [0]), frame([["by_name", ["x" * len(NAME)]]], [0])
    known, other = structure_hash(STRUCTURE), structure_hash(STRUCTURE + b"\x00")
    yield "hash", *({"hash": _base64(each), "scalars": [1.0]} for each in (known, other))
    taken = [["upload", ["payload", "float32", [2]]]]
    yield "upload", *(frame(taken, payloads=[{"upload": n}]) for n in (5_000_001, 4_000_000))


def _base64(data: bytes) -> str:
    return str(msgspec.json.decode(msgspec.json.encode(data)))


def told(http: httpx.Client, session: str, body: dict[str, Any], ids: tuple[int, ...]) -> tuple[int, str]:
    """The answer to a frame, without its number, its request id and the ids it asked for."""
    response = http.post(f"{session}/frames", json=body)
    found = response.json()
    text = str({k: v for k, v in found.items() if k not in ("seq", "request_id", "first")})
    for each in sorted(ids, key=lambda n: -len(str(n))):
        text = re.sub(rf"\b{each}\b", "ID", text)
    return response.status_code, text.replace(f"'seq': {found.get('seq')}", "")
