"""Hostile connections: endless or oversized heads and bodies, and silent streams."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPResponse
from typing import Any

import httpx
import pytest

from gradwire_server.http.connection_limits import LimitedStream
from tests.live_server import LiveServer, live_server

from .exchange import Peer, problem, stream


@pytest.fixture(scope="module")
def impatient() -> Iterator[LiveServer]:
    with live_server(head_patience_s=0.5, min_body_rate=100_000, max_connections=30) as found:
        yield found


def connect(server: LiveServer) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), 240)


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """Status and problem of a response that ends with its connection."""
    data = b""
    while piece := connection.recv(65536):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def kept_alive(connection: socket.socket, request: bytes) -> int:
    """The status of a response that is read whole, so that the connection can have another one."""
    connection.sendall(request)
    with HTTPResponse(connection) as response:
        response.begin()
        response.read()
        return response.status


def head(server: LiveServer, path: str, *more: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"X-API-Key: {server.api_key}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_head_that_never_ends_is_given_up(impatient: LiveServer) -> None:
    with closing(connect(impatient)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        status, found = answer(connection)
    assert (status, found["code"]) == (413, "time_exceeded")
    assert "GRADWIRE_HEAD_PATIENCE_S" in found["detail"]


def test_a_connection_that_says_nothing_is_given_up(impatient: LiveServer) -> None:
    with closing(connect(impatient)) as connection:
        assert answer(connection)[0] == 413


def test_a_second_head_that_never_ends_is_given_up(impatient: LiveServer) -> None:
    with closing(connect(impatient)) as connection:
        assert kept_alive(connection, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") == 200
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost:")
        assert answer(connection)[1]["code"] == "time_exceeded"


def test_headers_without_end_are_refused(impatient: LiveServer) -> None:
    with closing(connect(impatient)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\n")
        sent = 0
        try:
            while sent < 1 << 24:
                connection.sendall(b"X-Header: " + b"x" * 1000 + b"\r\n")
                sent += 1012
        except OSError:
            pass
        assert sent < 1 << 24, "the server read all of it"


def test_a_body_that_trickles_is_given_up(impatient: LiveServer) -> None:
    with closing(connect(impatient)) as connection:
        connection.sendall(head(impatient, "/v1/sessions", "Content-Type: application/json", "Content-Length: 500"))
        started = time.monotonic()
        connection.sendall(b'{"device"')
        status, found = answer(connection)
    assert (status, found["code"]) == (413, "time_exceeded")
    assert "GRADWIRE_MIN_BODY_RATE" in found["detail"]
    assert time.monotonic() - started >= 0.4


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, identity"])
def test_a_packed_body_is_not_unpacked(impatient: LiveServer, encoding: str) -> None:
    bomb = zlib.compress(bytes(1 << 22), 9)
    with impatient.http() as http:
        headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        found = problem(http.post("/v1/sessions", content=bomb, headers=headers), 415, "unsupported_media_type")
    assert found["extra"]["accepted"] == ["identity"]


UNREADABLE = ("malformed_frame", "invalid_request")
DEEP = {5_000: UNREADABLE, 200_000: (*UNREADABLE, "limit_exceeded")}
"""How deep, and what it is refused with: what is too much is not looked at."""


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize("opening", ["[", '{"structure":', '{"a":['])
@pytest.mark.parametrize("path", ["/v1/sessions", "{session}/frames", "{session}/tensors/9", "{session}/backward"])
def test_deep_json_is_refused(http: httpx.Client, session: str, path: str, opening: str, depth: int) -> None:
    method = "PUT" if "tensors" in path else "POST"
    response = http.request(
        method, path.format(session=session), content=opening * depth, headers={"Content-Type": "application/json"}
    )
    assert 400 <= response.status_code < 500, response.text
    assert response.json()["code"] in DEEP[depth]


@pytest.mark.parametrize("size", [1 << 62, (1 << 64) - 1, 100_000_000])
def test_a_safetensors_header_that_announces_too_much(http: httpx.Client, session: str, size: int) -> None:
    body = struct.pack("<Q", size) + b"{}" + b" " * 64
    response = http.put(f"{session}/tensors/3", content=body, headers={"Content-Type": "application/safetensors"})
    problem(response, 400, "malformed_frame")


def masked(opcode: int, payload: bytes, final: bool = True) -> bytes:
    """A WebSocket frame of a client, under the mask 0."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 127]) + size.to_bytes(8, "big")
    return bytes([(0x80 if final else 0) | opcode]) + length + bytes(4) + payload


