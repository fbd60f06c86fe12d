"""At the connection limit, idle unauthenticated connections are replaced, and probes and keys keep a reserve."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import httpx
import pytest

from gradwire_server.http.connection_limits import RESERVED
from tests.live_server import LiveServer, live_server

from .exchange import stream
from .test_connection_limits import answer, connect, head, kept_alive

MOST = 20


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with live_server(max_connections=MOST, max_streams=100) as found:
        yield found


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def hold(held: ExitStack, server: LiveServer, sent: bytes = b"") -> socket.socket:
    connection = held.enter_context(closing(connect(server)))
    if sent:
        connection.sendall(sent)
    return connection


def asked(server: LiveServer, path: str) -> int:
    with httpx.Client(base_url=server.url, timeout=60) as http:
        return http.get(path).status_code


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nHost:", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_strangers_that_hold_all_connections_make_room_oldest_first(
    server: LiveServer, held: ExitStack, sent: bytes
) -> None:
    strangers = [hold(held, server, sent) for _ in range(3 * MOST)]
    for path in ("/livez", "/readyz"):
        assert asked(server, path) == 200
    with server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            assert peer.apply(1, [["ones", [[2]]]], [0])[0].errors == []
    first, data = strangers[0], b""
    while piece := first.recv(65536):
        data += piece
    assert b" 503 " in data
    assert b"GRADWIRE_MAX_CONNECTIONS" in data


def test_strangers_do_not_push_out_who_has_shown_a_key(server: LiveServer, held: ExitStack) -> None:
    with server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
    known = hold(held, server)
    assert (
        kept_alive(known, f"GET {session} HTTP/1.1\r\nHost: x\r\nX-API-Key: {server.api_key}\r\n\r\n".encode()) == 200
    )
    peer = held.enter_context(stream(server, session))
    strangers = [hold(held, server) for _ in range(5 * MOST)]
    assert peer.apply(1, [["ones", [[2]]]], [0])[0].errors == []
    assert (
        kept_alive(known, f"GET {session} HTTP/1.1\r\nHost: x\r\nX-API-Key: {server.api_key}\r\n\r\n".encode()) == 200
    )
    assert strangers


def test_probes_and_keys_keep_a_reserve_beyond_streams_that_use_up_the_limit(
    server: LiveServer, held: ExitStack
) -> None:
    with server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
    for _ in range(MOST):
        held.enter_context(stream(server, session))
    for path in ("/livez", "/readyz", "/livez"):
        assert asked(server, path) == 200
    with httpx.Client(base_url=server.url, timeout=60) as http:
        problem_of_a_stranger = http.get("/docs")
        assert problem_of_a_stranger.status_code == 503
        assert problem_of_a_stranger.json()["code"] == "unavailable"
    with server.http() as http:
        assert http.get(session).status_code == 200
    for _ in range(RESERVED // 2):  # streams of keys have the one half of the reserve
        held.enter_context(stream(server, session))
    with pytest.raises(Exception, match="503"), stream(server, session):
        pass
    assert asked(server, "/livez") == 200


def test_who_is_silent_in_the_reserve_is_not_waited_for_long(server: LiveServer, held: ExitStack) -> None:
    with server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
    for _ in range(MOST):
        held.enter_context(stream(server, session))
    began = time.monotonic()
    status, _ = answer(hold(held, server))
    assert (status, time.monotonic() - began < 10) == (413, True)
    for _ in range(10 * RESERVED):
        hold(held, server)
    assert asked(server, "/livez") == 200


def test_requests_of_one_key_beyond_the_limit_and_the_reserve_are_told(server: LiveServer, held: ExitStack) -> None:
    with server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
    for _ in range(MOST + RESERVED // 2):
        held.enter_context(stream(server, session))
    late = hold(held, server, head(server, "/v1/sessions", "Content-Length: 0"))
    status, found = answer(late)
    assert (status, found["code"], found["retryable"]) == (503, "unavailable", True)
    assert found["extra"]["setting"] == "GRADWIRE_MAX_CONNECTIONS"
