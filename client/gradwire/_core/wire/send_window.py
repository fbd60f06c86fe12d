"""The window of unanswered frames, which are kept for resending, and its bounds.

The server keeps a client's replies until they are acknowledged: at most 1,024, with 64 MB of values in total, and the
last one whatever its size. So that it never drops a reply that may be needed again, at most ``IN_FLIGHT_FRAMES`` frames
may be unanswered, with reads of ``IN_FLIGHT_READS`` bytes in total, or a single frame with a read of any size. A frame
acknowledges all frames before the window it is sent in, so the server's replies are those of the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import Frame, Reply

from ..context.call_sites import spell_line

if TYPE_CHECKING:
    from .frame_travel import FrameTravel

IN_FLIGHT_FRAMES: Final = 256
IN_FLIGHT_BYTES: Final = 32 << 20
"""Bytes of frames kept for resending. A larger frame is sent alone."""
IN_FLIGHT_READS: Final = 32 << 20
"""Bytes of values in all expected replies. A larger read, or one of unknown size, is sent alone."""
UNKNOWN_BYTES: Final = 1 << 50
"""The size of a read that depends on data."""
FRAME_OVERHEAD: Final = 512


@dataclass(slots=True)
class SentFrame:
    """A frame that was sent, or waits to be sent again, and is not answered yet.

    Attributes:
        structure: its encoded structure, in case the server has evicted it.
        lines: where in the program each op was issued.
        reads: the number of values it reads; ``read_bytes``: their expected size.
        uploads: large payloads, sent in chunks before the frame.
        refusal: why an empty frame is sent in its place.
        unknown: how often the server did not know its structure.
        malformed: how many malformed replies to it have arrived.
        size: its approximate memory.
        sent_at: when it was sent (``perf_counter_ns``); -1 after it was sent again.
        note: the profile's record of the frame, if it is profiled.
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
    malformed: int = 0
    sent_at: int = 0
    note: FrameTravel | None = None
    wanted: bool = False

    def without_values(self, error: GradwireError) -> Reply:
        """The reply to a frame that was applied and whose values are lost: its reads raise ``error``."""
        self.refusal, self.reads = error, 0
        return Reply(seq=self.frame.seq)


class SendLock(Protocol):
    """A caller's turn to record: ``busy`` becomes false when another caller takes over."""

    busy: bool


@dataclass(slots=True)
class Answer:
    """A reply with all bytes of its values."""

    reply: Reply
    buffers: list[memoryview]
    lines: list[Any]
    refusal: GradwireError | None


class SendWindow:
    """Unanswered frames, oldest first.

    Attributes:
        answered: number of the last answered frame; those in the window follow it without a gap.
        most_bytes: the limit of ``held``.
        held, reading: bytes kept for resending, and bytes of values expected in replies.
    """

    def __init__(self) -> None:
        self.answered = 0
        self.most_bytes = IN_FLIGHT_BYTES
        self.held = 0
        self.reading = 0
        self._frames: deque[SentFrame] = deque()

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[SentFrame]:
        return iter(list(self._frames))

    @property
    def next(self) -> int:
        """Number of the next frame."""
        return self._frames[-1].frame.seq + 1 if self._frames else self.answered + 1

    @property
    def first(self) -> SentFrame | None:
        """The oldest frame, whose answer comes next."""
        return self._frames[0] if self._frames else None

    def find(self, seq: int) -> SentFrame | None:
        """The frame of this number, if it is in the window."""
        return next((sent for sent in self if sent.frame.seq == seq), None)

    def fits(self, size: int, read_bytes: int) -> bool:
        """Whether a frame of ``size`` bytes that reads ``read_bytes`` may be added."""
        return not self._frames or (
            len(self._frames) < IN_FLIGHT_FRAMES
            and self.held + size <= self.most_bytes
            and self.reading + read_bytes <= IN_FLIGHT_READS
        )

    def add(self, sent: SentFrame, turn: SendLock | None = None) -> bool:
        """Keep a frame until it is answered; return False if another caller has taken the turn."""
        new = (sent,)
        if turn is not None and not turn.busy:
            return False
        self._frames += new  # no call from here on, so no signal handler can run in between
        self.held += sent.size
        self.reading += sent.read_bytes
        return True

    def answer(self, sent: SentFrame) -> None:
        """Remove the oldest frame, which has been answered."""
        if not self._frames or self._frames[0] is not sent:
            return
        self.answered = sent.frame.seq  # first, so that a recount after an interrupt removes it
        del self._frames[0]
        self.held -= sent.size
        self.reading -= sent.read_bytes

    def count(self) -> None:
        """Recompute the counts. An interrupt may have come between two steps of :meth:`add` or :meth:`answer`."""
        while self._frames and self._frames[0].frame.seq <= self.answered:
            self._frames.popleft()
        self.held = sum(sent.size for sent in self)
        self.reading = sum(sent.read_bytes for sent in self)

    def facts(self) -> dict[str, Any]:
        """The details for an error: the numbers of frames and ops, and the first and last line of the program."""
        lines = [line for sent in self for line in sent.lines if line is not None]
        return {
            "answered": self.answered,
            "unanswered": len(self._frames),
            "ops": sum(len(sent.lines) for sent in self),
            "lines": [spell_line(lines[0]), spell_line(lines[-1])] if lines else [],
        }

    def describe(self) -> str:
        """A description of the frames; empty if there are none."""
        if not self._frames:
            return ""
        facts = self.facts()
        first, last = self._frames[0].frame.seq, self._frames[-1].frame.seq
        which = f"frame {first}" if first == last else f"frames {first} to {last}"
        where = ", issued from {} to {}".format(*facts["lines"]) if facts["lines"] else ""
        return f"{which} ({facts['ops']} ops{where})"
