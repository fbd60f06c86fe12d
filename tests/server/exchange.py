"""Requests of tests to a server: frames as JSON over REST, and messages on a stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
from websockets.sync.client import ClientConnection, connect

from gradwire_protocol import envelope
from gradwire_protocol.frames import PROTOCOL_VERSION, Chunk, Frame, Hello, Message, Reply, Structure, Welcome
from tests.live_server import LiveServer


def frame(ops: list[Any], reads: list[int] | None = None, **facts: Any) -> dict[str, Any]:
    """A frame as JSON."""
    return {"structure": {"ops": ops, "reads": reads or []}, **facts}


def upload(values: Any, dtype: str, shape: list[int], **facts: Any) -> dict[str, Any]:
    """A frame that makes one tensor of nested lists."""
    return frame([["upload", ["payload", dtype, shape]]], payloads=[{"values": values}], **facts)


def post(http: httpx.Client, session: str, body: dict[str, Any]) -> dict[str, Any]:
    """Apply a frame and return its reply, in which nothing failed."""
    response = http.post(f"{session}/frames", json=body)
    assert response.status_code == 200, response.text
    reply: dict[str, Any] = response.json()
    assert not reply.get("errors"), reply
    return reply


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The response's problem document, which must be complete and be this one."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    found: dict[str, Any] = response.json()
    assert (response.status_code, found["code"]) == (status, code), found
    assert found["status"] == status
    assert found["type"] == f"urn:gradwire:problem:{code}"
    assert found["title"]
    assert found["detail"]
    assert found["request_id"] == response.headers["x-request-id"]
    assert isinstance(found["retryable"], bool)
    return found


class Peer:
    """The client's end of a stream."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.welcome: Welcome | None = None

    def hello(self, client: int = 0, version: int = PROTOCOL_VERSION) -> Any:
        """Say hello and return what the server answers."""
        self.send(Hello(version=version, client=client, agent="test"))
        answer, _ = self.receive()
        if isinstance(answer, Welcome):
            self.welcome = answer
        return answer

    def send(self, message: Message, buffers: list[bytes | memoryview] | None = None) -> None:
        self.socket.send(envelope.join(envelope.encode(message, buffers or [])))

    def send_chunks(self, transfer: int, data: bytes, size: int) -> None:
        for offset in range(0, len(data), size):
            self.send(Chunk(transfer, offset, len(data)), [data[offset : offset + size]])

    def receive(self, timeout: float = 240) -> tuple[Any, list[memoryview]]:
        data = self.socket.recv(timeout)
        assert isinstance(data, bytes)
        return envelope.decode(data)

    def apply(self, seq: int, ops: list[Any], reads: list[int] | None = None, **facts: Any) -> tuple[Reply, Any]:
        """Send a frame, and return its reply with the buffers, large values gathered."""
        self.send(binary(seq, ops, reads, **facts))
        return self.reply()

    def reply(self) -> tuple[Reply, Any]:
        downloads: dict[int, bytearray] = {}
        while True:
            message, buffers = self.receive()
            if isinstance(message, Chunk):
                whole = downloads.setdefault(message.transfer, bytearray(message.total))
                whole[message.offset : message.offset + buffers[0].nbytes] = buffers[0]
            else:
                assert isinstance(message, Reply), message
                return message, {**dict(enumerate(buffers)), **{f"d{k}": v for k, v in downloads.items()}}


def binary(seq: int, ops: list[Any], reads: list[int] | None = None, **facts: Any) -> Frame:
    """A frame as it travels on a stream."""
    structure = msgspec.msgpack.encode(Structure(ops, reads or []))
    return Frame(seq=seq, structure=msgspec.Raw(structure), **facts)


@contextmanager
def stream(server: LiveServer, session: str, key: str | None = None, greet: bool = True) -> Iterator[Peer]:
    """An open stream of a session (named by its path), with a new client."""
    with connect(
        server.stream_url + session.rsplit("/", 1)[-1] + "/stream",
        additional_headers={"Authorization": f"Bearer {key or server.api_key}"},
        compression=None,
        max_size=None,
        ping_interval=None,
    ) as socket:
        peer = Peer(socket)
        if greet:
            peer.hello()
        yield peer
