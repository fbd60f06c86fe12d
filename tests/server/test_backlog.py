"""The memory of all streams and requests of one tenant is bounded, and each of them still makes progress."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from gradwire_server.http.backlog import SMALL_BYTES, Backlog, Backlogs
from tests.live_server import LiveServer, live_server

from .exchange import binary, frame, post, problem, stream

MOST = 2 << 20
LARGE = 3 << 20


class Holder:
    def __init__(self) -> None:
        self.pending_bytes = 0
        self.told = 0

    def resume_reading(self) -> None:
        self.told += 1


async def test_beyond_the_bound_one_large_message_is_read_at_a_time() -> None:
    backlog, first, second, small = Backlog(100 * SMALL_BYTES), Holder(), Holder(), Holder()
    backlog.update(first, 60 * SMALL_BYTES)
    assert backlog.may_read(first)
    backlog.update(second, 60 * SMALL_BYTES)
    backlog.update(small, SMALL_BYTES)
    assert backlog.may_read(second)  # it was the first to be asked
    assert not backlog.may_read(first)
    assert backlog.may_read(small)
    backlog.update(second, 70 * SMALL_BYTES)
    assert backlog.may_read(second)
    backlog.update(second, 0)
    await asyncio.sleep(0)
    assert first.told
    assert backlog.may_read(first)
    backlog.leave(first)
    assert (backlog.pending_bytes, first.pending_bytes) == (SMALL_BYTES, 0)


async def test_a_stream_that_ends_makes_room_for_those_that_wait() -> None:
    backlog, ends, waits = Backlog(SMALL_BYTES), Holder(), Holder()
    backlog.update(ends, 3 * SMALL_BYTES)
    backlog.update(waits, 3 * SMALL_BYTES)
    assert backlog.may_read(ends)
    assert not backlog.may_read(waits)
    backlog.leave(ends)
    await asyncio.sleep(0)
    assert waits.told
    assert backlog.may_read(waits)


def test_tenants_do_not_wait_for_each_other() -> None:
    backlogs = Backlogs(1)
    one = backlogs.of("one")
    assert backlogs.of("one") is one
    assert backlogs.of("other") is not one


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(max_key_backlog_bytes=MOST) as found:
        yield found


@pytest.fixture
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def test_streams_that_send_more_together_than_they_may_hold_all_get_on(server: LiveServer, http: httpx.Client) -> None:
    session = http.post("/v1/sessions").headers["location"]
    failures: list[BaseException] = []

    def send() -> None:
        try:
            with stream(server, session) as peer:
                for seq in range(1, 4):
                    peer.send(
                        binary(seq, [["upload", ["payload", "uint8", [LARGE]]]], [0], payloads=[{"buffer": 0}]),
                        [bytes(LARGE)],
                    )
                assert [peer.reply()[0].errors for _ in range(3)] == [[]] * 3
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    http.delete(session)


def test_a_stream_with_small_frames_goes_on_beside_others_that_hold_all_there_may_be(
    server: LiveServer, http: httpx.Client
) -> None:
    session = http.post("/v1/sessions").headers["location"]
    with stream(server, session) as one, stream(server, session) as other, stream(server, session) as small:
        for peer in (one, other):  # the beginning of a large message, whose end does not come
            peer.socket.socket.sendall(b"\x82\xff" + (1 << 24).to_bytes(8, "big") + bytes(4) + bytes(LARGE))
        for seq in range(1, 20):
            assert small.apply(seq, [["ones", [[2]]]], [0])[0].refused is None
        one.socket.socket.close()
        other.socket.socket.close()
    with stream(server, session) as again:
        assert again.apply(1, [["ones", [[2]]]], [0])[0].refused is None
    http.delete(session)


def test_what_comes_before_a_hello_is_not_collected(server: LiveServer, http: httpx.Client) -> None:
    session = http.post("/v1/sessions").headers["location"]
    url = server.stream_url + session.rsplit("/", 1)[-1] + "/stream"
    with connect(url, additional_headers=server.headers, compression=None) as peer:
        peer.socket.sendall(b"\x82\xff" + (1 << 24).to_bytes(8, "big") + bytes(4) + bytes(1 << 20))
        with pytest.raises(ConnectionClosed) as closed:
            peer.recv(timeout=20)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
    http.delete(session)


# Requests

RAW = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "uint8"}
WITHIN_S = 20.0


@pytest.fixture
def session(http: httpx.Client) -> Iterator[str]:
    path = str(http.post("/v1/sessions").headers["location"])
    yield path
    http.delete(path)


def put(http: httpx.Client, session: str, tensor: int, size: int) -> httpx.Response:
    headers = {**RAW, "Gradwire-Shape": str(size)}
    return http.put(f"{session}/tensors/{tensor}", content=bytes(size), headers=headers)


@contextlib.contextmanager
def begun(server: LiveServer, line: str, headers: str = "", body: bytes = b"") -> Iterator[socket.socket]:
    """A request, of which so much has come."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), WITHIN_S) as peer:
        key = server.headers["Authorization"]
        peer.sendall(f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n{headers}\r\n".encode() + body)
        yield peer


def until(response, *wanted: int) -> httpx.Response:
    """The first response with one of these statuses: what other requests do at the same time is not instant."""
    end = time.monotonic() + WITHIN_S
    while (found := response()).status_code not in wanted and time.monotonic() < end:
        time.sleep(0.02)
    return found


def wait_until_held(server: LiveServer) -> None:
    """Wait until all there may be is held: what comes in its way before would be served, and it refused."""
    end = time.monotonic() + WITHIN_S
    while sum(each.pending_bytes for each in server.app.state.server.backlogs._by_tenant.values()) <= MOST:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["announced", "in chunks", "on a stream"])
