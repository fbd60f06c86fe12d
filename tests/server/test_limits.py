"""Limits apply before anything is read or allocated, and name their setting."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import fields

import httpx
import pytest

from gradwire_engine.runtime.memory import Limits
from gradwire_server.http.models import SessionLimits
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer, live_server

from .exchange import frame, post, problem, upload

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "uint8", "Gradwire-Shape": "4000"}


@pytest.fixture(scope="module")
def tight() -> Iterator[LiveServer]:
    with live_server(max_body_bytes=4096, max_json_bytes=1024, max_graph_export=2) as found:
        yield found


@pytest.fixture
def tight_session(tight: LiveServer) -> Iterator[tuple[httpx.Client, str]]:
    with tight.http() as http:
        path = http.post("/v1/sessions").headers["location"]
        yield http, path
        http.delete(path)


HOW_FRAMES_RUN = {"plans"}
"""What the engine takes beside its limits; for the server to say, not for a session."""


def test_every_limit_of_the_engine_is_a_setting_and_of_a_session() -> None:
    names = {field.name for field in fields(Limits)}
    without = names - set(Settings.model_fields)
    assert not without, f"Settings needs a field for each of the engine's Limits: {without}"
    lowered = set(SessionLimits.model_fields)
    assert names - HOW_FRAMES_RUN == lowered, (
        f"Limits and SessionLimits must have the same fields; only one has {(names - HOW_FRAMES_RUN) ^ lowered}"
    )


def test_every_setting_is_explained() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_a_body_that_announces_too_much_is_refused_unread(tight: LiveServer) -> None:
    """Only the headers are sent: a server that wanted the body would not answer."""
    host, port = tight.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(
            f"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nX-API-Key: {tight.api_key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1025\r\n\r\n".encode()
        )
        answer = b""
        while piece := connection.recv(65536):  # the server closes: the rest is not wanted
            answer += piece
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"GRADWIRE_MAX_JSON_BYTES" in answer
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("path", ["", "/../../v1/sessions"])
def test_a_chunked_body_is_counted(tight_session: tuple[httpx.Client, str], path: str) -> None:
    http, session = tight_session
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1 << 26:
            sent += 512
            yield b" " * 512

    url = f"{session}/frames" if not path else "/v1/sessions"
    try:
        response = http.post(url, content=endless(), headers=JSON)
    except httpx.WriteError:
        return  # the server closed while there was still much to send: as good an answer
    problem(response, 413, "limit_exceeded")
    assert sent < 1 << 26


def test_raw_bodies_may_be_larger_than_json(tight_session: tuple[httpx.Client, str]) -> None:
    http, session = tight_session
    assert http.put(f"{session}/tensors/1", content=bytes(4000), headers=RAW).status_code == 201
    found = problem(http.put(f"{session}/tensors/2", content=bytes(5000), headers=RAW), 413, "limit_exceeded")
    assert found["extra"] == {"setting": "GRADWIRE_MAX_BODY_BYTES", "limit": 4096, "value": 5000}


def test_a_nonsense_length_is_refused(tight: LiveServer) -> None:
    host, port = tight.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(
            f"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nX-API-Key: {tight.api_key}\r\n"
            "Content-Length: -5\r\n\r\n".encode()
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    ("limit", "bound", "body", "setting"),
    [
        ("max_tensor_bytes", 100, upload([0] * 30, "float32", [30]), "GRADWIRE_MAX_TENSOR_BYTES"),
        ("max_session_bytes", 100, upload([0] * 30, "float32", [30]), "GRADWIRE_MAX_SESSION_BYTES"),
        ("max_tensors", 2, frame([["zeros", [[1]]]] * 3), "GRADWIRE_MAX_TENSORS"),
        ("max_ops_per_frame", 2, frame([["zeros", [[1]]]] * 3), "GRADWIRE_MAX_OPS_PER_FRAME"),
        ("max_read_bytes", 100, frame([["zeros", [[30]]]], reads=[0]), "GRADWIRE_MAX_READ_BYTES"),
        (
            "max_graph_nodes", 3,
            frame([["zeros", [[1]]], ["requires_grad_", [0]], *([["exp", [0]]] * 5)]),
            "GRADWIRE_MAX_GRAPH_NODES",
        ),
    ],
)  # fmt: skip
def test_a_limit_of_the_session_names_its_setting(
    http: httpx.Client, new_session: Callable[..., str], limit: str, bound: int, body: dict[str, object], setting: str
) -> None:
    session = new_session(limits={limit: bound})
    assert http.get(session).json()["limits"][limit] == bound
    response = http.post(f"{session}/frames", json=body)
    found = response.json() if response.status_code != 200 else response.json()["errors"][0]
    assert found["code"] == "limit_exceeded", found
    assert found["extra"]["setting"] == setting
    assert setting in found["detail"]
    assert post(http, session, frame([]))["seq"]


def test_memory_is_given_back_when_tensors_are_released(http: httpx.Client, new_session: Callable[..., str]) -> None:
    session = new_session(limits={"max_session_bytes": 1000})
    for _ in range(5):
        reply = post(http, session, upload([0] * 200, "float32", [200]))
        post(http, session, frame([], releases=[reply["first"]]))
    assert http.get(session).json()["contents"]["memory"]["live_bytes"] == 0


def test_a_graph_too_large_to_draw(tight_session: tuple[httpx.Client, str]) -> None:
    http, session = tight_session
    body = frame([["zeros", [[1]]], ["requires_grad_", [0]], ["exp", [0]], ["exp", [1]], ["exp", [2]]])
    post(http, session, body)
    found = problem(http.get(f"{session}/graph"), 413, "limit_exceeded")
    assert found["extra"]["setting"] == "GRADWIRE_MAX_GRAPH_EXPORT"
