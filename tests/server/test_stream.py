"""Streams: the handshake, order, pipelining, chunks, resuming, and how they end."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from gradwire_protocol import envelope
from gradwire_protocol.frames import (
    MIN_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    Chunk,
    Frame,
    Hello,
    Payload,
    Refusal,
    Reply,
    Structure,
    Welcome,
    structure_hash,
)
from gradwire_server.websocket.sender import CHUNK_BYTES, INLINE_BYTES
from tests.live_server import LiveServer, live_server

from .exchange import Peer, binary, frame, post, stream


@pytest.fixture
def peer(server: LiveServer, session: str) -> Iterator[Peer]:
    with stream(server, session) as found:
        yield found


def closed(peer: Peer) -> tuple[int, str]:
    """Wait for the server to close the stream: the code and the reason."""
    with pytest.raises(ConnectionClosed) as end:
        while True:
            peer.socket.recv(10)
    assert end.value.rcvd is not None
    return end.value.rcvd.code, end.value.rcvd.reason


def upload_op(shape: list[int], dtype: str = "float32") -> list[Any]:
    return ["upload", ["payload", dtype, shape]]


# Handshake


def test_the_welcome_says_what_a_client_must_know(peer: Peer, session: str) -> None:
    welcome = peer.welcome
    assert welcome is not None
    assert (welcome.version, welcome.expected) == (PROTOCOL_VERSION, 1)
    assert welcome.client >= 2
    assert session.endswith(welcome.session)
    assert "cpu" in welcome.devices
    assert welcome.limits["chunk_bytes"] == CHUNK_BYTES
    assert {"max_message_bytes", "max_tensor_bytes", "max_session_bytes"} <= set(welcome.limits)


def test_clients_have_numbers_of_their_own(server: LiveServer, session: str) -> None:
    with stream(server, session) as one, stream(server, session) as other:
        assert one.welcome is not None
        assert other.welcome is not None
        assert one.welcome.client != other.welcome.client


def test_another_version_is_refused_in_words(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as peer:
        answer = peer.hello(version=PROTOCOL_VERSION + 7)
        assert isinstance(answer, Refusal)
        assert answer.problem.code == "version_mismatch"
        assert str(PROTOCOL_VERSION + 7) in answer.problem.detail
        assert answer.problem.extra == {
            "client": PROTOCOL_VERSION + 7,
            "server": PROTOCOL_VERSION,
            "oldest": MIN_PROTOCOL_VERSION,
        }
        assert closed(peer)[0] == 4426


def test_the_first_message_must_be_a_hello(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as peer:
        peer.send(binary(1, []))
        answer, _ = peer.receive()
        assert answer.problem.code == "malformed_frame"
        assert closed(peer)[0] == 4400


def test_a_client_that_never_was_cannot_resume(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as peer:
        answer = peer.hello(client=77)
        assert answer.problem.code == "malformed_frame"
        assert closed(peer)[0] == 4400


def test_a_stream_of_no_session_is_not_accepted(server: LiveServer) -> None:
    with pytest.raises(InvalidStatus) as refused, stream(server, "/v1/sessions/s_none"):
        pass
    response = refused.value.response
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert json.loads(response.body)["code"] == "not_found"


def test_a_strangers_stream_gets_the_same_404(server: LiveServer, session: str) -> None:
    with pytest.raises(InvalidStatus) as refused, stream(server, session, key=server.other_key):
        pass
    assert refused.value.response.status_code == 404


def test_the_server_does_not_compress(server: LiveServer, session: str) -> None:
    url = server.stream_url + session.rsplit("/", 1)[-1] + "/stream"
    headers = {"X-API-Key": server.api_key}
    with connect(url, additional_headers=headers, compression="deflate") as socket:
        assert socket.protocol.extensions == []


def test_the_number_of_streams_is_limited() -> None:
    with live_server(max_streams=1) as server, server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as first, stream(server, session, greet=False) as second:
            answer = second.hello()
            assert answer.problem.code == "too_many_requests"
            assert answer.problem.extra["setting"] == "GRADWIRE_MAX_STREAMS"
            assert closed(second)[0] == 4429
            assert first.apply(1, [])[0].seq == 1


# Frames


def test_frames_are_answered_in_order_without_waiting(peer: Peer) -> None:
    first = (peer.welcome.client << 32) + 1  # type: ignore[union-attr]
    peer.send(binary(1, [["zeros", [[]]]], first=first))
    for seq in range(2, 302):
        peer.send(binary(seq, [["add_", [-1, "int"]]], [-1], external=[first], scalars=[1]))
    replies = [peer.reply() for _ in range(301)]
    assert [reply.seq for reply, _ in replies] == list(range(1, 302))
    assert [np.frombuffer(b[0], "float32")[0] for _, b in replies[1:]] == list(range(1, 301))


def test_a_structure_travels_once(peer: Peer) -> None:
    encoded = msgspec.msgpack.encode(Structure([["full", [[3], "float"]]], [0]))
    key = structure_hash(encoded)
    peer.send(Frame(seq=1, hash=key, scalars=[1.0]))
    refused, _ = peer.reply()
    assert refused.refused is not None
    assert refused.refused.code == "unknown_structure"
    peer.send(Frame(seq=1, structure=msgspec.Raw(encoded), hash=key, scalars=[1.0]))
    assert np.frombuffer(peer.reply()[1][0], "float32").tolist() == [1, 1, 1]
    peer.send(Frame(seq=2, hash=key, scalars=[2.0]))
    assert np.frombuffer(peer.reply()[1][0], "float32").tolist() == [2, 2, 2]


def test_a_refused_frame_leaves_the_stream_open(peer: Peer) -> None:
    reply, _ = peer.apply(5, [])
    assert reply.refused is not None
    assert reply.refused.code == "frame_out_of_order"
    assert peer.apply(1, [])[0].refused is None


def test_people_may_speak_json(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as peer:
        peer.socket.send(json.dumps({"type": "hello", "version": PROTOCOL_VERSION}))
        assert json.loads(peer.socket.recv(10))["type"] == "welcome"
        body = frame([["full", [[2], "float"]]], [0], scalars=["NaN"], seq=1)
        peer.socket.send(json.dumps({"type": "frame", **body}))
        reply = json.loads(peer.socket.recv(10))
        assert (reply["type"], reply["values"][0]["values"]) == ("reply", ["NaN", "NaN"])


# Large payloads


def test_uploads_and_downloads_go_in_chunks(peer: Peer) -> None:
    data = np.random.default_rng(0).standard_normal(1_500_000).astype("float32")
    peer.send_chunks(1, data.tobytes(), 1 << 20)
    n = len(data)
    peer.send(binary(1, [upload_op([n]), ["neg", [0]]], [1, 0], payloads=[Payload(upload=1)]))
    chunks: dict[int, list[Chunk]] = {}
    whole: dict[int, bytes] = {}
    while True:
        message, buffers = peer.receive()
        if isinstance(message, Reply):
            break
        chunks.setdefault(message.transfer, []).append(message)
        whole[message.transfer] = whole.get(message.transfer, b"") + bytes(buffers[0])
        assert buffers[0].nbytes <= CHUNK_BYTES
    ids = [value.download for value in message.values]
    assert sorted(chunks) == sorted(filter(None, ids))
    np.testing.assert_array_equal(np.frombuffer(whole[ids[0]], "float32"), -data)
    np.testing.assert_array_equal(np.frombuffer(whole[ids[1]], "float32"), data)
    assert all(chunk.total == data.nbytes for each in chunks.values() for chunk in each)


def test_small_values_stay_inside_the_reply_beside_large_ones(peer: Peer) -> None:
    n = INLINE_BYTES // 4 + 1
    reply, buffers = peer.apply(1, [["ones", [[n]]], ["sum", [0]], ["full", [[2], "float"]]], [1, 0, 2], scalars=[5.0])
    small, large, other = reply.values
    assert np.frombuffer(buffers[small.buffer], "float32")[0] == n
    assert np.frombuffer(buffers[f"d{large.download}"], "float32").sum() == n
    assert np.frombuffer(buffers[other.buffer], "float32").tolist() == [5, 5]


def test_an_upload_with_a_gap_ends_the_stream_and_not_the_session(
    server: LiveServer, http: httpx.Client, session: str
) -> None:
    with stream(server, session) as peer:
        peer.send(Chunk(1, 100, 200), [bytes(100)])
        answer, _ = peer.receive()
        assert answer.problem.code == "malformed_frame"
        assert closed(peer)[0] == 4400
    assert http.get(session).status_code == 200


def test_an_upload_over_the_limit_fails_its_frame(server: LiveServer, new_session: Callable[..., str]) -> None:
    session = new_session(limits={"max_tensor_bytes": 1000})
    with stream(server, session) as peer:
        peer.send_chunks(1, bytes(4000), 1000)
        reply, _ = peer.apply(1, [upload_op([1000])], [0], payloads=[Payload(upload=1)])
        assert reply.errors[0].code == "limit_exceeded"
        assert reply.errors[0].extra["setting"] == "GRADWIRE_MAX_TENSOR_BYTES"
        assert peer.apply(2, [])[0].refused is None


def test_a_message_over_the_limit_closes_the_stream(http: httpx.Client) -> None:
    with live_server(max_message_bytes=10_000) as server, server.http() as own:
        session = own.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            peer.socket.send(bytes(20_000))
            assert closed(peer)[0] == 1009
        with stream(server, session) as peer:
            assert peer.apply(1, [])[0].seq == 1


def test_a_client_that_sends_on_hears_why_it_was_refused(server: LiveServer, session: str) -> None:
    """Bytes that come after the refusal do not make the connection be reset, which would lose it."""
    url = urlsplit(server.stream_url + session.rsplit("/", 1)[-1] + "/stream")
    with socket.create_connection((url.hostname, url.port), timeout=20) as raw:
        lines = [
            f"GET {url.path} HTTP/1.1", f"Host: {url.netloc}", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            *[f"{name}: {value}" for name, value in server.headers.items()],
        ]  # fmt: skip
        raw.sendall("\r\n".join([*lines, "", ""]).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += raw.recv(1)
        raw.sendall(b"\x82\xff" + (1 << 40).to_bytes(8, "big") + bytes(4))
        for _ in range(20):  # nothing is read meanwhile
            raw.sendall(bytes(1 << 18))
            time.sleep(0.01)
        close = raw.recv(200)
        assert close[0] == 0x88
        assert int.from_bytes(close[2:4], "big") == 1009


# Resuming


def test_a_resumed_client_gets_replies_again_and_nothing_twice(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer:
        assert peer.welcome is not None
        client = peer.welcome.client
        first = (client << 32) + 1
        peer.apply(1, [["zeros", [[]]]], first=first)
        step = [["add_", [-1, "int"]]]
        peer.send(binary(2, step, [-1], external=[first], scalars=[1]))
        peer.socket.close_socket()  # cut, with the reply on its way or not
    with stream(server, session, greet=False) as peer:
        welcome = peer.hello(client=client)
        assert isinstance(welcome, Welcome)
        assert (welcome.client, welcome.expected) in ((client, 2), (client, 3))
        reply, buffers = peer.apply(2, step, [-1], external=[first], scalars=[1])
        assert reply.seq == 2
        assert np.frombuffer(buffers[0], "float32")[0] == 1
        _, buffers = peer.apply(3, step, [-1], external=[first], scalars=[1], ack=2)
        assert np.frombuffer(buffers[0], "float32")[0] == 2
        forgotten, _ = peer.apply(2, step, [-1], external=[first], scalars=[1])
        assert forgotten.refused is not None
        assert forgotten.refused.code == "reply_forgotten"


def test_large_values_come_again_after_resuming(server: LiveServer, session: str) -> None:
    ops = [["ones", [[3_000_000]]]]
    with stream(server, session) as peer:
        client = peer.welcome.client  # type: ignore[union-attr]
        peer.send(binary(1, ops, [0]))
        assert isinstance(peer.receive()[0], Chunk)
        peer.socket.close_socket()
    with stream(server, session, greet=False) as peer:
        peer.hello(client=client)
        reply, buffers = peer.apply(1, ops, [0])
        assert np.frombuffer(buffers[f"d{reply.values[0].download}"], "float32").sum() == 3_000_000


def test_a_client_that_resumes_elsewhere_closes_its_old_stream(server: LiveServer, session: str) -> None:
    with stream(server, session) as old, stream(server, session, greet=False) as new:
        new.hello(client=old.welcome.client)  # type: ignore[union-attr]
        assert closed(old)[0] == 4409
        assert new.apply(1, [])[0].seq == 1


def resume(peer: Peer, client: int, instance: str, epoch: int) -> Any:
    peer.send(Hello(version=PROTOCOL_VERSION, client=client, instance=instance, epoch=epoch))
    return peer.receive()[0]


def test_epochs_rise_with_each_welcome_and_frames_of_older_ones_are_refused(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as first, stream(server, session, greet=False) as second:
        before = resume(first, 0, "me", 0)
        after = resume(second, before.client, "me", before.epoch)
        assert after.epoch > before.epoch > 0
        refused, _ = second.apply(1, [], epoch=before.epoch)
        assert refused.refused is not None
        assert refused.refused.code == "superseded"
        assert second.apply(1, [], epoch=after.epoch)[0].refused is None


def test_a_program_whose_place_was_taken_is_refused_and_disturbs_nobody(server: LiveServer, session: str) -> None:
    with (
        stream(server, session, greet=False) as old,
        stream(server, session, greet=False) as new,
        stream(server, session, greet=False) as back,
    ):
        before = resume(old, 0, "old", 0)
        after = resume(new, before.client, "new", 0)
        assert closed(old)[0] == 4409
        refusal = resume(back, before.client, "old", before.epoch)
        assert refusal.problem.code == "superseded"
        assert closed(back)[0] == 4409
        assert new.apply(1, [], epoch=after.epoch)[0].refused is None


def test_the_welcome_tells_what_a_frame_survives(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer:
        assert peer.welcome is not None
        assert peer.welcome.durability == "none"  # a server without a data directory


# Ends


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\xff\xff\xff\x7f",
        b"\x01\0\0\0\xc1",
        b"\x05\0\0\0\x81\xa4type",
        envelope.join(envelope.encode(Reply(seq=1))),
        envelope.join(envelope.encode(Chunk(1, 0, 4))),
        envelope.join(envelope.encode(binary(1, [])))[:-1],
        envelope.join(envelope.encode(binary(1, []))) + b"more",
        "text that is not json",
        '{"type": "reply", "seq": 1}',
        '{"type": "frame", "seq": "one"}',
    ],
)
def test_a_broken_message_ends_the_stream_and_not_the_session(
    server: LiveServer, http: httpx.Client, session: str, data: bytes | str
) -> None:
    with stream(server, session) as peer:
        peer.apply(1, [["zeros", [[1]]]])
        peer.socket.send(data)
        answer = peer.socket.recv(10)
        if isinstance(answer, bytes):
            refusal = envelope.decode(answer)[0]
            assert isinstance(refusal, Refusal)
            code = refusal.problem.code
        else:
            code = json.loads(answer)["problem"]["code"]
        assert code == "malformed_frame"
        assert closed(peer)[0] == 4400
        client = peer.welcome.client  # type: ignore[union-attr]
    with stream(server, session, greet=False) as peer:
        assert peer.hello(client=client).expected == 2
    assert http.get(session).json()["contents"]["tensors"] == 1


def test_frames_before_a_broken_message_are_answered_first(peer: Peer) -> None:
    peer.send(binary(1, [["ones", [[200, 200]]], ["matmul", [0, 0]]], [1]))
    peer.socket.send(b"broken")
    assert peer.reply()[0].seq == 1
    assert isinstance(peer.receive()[0], Refusal)


def test_a_structure_nested_too_deeply_is_refused(peer: Peer) -> None:
    deep = b"\x91" * 100_000 + b"\x90"
    peer.send(Frame(seq=1, structure=msgspec.Raw(b"\x81\xa3ops" + deep)))
    answer, _ = peer.receive()
    found = answer.problem if isinstance(answer, Refusal) else answer.refused
    assert found.code == "malformed_frame"


def test_deleting_the_session_closes_its_streams(server: LiveServer, http: httpx.Client, session: str) -> None:
    with stream(server, session) as peer:
        http.delete(session)
        answer, _ = peer.receive()
        assert answer.problem.code == "session_gone"
        assert closed(peer)[0] == 4404


def test_a_client_that_does_not_read_cannot_fill_the_servers_memory() -> None:
    """Replies of 400 MB are asked for and not read: only a bounded part of them is ever computed."""
    with live_server(max_stream_backlog_bytes=8 << 20) as server, server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            peer.apply(1, [["zeros", [[1 << 20]]]], first=(peer.welcome.client << 32) + 1)  # type: ignore[union-attr]
            name = [(peer.welcome.client << 32) + 1]  # type: ignore[union-attr]
            for seq in range(2, 102):
                peer.send(binary(seq, [], [-1], external=name))
            time.sleep(1)
            ran = http.get(session).json()["contents"]["frames_applied"]
            assert ran < 60
            replies = [peer.reply()[0].seq for _ in range(100)]
            assert replies == list(range(2, 102))


def test_a_long_op_does_not_hold_up_others(server: LiveServer, http: httpx.Client, session: str) -> None:
    with stream(server, session) as peer:
        ops: list[Any] = [["ones", [[1500, 1500]]]] + [["matmul", [0, 0]]] * 6
        peer.send(binary(1, ops, []))
        meanwhile = -1
        while True:
            assert http.get("/livez").status_code == 200
            meanwhile += 1
            try:
                data = peer.socket.recv(0)
                assert isinstance(data, bytes)
                break
            except TimeoutError:
                continue
        assert meanwhile > 0, "the first answer came after the op"


def test_a_session_works_while_its_neighbour_is_busy(
    http: httpx.Client, server: LiveServer, new_session: Callable[..., str]
) -> None:
    busy, calm = new_session(), new_session()
    with stream(server, busy) as peer:
        peer.send(binary(1, [["ones", [[10]]]] + [["exp", [0]]] * 20_000, []))
        assert post(http, calm, frame([["ones", [[1]]]], [0]))["values"][0]["values"] == [1.0]
        assert peer.reply()[0].seq == 1
