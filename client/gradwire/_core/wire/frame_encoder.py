"""Encoding frames as messages: large payloads in chunks sent before the frame, known structures as their hash."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gradwire_protocol import envelope
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import ID_BITS, MAX_LINE_CHARS, Chunk, Frame, Payload, structure_hash
from gradwire_protocol.frames import Structure as StructureMessage
from gradwire_protocol.promotion import fits

from ..context.call_sites import Line, spell_line
from .send_window import SentFrame

CHUNK_BYTES: Final = 2 << 20
STRUCTURES_REMEMBERED: Final = 128
STRUCTURES_LOST: Final = 4096
"""Structures for which the reason for sending them again is kept."""
HASHES_REMEMBERED: Final = 256
LINES_SPELLED: Final = 4096
REMEMBERED_BYTES: Final = 4096
"""Structures up to this size are looked up instead of hashed again: most frames of a program are like others."""
HASHED_BYTES: Final = 64
"""A structure up to this size is always sent in full: a hash would save little."""

_EMPTY: Final = envelope.encode_part(StructureMessage(ops=[]))
# The default object itself: encoding omits a field only if it is that object.
_NOTHING: Final = Frame().structure


_hash_of_known: Final = lru_cache(HASHES_REMEMBERED)(structure_hash)


def hash_of(structure: bytes) -> bytes:
    """The hash of a structure; empty for a small one, which is always sent in full."""
    if len(structure) <= HASHED_BYTES:
        return b""
    return (_hash_of_known if len(structure) <= REMEMBERED_BYTES else structure_hash)(structure)


class FrameEncoder:
    """Encodes frames, and tracks which structures the server at the other end of the connection has cached.

    Attributes:
        hits: frames whose structure was sent as its hash.
        misses: frames whose structure was sent in full, by reason: ``new``, never sent before; ``reconnected``, sent
            for the first time over this connection; ``forgotten``, evicted here or on the server; ``small``, too
            small to be worth hashing.
        tells_lines: a structure goes with the program's lines, since a journal keeps it.
    """

    tells_lines = False

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}
        """Hashes of cached structures, least recently used first. The server's cache is larger."""
        self._lost: dict[bytes, str] = {}
        """Hashes that the server no longer has, with the reason."""
        self.hits = 0
        self.misses = {"new": 0, "reconnected": 0, "forgotten": 0, "small": 0}
        self._transfer = 0

    def number_uploads(self, epoch: int) -> None:
        """Start a new range of upload numbers: an earlier program may have left uploads unfinished."""
        self._transfer = epoch << 20

    def forget(self, why: str) -> None:
        """Forget all structures: the server, or its replacement, has none of them."""
        gone, self._known = self._known, {}  # a signal handler may send a frame meanwhile
        for key in gone:
            self._lose(key, why)

    def _lose(self, key: bytes, why: str) -> None:
        self._lost[key] = why
        if len(self._lost) > STRUCTURES_LOST:
            del self._lost[next(iter(self._lost))]

    def pack(
        self, frame: Frame, structure: bytes, payloads: list[memoryview], lines: list[Any], reads: int, read_bytes: int
    ) -> SentFrame:
        """Return a frame with everything needed to send it, once or repeatedly."""
        sent = SentFrame(frame, structure, [], lines, reads, read_bytes)
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

    def chunks(self, sent: SentFrame) -> Iterator[bytes]:
        """The messages to send before a frame, in order."""
        for transfer, data in sent.uploads.items():
            for offset in range(0, data.nbytes, CHUNK_BYTES):
                piece = data[offset : offset + CHUNK_BYTES]
                chunk = Chunk(transfer=transfer, offset=offset, total=data.nbytes)
                yield envelope.join(envelope.encode(chunk, [piece]))

    def message(self, sent: SentFrame) -> bytes:
        """The message of the frame itself. Call it only when the message is sent: it updates the cache's state."""
        frame = sent.frame
        known = frame.hash in self._known
        frame.structure = _NOTHING if known else msgspec.Raw(sent.structure)
        if self.tells_lines:
            frame.lines = [] if known else [_spelled_line(line) for line in sent.lines]
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
    """Encode the frame with ids relative to this client, if all are its own: a fifth of the bytes."""
    try:
        return _near(frame, buffers)
    except OverflowError:
        # A number beyond 64 bits, in a call whose form was cached. It is sent as text; the server's error names the op.
        frame.scalars = [_spelled(n) if type(n) is int and not fits(n) else n for n in frame.scalars]
        return _near(frame, buffers)


@lru_cache(LINES_SPELLED)
def _spelled_line(line: Line | None) -> str:
    return "" if line is None else spell_line(line)[-MAX_LINE_CHARS:]


def _spelled(number: int) -> str:
    bound = 1 << 65  # any larger number is refused alike
    return str(max(-bound, min(number, bound)))


def _near(frame: Frame, buffers: list[memoryview | bytes]) -> list[bytes | memoryview]:
    base = frame.client << ID_BITS
    if not frame.first > base:
        return envelope.encode(frame, buffers)
    # A copy: the frame is kept for resending, and an exception must not leave it half changed.
    near = replace(
        frame, first=frame.first - base, external=[number - base for number in frame.external],
        releases=[number - base for number in frame.releases], near=True,
    )  # fmt: skip
    return envelope.encode(near, buffers)


def replace_by_empty(sent: SentFrame, error: GradwireError) -> None:
    """Replace a frame that can never be applied with an empty one of the same number, and keep the cause."""
    sent.refusal = error
    sent.frame.scalars, sent.frame.payloads, sent.frame.external, sent.frame.buffers = [], [], [], []
    sent.structure, sent.frame.hash, sent.buffers, sent.uploads = _EMPTY, b"", [], {}
    sent.reads = sent.read_bytes = 0
