"""What ranks say to each other over a connection: a header, a text and raw bytes."""

from __future__ import annotations

import socket
import struct
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

_HEADER: Final = struct.Struct("<BxHIQQ")
HEADER_BYTES: Final = _HEADER.size
MAX_HELLO_BYTES: Final = 4096
MAX_TEXT_BYTES: Final = 60_000
LARGEST: Final = 1 << 32
"""Ranks send pieces far below this; whoever announces more is none."""


class Kind(IntEnum):
    """What a message is.

    ``DATA`` carries part of a tensor; ``AWAITED`` too, and its sender waits for ``RECEIVED`` with its number.
    ``COMMITTED`` says up to which number the other side need not keep its messages. ``FAILED`` says why a rank gives
    up, and ``HELLO`` who it is.
    """

    HELLO = 1
    DATA = 2
    AWAITED = 3
    RECEIVED = 4
    COMMITTED = 5
    FAILED = 6


class Hello(msgspec.Struct):
    """The first message of both sides.

    Attributes:
        secret: of the group, known to its ranks' hosts alone.
        sender, receiver: their ranks.
        expected: the number of the message that the sender needs next.
    """

    secret: str
    sender: int
    receiver: int
    expected: int


class Incoming(NamedTuple):
    """A message as it arrived."""

    kind: Kind
    number: int
    text: str
    data: bytearray


def head(kind: Kind, number: int, text: bytes = b"", nbytes: int = 0) -> bytes:
    """The header and the text of a message with ``nbytes`` bytes of data."""
    return _HEADER.pack(kind, len(text), 0, number, nbytes) + text


def read(connection: socket.socket, most: int = LARGEST) -> Incoming | None:
    """The next message; ``None`` at the end of the connection.

    Raises:
        OSError: when the connection breaks.
        ValueError: when this is none.
    """
    found = _exactly(connection, HEADER_BYTES)
    if found is None:
        return None
    kind, text_bytes, _, number, nbytes = _HEADER.unpack(found)
    if nbytes > most or text_bytes > most:
        raise ValueError(f"a message of {nbytes:,} bytes; the limit is {most:,}")
    text = _exactly(connection, text_bytes)
    data = _exactly(connection, nbytes)
    if text is None or data is None:
        return None
    return Incoming(Kind(kind), number, text.decode(), data)


def _exactly(connection: socket.socket, nbytes: int) -> bytearray | None:
    data = bytearray(nbytes)
    view, done = memoryview(data), 0
    while done < nbytes:
        got = connection.recv_into(view[done:])
        if not got:
            return None
        done += got
    return data


def greeting(hello: Hello) -> bytes:
    """A hello as bytes."""
    encoded = msgspec.json.encode(hello)
    return head(Kind.HELLO, 0, b"", len(encoded)) + encoded


def greeted(message: Incoming | None) -> Hello:
    """The hello that a message is.

    Raises:
        ValueError: when it is none.
    """
    if message is None or message.kind is not Kind.HELLO:
        raise ValueError("the connection does not begin with a hello")
    return msgspec.json.decode(message.data, type=Hello)


def tuned(connection: socket.socket) -> socket.socket:
    """A connection that sends small messages at once and notices a dead host."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection
