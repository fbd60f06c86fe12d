"""Stream messages are handled in the callback that delivers them; all paths keep the order."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode

from gradwire_protocol import envelope
from gradwire_protocol.frames import PROTOCOL_VERSION, Frame, Hello, Reply, Welcome
from gradwire_server.http.connection_limits import LimitedStream
from tests.live_server import LiveServer, live_server

from .exchange import Peer, binary, stream

FRAMES = 300


def packed(message: Frame | Hello) -> bytes:
    return envelope.join(envelope.encode(message, []))


def small(client: int, seq: int, reads: bool = True) -> Frame:
    made = binary(seq, [["ones", [[3]]]], [0] if reads else [], first=(client << 32) + seq)
    return made


def numbered(peer: Peer, seqs: range) -> None:
    """The next replies are to these frames, in order, and each has its value."""
    for seq in seqs:
        reply, buffers = peer.receive()
        assert isinstance(reply, Reply)
        assert reply.refused is None
        assert (reply.seq, buffers[0].nbytes) == (seq, 12)


@contextmanager
def new_stream(server: LiveServer) -> Iterator[Peer]:
    with server.http() as http, stream(server, http.post("/v1/sessions").headers["location"]) as peer:
        yield peer


def client_of(peer: Peer) -> int:
    assert peer.welcome is not None
    return peer.welcome.client


def test_frames_that_come_with_the_hello_are_answered_behind_the_welcome(server: LiveServer, session: str) -> None:
    with stream(server, session, greet=False) as peer:
        peer.send(Hello(version=PROTOCOL_VERSION, agent="test"))
        for seq in range(1, 40):
            peer.send(small(2, seq))
        welcome, _ = peer.receive()
        assert isinstance(welcome, Welcome)
        assert welcome.client == 2
        numbered(peer, range(1, 40))


def test_people_and_programs_on_one_stream_are_answered_in_order(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer:
        client = client_of(peer)
        for seq in range(1, 41):
            if seq % 3:
                peer.send(small(client, seq))
            else:
                text = {"type": "frame", "seq": seq, "structure": {"ops": [["ones", [[3]]]], "reads": [0]}}
                peer.socket.send(json.dumps(text | {"first": (client << 32) + seq}))
        for seq in range(1, 41):
            if seq % 3:
                numbered(peer, range(seq, seq + 1))
            else:
                reply = json.loads(peer.socket.recv(60))
                assert (reply["seq"], reply["values"][0]["values"]) == (seq, [1, 1, 1])


def test_a_message_in_pieces_is_taken_as_one(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer:
        client = client_of(peer)
        for seq in range(1, 10):
            data = packed(small(client, seq))
            peer.socket.send(data[at : at + 7] for at in range(0, len(data), 7))
        numbered(peer, range(1, 10))


def test_text_that_is_none_ends_the_stream(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer:
        peer.send(small(client_of(peer), 1))
        numbered(peer, range(1, 2))
        broken = WebSocketFrame(Opcode.TEXT, b"\xff\xfe").serialize(mask=True)
        peer.socket.socket.sendall(broken)
        with pytest.raises(ConnectionClosed) as end:
            peer.socket.recv(20)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1007


@pytest.mark.parametrize("backlog", [2_000, 1 << 26])
@pytest.mark.parametrize("direct", [True, False])
def test_many_frames_at_once_are_answered_in_order_through_any_protocol_and_backlog(
    direct: bool, backlog: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not direct:
        monkeypatch.setattr(LimitedStream, "handle_connect", WebSocketsSansIOProtocol.handle_connect)
    with live_server(max_stream_backlog_bytes=backlog) as server, new_stream(server) as peer:
        client = client_of(peer)
        for seq in range(1, FRAMES + 1):
            peer.send(small(client, seq))
        numbered(peer, range(1, FRAMES + 1))


def test_a_client_that_vanishes_in_the_middle_of_a_burst_can_resume(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer:
        client = client_of(peer)
        for seq in range(1, FRAMES + 1):
            peer.send(small(client, seq))
        peer.socket.socket.shutdown(socket.SHUT_RDWR)
    with stream(server, session, greet=False) as peer:
        welcome = peer.hello(client=client)
        assert isinstance(welcome, Welcome)
        for seq in range(1, FRAMES + 1):  # those that were applied are answered from the kept replies
            peer.send(small(client, seq))
        numbered(peer, range(1, FRAMES + 1))


def test_others_are_answered_in_the_middle_of_a_burst(server: LiveServer, session: str) -> None:
    with stream(server, session) as peer, httpx.Client(base_url=server.url, timeout=240) as other:
        client = client_of(peer)
        for seq in range(1, FRAMES + 1):
            peer.send(small(client, seq))
            if not seq % 50:
                assert other.get("/livez").status_code == 200
        numbered(peer, range(1, FRAMES + 1))
