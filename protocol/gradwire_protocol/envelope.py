"""The bytes of a message: a header length, a MessagePack header, then raw buffers.

Layout, little-endian: ``uint32`` length of the header; the header; then each buffer at the next multiple of 64 bytes
from the start. The header's ``buffers`` field lists their lengths. Received buffers are slices, not copies.
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
"""Encode any MessagePack value, for example a structure."""


def encode(
    message: Any, buffers: Sequence[memoryview | bytes] = (), encoder: msgspec.msgpack.Encoder = _encoder
) -> list[bytes | memoryview]:
    """The message as a list of pieces to write in order; buffers are not copied."""
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
    """The header's declared length."""
    return int.from_bytes(data[:_PREFIX], "little")


def header_of(data: bytes | bytearray | memoryview) -> memoryview:
    """The header of a message, as a view.

    Raises:
        MalformedFrame: if it is incomplete.
    """
    return _header(memoryview(data).toreadonly())


def _header(whole: memoryview) -> memoryview:
    size = int.from_bytes(whole[:_PREFIX], "little")
    if len(whole) < _PREFIX:
        raise MalformedFrame(f"the message has {len(whole)} bytes, too few for a header length")
    if _PREFIX + size > len(whole):
        raise MalformedFrame(f"the header is truncated: expected {size} bytes, got {len(whole) - _PREFIX}")
    return whole[_PREFIX : _PREFIX + size]


def decode(
    data: bytes | bytearray | memoryview, decoder: msgspec.msgpack.Decoder[Any] = _decoder
) -> tuple[Any, list[memoryview]]:
    """The message and its buffers, as read-only views into ``data``. The default decoder accepts the protocol's
    messages.

    Raises:
        MalformedFrame: naming the mismatch.
    """
    whole = memoryview(data).toreadonly()
    header = _header(whole)
    try:
        message = decoder.decode(header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrame(f"the header is not a valid message: {error}") from None
    at = _PREFIX + len(header)
    buffers: list[memoryview] = []
    lengths = getattr(message, "buffers", ())
    if len(lengths) > MAX_BUFFERS:
        raise MalformedFrame(f"the message has more than {MAX_BUFFERS:,} buffers")
    for length in lengths:
        at += -at % ALIGNMENT
        if length < 0 or at + length > len(whole):
            raise MalformedFrame(f"a buffer of {length} bytes at offset {at} exceeds the message of {len(whole)} bytes")
        buffers.append(whole[at : at + length])
        at += length
    if at != len(whole):
        raise MalformedFrame(f"the message has {len(whole) - at} unexpected bytes after the last buffer")
    return message, buffers
