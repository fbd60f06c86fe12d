"""How a message and its raw buffers become bytes: a header length, a MessagePack header, then the buffers.

Layout, little-endian: ``uint32`` length of the header; the header; then each buffer at the next multiple of 64
bytes counted from the start. The header's ``buffers`` field lists the buffers' lengths. Buffers are never copied on
the way in: they are slices of the received bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from .errors import MalformedFrame
from .frames import Message

ALIGNMENT: Final = 64
MAX_BUFFERS: Final = 1 << 16
_PREFIX: Final = 4
_PADDING: Final = bytes(ALIGNMENT)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)

encode_part = _encoder.encode
"""Encode anything MessagePack can carry, e.g. a structure."""


def encode(
    message: Any, buffers: Sequence[memoryview | bytes] = (), encoder: msgspec.msgpack.Encoder = _encoder
) -> list[bytes | memoryview]:
    """The message as a list of pieces to be written one after another; buffers are not copied."""
    if buffers:
        message.buffers = [len(b) if isinstance(b, bytes) else b.nbytes for b in buffers]
    header = encoder.encode(message)
    pieces: list[bytes | memoryview] = [len(header).to_bytes(_PREFIX, "little"), header]
    if not buffers:
        return pieces
    at = _PREFIX + len(header)
    for buffer, size in zip(buffers, message.buffers, strict=True):
        gap = -at % ALIGNMENT
        if gap:
            pieces.append(_PADDING[:gap])
        pieces.append(buffer)
        at += gap + size
    return pieces


def join(pieces: Sequence[bytes | memoryview]) -> bytes:
    """The pieces as one byte string."""
    return b"".join(pieces)


def header_size(data: bytes | bytearray | memoryview) -> int:
    """How long the header says it is."""
    return int.from_bytes(data[:_PREFIX], "little")


def header_of(data: bytes | bytearray | memoryview) -> memoryview:
    """The header of a message, as a view.

    Raises:
        MalformedFrame: when it is not there whole.
    """
    return _header(memoryview(data).toreadonly())


def _header(whole: memoryview) -> memoryview:
    size = int.from_bytes(whole[:_PREFIX], "little")
    if len(whole) < _PREFIX:
        raise MalformedFrame(f"{len(whole)} bytes are too few for a message")
    if _PREFIX + size > len(whole):
        raise MalformedFrame(f"the header should have {size} bytes, {len(whole) - _PREFIX} arrived")
    return whole[_PREFIX : _PREFIX + size]


def decode(
    data: bytes | bytearray | memoryview, decoder: msgspec.msgpack.Decoder[Any] = _decoder
) -> tuple[Any, list[memoryview]]:
    """The message and its buffers, as read-only views into ``data``. Messages are the protocol's, unless a decoder
    for others is given.

    Raises:
        MalformedFrame: saying what does not fit.
    """
    whole = memoryview(data).toreadonly()
    header = _header(whole)
    try:
        message = decoder.decode(header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrame(f"the header is not a message: {error}") from None
    at = _PREFIX + len(header)
    buffers: list[memoryview] = []
    lengths = getattr(message, "buffers", ())
    if len(lengths) > MAX_BUFFERS:
        raise MalformedFrame(f"the message has more than {MAX_BUFFERS:,} buffers")
    for length in lengths:
        at += -at % ALIGNMENT
        if length < 0 or at + length > len(whole):
            raise MalformedFrame(f"a buffer of {length} bytes at offset {at} leaves the message of {len(whole)}")
        buffers.append(whole[at : at + length])
        at += length
    if at != len(whole):
        raise MalformedFrame(f"{len(whole) - at} bytes follow the last buffer")
    return message, buffers