def test_a_large_body_is_refused_while_others_of_its_key_hold_all_there_may_be(
    how: str, server: LiveServer, http: httpx.Client, session: str
) -> None:
    line = f"PUT {session}/tensors/1"
    kind = f"Content-Type: {RAW['Content-Type']}\r\nGradwire-Dtype: uint8\r\nGradwire-Shape: {LARGE}\r\n"
    with contextlib.ExitStack() as stack:
        if how == "announced":
            stack.enter_context(begun(server, line, f"{kind}Content-Length: {LARGE}\r\n"))
        elif how == "in chunks":
            chunk = f"{LARGE:x}\r\n".encode() + bytes(LARGE)
            stack.enter_context(begun(server, line, f"{kind}Transfer-Encoding: chunked\r\n", chunk))
        else:
            peer = stack.enter_context(stream(server, session))
            peer.socket.socket.sendall(b"\x82\xff" + (1 << 24).to_bytes(8, "big") + bytes(4) + bytes(LARGE))
            stack.callback(peer.socket.socket.close)
        wait_until_held(server)
        refused = put(http, session, 2, LARGE)
        told = problem(refused, 429, "too_many_requests")
        assert told["extra"]["setting"] == "GRADWIRE_MAX_KEY_BACKLOG_BYTES"
        assert told["extra"]["value"] > told["extra"]["limit"] == MOST
        assert told["retryable"]
        assert refused.headers["retry-after"] == "1"
        assert put(http, session, 2, SMALL_BYTES // 2).status_code in (200, 201, 422)
        with server.http(server.other_key) as other:
            theirs = other.post("/v1/sessions").headers["location"]
            assert put(other, theirs, 1, LARGE).status_code == 201
            other.delete(theirs)
    assert until(lambda: put(http, session, 3, LARGE), 201, 200).status_code in (200, 201)


def test_the_objects_of_a_body_count_with_its_bytes(server: LiveServer, http: httpx.Client, session: str) -> None:
    """JSON of 60 KB, of which each byte becomes 48."""
    text = b"[" + b"1," * 30_000
    head = f"Content-Type: application/json\r\nContent-Length: {len(text) + 1}\r\n"
    with begun(server, f"POST {session}/frames", head, text):
        wait_until_held(server)
        problem(put(http, session, 2, LARGE), 429, "too_many_requests")


def test_a_response_that_nobody_reads_counts_until_it_is_written(
    server: LiveServer, http: httpx.Client, session: str
) -> None:
    post(http, session, frame([["zeros", [[16 << 20]]]], first=1))
    large = f"{session}/tensors/1"
    with begun(server, f"GET {large}", f"Accept: {RAW['Content-Type']}\r\n"):
        wait_until_held(server)
        refused = http.get(large, headers={"Accept": RAW["Content-Type"]})
        problem(refused, 429, "too_many_requests")
        problem(put(http, session, 2, LARGE), 429, "too_many_requests")
        assert http.get(session).status_code == 200
    found = until(lambda: http.get(large, headers={"Accept": RAW["Content-Type"]}), 200)
    assert len(found.content) == 64 << 20
