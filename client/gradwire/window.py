"""The frames that were sent and are not answered: what is kept to be sent again, and how much that may be.

The server keeps a client's replies until they are acknowledged, 1,024 of them with 64 MB of values together, and the
last one however large it is. So that it never has to forget one that may be asked for again, no more frames may be
unanswered than ``IN_FLIGHT_FRAMES``, with reads of ``IN_FLIGHT_READS`` bytes together, or one frame alone with any
read. A frame acknowledges all before the window it is sent in: what the server then keeps is within the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import Frame, Reply

from .lines import spell_line

if TYPE_CHECKING:
    from .recorder import Travelled

IN_FLIGHT_FRAMES: Final = 256
IN_FLIGHT_BYTES: Final = 32 << 20
"""Bytes that are kept to be sent again. A frame that is larger goes alone."""
IN_FLIGHT_READS: Final = 32 << 20
"""Bytes that replies on their way may have together. A larger read, or one of unknown size, goes alone."""
UNKNOWN_BYTES: Final = 1 << 50
"""Stands for the size of a read that depends on data."""
FRAME_OVERHEAD: Final = 512


@dataclass(slots=True)
class Sent:
    """A frame that was sent, or waits to be sent again, and is not answered yet.

    Attributes:
        structure: its encoded structure, in case the server has forgotten the hash.
        lines: where in the program each op was issued.
        reads: how many values it reads; ``read_bytes`` are expected.
        uploads: large payloads, sent in chunks before the frame.
        refusal: why an empty frame goes in its place.
        unknown: how often the server did not know its structure.
        size: about how many bytes it holds here.
        sent_at: when it was sent (``perf_counter_ns``); -1 once it was sent again.
        note: who is told when it is answered, of a frame that is profiled.
        wanted: whether somebody waits for the answer.
    """

    frame: Frame
    structure: bytes
    buffers: list[memoryview | bytes]
    lines: list[Any]
    reads: int = 0
    read_bytes: int = 0
    uploads: dict[int, memoryview] = field(default_factory=dict)
    size: int = FRAME_OVERHEAD
    refusal: GradwireError | None = None
    unknown: int = 0
    sent_at: int = 0
    note: Travelled | None = None
    wanted: bool = False


class Turn(Protocol):
    """Somebody's turn to record: it is not ``busy`` any more once somebody else has taken it."""

    busy: bool


@dataclass(slots=True)
class Answer:
    """A reply with the values' bytes gathered."""

    reply: Reply
    buffers: list[memoryview]
    lines: list[Any]
    refusal: GradwireError | None


class Window:
    """Unanswered frames, oldest first.

    Attributes:
        answered: number of the last frame that was answered; those in the window follow it without a gap.
        most_bytes: how much may be held to be sent again.
        held, reading: bytes that are held, and that replies are expected to bring.
    """

    def __init__(self) -> None:
        self.answered = 0
        self.most_bytes = IN_FLIGHT_BYTES
        self.held = 0
        self.reading = 0
        self._frames: deque[Sent] = deque()

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Sent]:
        return iter(list(self._frames))

    @property
    def next(self) -> int:
        """Number of the next frame."""
        return self._frames[-1].frame.seq + 1 if self._frames else self.answered + 1

    @property
    def first(self) -> Sent | None:
        """The frame whose answer is due."""
        return self._frames[0] if self._frames else None

    def find(self, seq: int) -> Sent | None:
        """The frame of this number, if it is among them."""
        return next((sent for sent in self if sent.frame.seq == seq), None)

    def fits(self, size: int, read_bytes: int) -> bool:
        """Whether a frame of so many bytes, that reads so many, may follow."""
        return not self._frames or (
            len(self._frames) < IN_FLIGHT_FRAMES
            and self.held + size <= self.most_bytes
            and self.reading + read_bytes <= IN_FLIGHT_READS
        )

    def add(self, sent: Sent, turn: Turn | None = None) -> bool:
        """Keep a frame until it is answered, unless somebody came in between since it was made, and took its turn."""
        new = (sent,)
        if turn is not None and not turn.busy:
            return False
        self._frames += new  # and so on without a call: nobody comes in between
        self.held += sent.size
        self.reading += sent.read_bytes
        return True

    def answer(self, sent: Sent) -> None:
        """The first frame is answered."""
        if not self._frames or self._frames[0] is not sent:
            return
        self.answered = sent.frame.seq  # before it goes: counting anew would find that it is answered
        del self._frames[0]
        self.held -= sent.size
        self.reading -= sent.read_bytes

    def count(self) -> None:
        """Count anew. An interrupt may have come between two steps of the above."""
        while self._frames and self._frames[0].frame.seq <= self.answered:
            self._frames.popleft()
        self.held = sum(sent.size for sent in self)
        self.reading = sum(sent.read_bytes for sent in self)

    def facts(self) -> dict[str, Any]:
        """What an error tells of them: how many, of how many ops, from which line of the program to which."""
        lines = [line for sent in self for line in sent.lines if line is not None]
        return {
            "answered": self.answered,
            "unanswered": len(self._frames),
            "ops": sum(len(sent.lines) for sent in self),
            "lines": [spell_line(lines[0]), spell_line(lines[-1])] if lines else [],
        }

    def describe(self) -> str:
        """Which frames they are, in words; empty when there are none."""
        if not self._frames:
            return ""
        facts = self.facts()
        first, last = self._frames[0].frame.seq, self._frames[-1].frame.seq
        which = f"frame {first}" if first == last else f"frames {first} to {last}"
        where = ", issued from {} to {}".format(*facts["lines"]) if facts["lines"] else ""
        return f"{which} ({facts['ops']} ops{where})"