def bare(peer: Peer) -> socket.socket:
    """The connection under a stream, to say what a library would not."""
    found: socket.socket = peer.socket.socket
    return found


def test_fragments_without_end_close_the_stream(server: LiveServer, session: str) -> None:
    """What still comes is dropped for a while, so that the client hears why; then nothing is taken any more."""
    with stream(server, session) as peer:
        connection = bare(peer)
        connection.sendall(masked(2, b"x", final=False))
        deadline = time.monotonic() + 120
        with pytest.raises(OSError):
            while time.monotonic() < deadline:
                connection.sendall(masked(0, b"", final=False) * 1000)


def upgrade(server: LiveServer, session: str) -> bytes:
    """The head of a request for the session's stream."""
    lines = [
        f"GET {session}/stream HTTP/1.1", "Host: x", f"X-API-Key: {server.api_key}", "Upgrade: websocket",
        "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


def all_of(connection: socket.socket) -> bytes:
    """What comes until the server ends its side."""
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found


TOO_MANY = masked(2, b"x", final=False) + masked(0, b"", final=False) * 5000


@pytest.mark.parametrize(
    ("sent", "codes"),
    [
        (TOO_MANY, {1009}),
        (TOO_MANY + masked(9, b"there?"), {1009}),
        (TOO_MANY + masked(0, b"end"), {1009}),
        (TOO_MANY + masked(8, (1000).to_bytes(2, "big")), {1009, 1002}),
        (TOO_MANY + bytes([0xFF]) * 20, {1009, 1002}),
        (masked(2, bytes(200_000), final=False) + bytes([0xFF]) * 20, {1009, 1002}),
    ],
    ids=["fragments", "and a ping", "and their end", "and a close", "and no frame", "a first message and no frame"],
)
def test_what_follows_a_refusal_in_the_same_piece_is_dropped(
    server: LiveServer, session: str, sent: bytes, codes: set[int], caplog: Any
) -> None:
    """The refusal ends the server's side of the connection: to write once more would be an error of the server. Where
    the pieces end decides which of two reasons is seen first."""
    with closing(connect(server)) as connection:
        connection.sendall(upgrade(server, session))
        assert connection.recv(4096).startswith(b"HTTP/1.1 101")
        connection.sendall(sent)
        close = all_of(connection)
    if sent.endswith(b"there?"):
        close = close.removeprefix(bytes([0x8A, 6]) + b"there?")
    assert close[0] == 0x88
    assert int.from_bytes(close[2:4], "big") in codes
    assert len(close) == 2 + close[1], "more than one close frame"
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize("sent", [bytes([0xFF]) * 20, masked(2, bytes(200_000))[:-1]], ids=["no frame", "too much"])
def test_frames_that_do_not_wait_for_the_handshake_end_the_connection(
    server: LiveServer, session: str, sent: bytes, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = threading.Event()
    run = LimitedStream.run_asgi

    async def late(self: LimitedStream) -> None:
        arrived.set()
        await asyncio.sleep(0.5)
        await run(self)

    monkeypatch.setattr(LimitedStream, "run_asgi", late)
    with closing(connect(server)) as connection:
        connection.sendall(upgrade(server, session))
        assert arrived.wait(120)
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            assert all_of(connection) == b""
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def resident() -> int:
    """Bytes of this process, the server's, in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_pings_whose_answers_are_not_read_leave_nothing(server: LiveServer, session: str) -> None:
    """The WebSocket is opened by hand: a library's would read the answers."""
    with closing(connect(server)) as connection:
        connection.sendall(upgrade(server, session))
        assert connection.recv(4096).startswith(b"HTTP/1.1 101")
        before = resident()
        flood = masked(9, b"p" * 125) * 2000
        for _ in range(300):  # 75 MB of answers
            connection.sendall(flood)
        assert resident() - before < 30 << 20
