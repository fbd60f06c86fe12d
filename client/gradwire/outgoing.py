"""Frames as the messages that they travel in: large payloads in chunks before them, known structures as their hash."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import ID_BITS, Chunk, Frame, Payload, structure_hash
from gradwire_protocol.frames import Structure as StructureMessage
from gradwire_protocol.promotion import fits

from .window import Sent

CHUNK_BYTES: Final = 2 << 20
STRUCTURES_REMEMBERED: Final = 128
STRUCTURES_LOST: Final = 4096
"""Of which it is told why they are sent again."""
HASHED_BYTES: Final = 64
"""A structure that is not larger is sent as it is: its hash would save little."""

_EMPTY: Final = envelope.encode_part(StructureMessage(ops=[]))
# The default itself: only that very object is left out when a frame is encoded.
_NOTHING: Final = Frame().structure


def hash_of(structure: bytes) -> bytes:
    """The hash that a structure is known by; nothing for a small one, which travels whole each time."""
    return structure_hash(structure) if len(structure) > HASHED_BYTES else b""


class Outgoing:
    """What the server at the other end of the connection has got already.

    Attributes:
        hits: frames whose structure travelled as its hash.
        misses: frames whose structure travelled whole, by the reason why: ``new`` was never sent before,
            ``reconnected`` goes over this connection for the first time, ``forgotten`` was known and had to make room
            (here or on the server), ``small`` is not larger than its hash would be.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}
        """Hashes of structures, those that were not used for longest first. The server keeps more of them."""
        self._lost: dict[bytes, str] = {}
        """Those that are not known any more, and why."""
        self.hits = 0
        self.misses = {"new": 0, "reconnected": 0, "forgotten": 0, "small": 0}
        self._transfer = 0

    def number_uploads(self, epoch: int) -> None:
        """Begin the numbers of uploads anew: a program that was here before may have left some unfinished."""
        self._transfer = epoch << 20

    def forget(self, why: str) -> None:
        """The server, or another one in its place, knows no structure."""
        for key in self._known:
            self._lose(key, why)
        self._known.clear()

    def _lose(self, key: bytes, why: str) -> None:
        self._lost[key] = why
        if len(self._lost) > STRUCTURES_LOST:
            del self._lost[next(iter(self._lost))]

    def pack(
        self, frame: Frame, structure: bytes, payloads: list[memoryview], lines: list[Any], reads: int, read_bytes: int
    ) -> Sent:
        """A frame with all that it takes to send it, however often."""
        sent = Sent(frame, structure, [], lines, reads, read_bytes)
        sent.size += len(structure)
        for data in payloads:
            sent.size += data.nbytes
            if data.nbytes > CHUNK_BYTES:
                self._transfer += 1
                sent.uploads[self._transfer] = data
                frame.payloads.append(Payload(upload=self._transfer))
            else:
                frame.payloads.append(Payload(buffer=len(sent.buffers)))
                sent.buffers.append(data)
        return sent

    def chunks(self, sent: Sent) -> Iterator[bytes]:
        """The messages that go before a frame, in order."""
        for transfer, data in sent.uploads.items():
            for offset in range(0, data.nbytes, CHUNK_BYTES):
                piece = data[offset : offset + CHUNK_BYTES]
                chunk = Chunk(transfer=transfer, offset=offset, total=data.nbytes)
                yield envelope.join(envelope.encode(chunk, [piece]))

    def message(self, sent: Sent) -> bytes:
        """The message of a frame itself, which is about to be sent."""
        frame = sent.frame
        known = frame.hash in self._known
        frame.structure = _NOTHING if known else msgspec.Raw(sent.structure)
        if known:
            self.hits += 1
            del self._known[frame.hash]
            self._known[frame.hash] = None
        elif frame.hash:
            self.misses[self._lost.pop(frame.hash, "new")] += 1
            self._remember(frame.hash)
        else:
            self.misses["small"] += 1
        sent.sent_at = -1 if sent.sent_at else time.perf_counter_ns()
        return envelope.join(_encoded(frame, sent.buffers))

    def _remember(self, key: bytes) -> None:
        self._known[key] = None
        if len(self._known) > STRUCTURES_REMEMBERED:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._lose(oldest, "forgotten")


def _encoded(frame: Frame, buffers: list[memoryview | bytes]) -> list[bytes | memoryview]:
    """The frame's message, with its ids as counters of this client, which all of them are: a fifth of the bytes."""
    try:
        return _near(frame, buffers)
    except OverflowError:
        # A number that no op takes, in a call whose form was known: the server says which op's it is.
        frame.scalars = [_spelled(n) if type(n) is int and not fits(n) else n for n in frame.scalars]
        return _near(frame, buffers)


def _spelled(number: int) -> str:
    bound = 1 << 65  # how far beyond does not matter
    return str(max(-bound, min(number, bound)))


def _near(frame: Frame, buffers: list[memoryview | bytes]) -> list[bytes | memoryview]:
    base = frame.client << ID_BITS
    if not frame.first > base:
        return envelope.encode(frame, buffers)
    # A copy: the frame is kept to be sent again, and an exception in between must not change it.
    near = replace(
        frame, first=frame.first - base, external=[number - base for number in frame.external],
        releases=[number - base for number in frame.releases], near=True,
    )  # fmt: skip
    return envelope.encode(near, buffers)


def replace_by_empty(sent: Sent, error: GradwireError) -> None:
    """A frame that will never be applied: its number is used up by an empty one, and the cause is kept."""
    sent.refusal = error
    sent.frame.scalars, sent.frame.payloads, sent.frame.external, sent.frame.buffers = [], [], [], []
    sent.structure, sent.frame.hash, sent.buffers, sent.uploads = _EMPTY, b"", [], {}
    sent.reads = sent.read_bytes = 0
