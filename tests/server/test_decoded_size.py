"""The decoded size of messages is bounded, and large ones are decoded beside the event loop, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from gradwire_protocol.frames import Chunk, Refusal
from tests.live_server import LiveServer, live_server

from .exchange import Peer, binary, frame, post, problem, stream

MANY = 300_000
JSON = {"Content-Type": "application/json"}
SETTING = "GRADWIRE_MAX_DECODED_BYTES"
LIMIT = 16 << 20


@pytest.fixture(scope="module", params=["inline", "process"])
def server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    with live_server(session_host=request.param, max_decoded_bytes=LIMIT) as found:
        yield found


@pytest.fixture
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


@pytest.fixture
def session(http: httpx.Client) -> Iterator[str]:
    path = http.post("/v1/sessions", json={}).headers["location"]
    yield path
    http.delete(path)


def raw(fields: dict[str, Any]) -> bytes:
    """A message of these fields, whatever they are."""
    header = msgspec.msgpack.encode({"type": "frame", "seq": 1, "structure": {"ops": []}, **fields})
    return len(header).to_bytes(4, "little") + header


TOO_MUCH: dict[str, Any] = {
    "scalars": lambda: {"scalars": [[]] * MANY},
    "scalars that are maps": lambda: {"scalars": [{}] * MANY},
    "releases": lambda: {"releases": list(range(500, 500 + MANY + 100_000)), "near": True},
    "external": lambda: {"external": list(range(500, 500 + MANY + 100_000))},
    "payloads": lambda: {"payloads": [{}] * MANY},
    "values": lambda: {"payloads": [{"values": [[]] * MANY}]},
    "ops": lambda: {"structure": {"ops": [[]] * MANY}},
    "arguments": lambda: {"structure": {"ops": [["zeros", [[]] * MANY]]}},
    "not a field": lambda: {"extra": [[]] * MANY},
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_frame_that_is_too_much_is_refused_and_its_stream_goes_on(
    server: LiveServer, session: str, name: str
) -> None:
    with stream(server, session) as peer:
        peer.socket.send(raw(TOO_MUCH[name]()))
        reply, _ = peer.reply()
        assert reply.refused is not None
        assert (reply.seq, reply.refused.code) == (1, "limit_exceeded")
        assert reply.refused.extra["value"] > reply.refused.extra["limit"]
        assert f"{reply.refused.extra['limit']:,}" in reply.refused.detail
        reply, _ = peer.apply(1, [["ones", [[2]]]], [0])
        assert reply.refused is None
        assert not reply.errors


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_frame_over_rest_that_is_too_much_is_refused(http: httpx.Client, session: str, name: str) -> None:
    fields = TOO_MUCH[name]()
    packed = http.post(f"{session}/frames", content=raw(fields), headers={"Content-Type": "application/msgpack"})
    problem(packed, 413, "limit_exceeded")
    text = msgspec.json.encode({"structure": {"ops": []}, **fields})
    found = problem(http.post(f"{session}/frames", content=text, headers=JSON), 413, "limit_exceeded")
    assert (found["extra"]["setting"], found["extra"]["limit"]) == (SETTING, LIMIT)
    assert post(http, session, frame([["ones", [[2]]]], [0]))["values"][0]["values"] == [1.0, 1.0]


def test_json_on_a_stream_that_is_too_much_ends_it_with_the_limit(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as peer:
        peer.socket.send('{"type": "hello", "version": 1}')
        peer.socket.recv()
        peer.socket.send(msgspec.json.encode({"type": "frame", "seq": 1, "scalars": [[]] * MANY}).decode())
        answer = msgspec.json.decode(peer.socket.recv())
        assert answer["problem"]["code"] == "limit_exceeded"
        assert answer["problem"]["extra"]["setting"] == SETTING
        with pytest.raises(ConnectionClosed) as closed:
            peer.socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4400


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", "/v1/sessions"), ("PUT", "{}/tensors/5"), ("POST", "{}/backward"), ("POST", "{}/grad"),
        ("POST", "/v1/tickets"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8"])
def test_a_json_body_that_is_too_much_is_refused_whatever_its_route(
    http: httpx.Client, session: str, method: str, route: str, kind: str
) -> None:
    content = b'{"values": [' + b"[]," * MANY + b"[]]}"
    response = http.request(method, route.format(session), content=content, headers={"Content-Type": kind})
    found = problem(response, 413, "limit_exceeded")
    assert found["extra"]["setting"] == SETTING


def test_a_session_may_be_allowed_less(http: httpx.Client, server: LiveServer) -> None:
    path = http.post("/v1/sessions", json={"limits": {"max_decoded_bytes": 1 << 20}}).headers["location"]
    with stream(server, path) as peer:
        peer.socket.send(raw({"scalars": [[]] * 30_000}))
        reply, _ = peer.reply()
        assert reply.refused is not None
        assert reply.refused.extra["limit"] == 1 << 20
    values = {"values": [[]] * 30_000}
    problem(http.put(f"{path}/tensors/1", json=values), 413, "limit_exceeded")
    assert http.put(f"{path}/tensors/1", json={"values": [1.0] * 30_000}).status_code == 413
    many = post(http, path, frame([["ones", [[20_000]]]]))
    problem(http.get(f"{path}/tensors/{many['first']}"), 413, "limit_exceeded")
    raw_bytes = http.get(f"{path}/tensors/{many['first']}", headers={"Accept": "application/octet-stream"})
    assert len(raw_bytes.content) == 80_000
    http.delete(path)


def test_frames_behind_one_that_is_decoded_in_a_thread_stay_behind_it(server: LiveServer, session: str) -> None:
    """Each adds its number, times ten to what was there: in any other order the result is another."""
    with stream(server, session) as peer:
        base = peer.welcome.client << 32 if peer.welcome else 0
        peer.send(binary(1, [["zeros", [[], "float64"]]], first=base + 1))
        for seq in range(2, 12):
            ops: list[Any] = [["mul_", [-1, "int"]], ["add_", [-1, "int"]]]
            padding = [0.5] * (100_000 if seq % 3 == 0 else 0)
            peer.send(binary(seq, ops, first=base + 2 * seq, external=[base + 1], scalars=[10, seq % 10, *padding]))
        peer.send(binary(12, [], [-1], first=base + 100, external=[base + 1]))
        replies = [peer.reply() for _ in range(12)]
    assert [reply.seq for reply, _ in replies] == list(range(1, 13))
    assert [reply.refused for reply, _ in replies] == [None] * 12
    assert (
        bytes(replies[-1][1][0]) == msgspec.json.encode(0) or memoryview(replies[-1][1][0]).cast("d")[0] == 2345678901.0
    )


def test_the_answer_to_a_frame_that_is_too_much_waits_for_those_before_it(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer:
        peer.send(binary(1, [["randn", [[700, 700]]], *([["matmul", [0, 0]]] * 8)]))
        peer.socket.send(raw({"seq": 2, "external": [1] * 3_000_000}))
        answered = [peer.reply()[0] for _ in range(2)]
    assert [reply.seq for reply in answered] == [1, 2]
    assert answered[0].refused is None
    assert answered[1].refused is not None


def test_a_large_first_message_is_no_hello(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as peer:
        peer.socket.send(raw({"type": "hello", "agent": "x" * 100_000}))
        answer, _ = peer.receive()
        assert isinstance(answer, Refusal)
        assert answer.problem.code == "malformed_frame"


@pytest.mark.parametrize(
    "fields", [{"total": -1}, {"offset": -1}, {"transfer": -1}, {"total": -(1 << 63)}, {"total": 1 << 63}]
)
def test_a_chunk_of_negative_size_or_place_is_malformed(
    server: LiveServer, session: str, fields: dict[str, int]
) -> None:
    with stream(server, session) as peer:
        chunk = Chunk(**{"transfer": 1, "offset": 0, "total": 4, **fields})
        peer.send(chunk, [bytes(4)])
        answer, _ = peer.receive()
        assert isinstance(answer, Refusal)
        assert answer.problem.code == "malformed_frame"
    with stream(server, session) as again:
        assert again.apply(1, [["ones", [[1]]]], [0])[0].refused is None


@pytest.mark.parametrize("sizes", [[-1], [-64, 64], [1 << 62], [-(1 << 63)]])
def test_a_buffer_of_negative_or_huge_size_is_malformed(server: LiveServer, session: str, sizes: list[int]) -> None:
    with stream(server, session) as peer:
        peer.socket.send(raw({"buffers": sizes}))
        answer, _ = peer.receive()
        assert isinstance(answer, Refusal)
        assert answer.problem.code == "malformed_frame"


def test_the_pieces_of_a_large_upload_are_taken_as_ever(server: LiveServer, session: str) -> None:
    data = bytes(range(256)) * 4096 * 4
    with stream(server, session) as peer:
        peer.send_chunks(3, data, 1 << 20)
        sent: Peer = peer
        reply, values = sent.apply(1, [["upload", ["payload", "uint8", [len(data)]]]], [0], payloads=[{"upload": 3}])
        assert not reply.errors, reply.errors
        assert bytes(values["d1"]) == data
