"""What ranks say to each other over a connection: a header, a text and raw bytes."""

from __future__ import annotations

import hashlib
import hmac
import socket
import struct
import time
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec
import numpy as np

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
    """How a connection begins: the connecting side's, the accepting side's with its proof, the first again with its.

    Attributes:
        group: what stands for the group's secret, which is never sent.
        sender, receiver: their ranks.
        expected: the number of the message that the sender needs next.
        nonce: random, of this connection.
        proof: that the sender knows the secret.
    """

    group: str
    sender: int
    receiver: int
    expected: int
    nonce: str = ""
    proof: str = ""


def group_of(secret: str) -> str:
    """What stands for a group's secret."""
    return hashlib.sha256(b"gradwire-group-1." + secret.encode()).hexdigest()


def proof(secret: str, connecting: Hello, accepting: Hello, sender: int) -> str:
    """What only a side that knows the secret can say about these two hellos."""
    said = [sender, *(msgspec.structs.replace(hello, proof="") for hello in (connecting, accepting))]
    return hmac.new(secret.encode(), b"gradwire-rank-1." + msgspec.json.encode(said), hashlib.sha256).hexdigest()


class Incoming(NamedTuple):
    """A message as it arrived."""

    kind: Kind
    number: int
    text: str
    data: memoryview


def head(kind: Kind, number: int, text: bytes = b"", nbytes: int = 0) -> bytes:
    """The header and the text of a message with ``nbytes`` bytes of data."""
    return _HEADER.pack(kind, len(text), 0, number, nbytes) + text


def read(connection: socket.socket, most: int = LARGEST, deadline: float | None = None) -> Incoming | None:
    """The next message; ``None`` at the end of the connection.

    Args:
        deadline: monotonic time for the whole message.

    Raises:
        OSError: when the connection breaks.
        ValueError: when this is none.
    """
    found = _exactly(connection, HEADER_BYTES, deadline)
    if found is None:
        return None
    kind, text_bytes, _, number, nbytes = _HEADER.unpack(found)
    if nbytes > most or text_bytes > most:
        raise ValueError(f"a message of {nbytes:,} bytes; the limit is {most:,}")
    text = _exactly(connection, text_bytes, deadline) if text_bytes else memoryview(b"")
    data = _exactly(connection, nbytes, deadline)
    if text is None or data is None:
        return None
    return Incoming(Kind(kind), number, str(text, "utf-8"), data)


def _exactly(connection: socket.socket, nbytes: int, deadline: float | None) -> memoryview | None:
    data = memoryview(np.empty(nbytes, np.uint8))  # type: ignore[arg-type]  # not zeroed, unlike a bytearray
    done = 0
    while done < nbytes:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the message did not arrive in time")
            connection.settimeout(left)
        got = connection.recv_into(data[done:])
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
