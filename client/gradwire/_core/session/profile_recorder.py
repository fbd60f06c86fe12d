"""What a profile notes while it runs: ops as they are recorded, frames as they travel, waits, and named ranges.

Nothing here asks the server for anything: the times of the server's side come with the replies to frames that were
sent anyway. All times are nanoseconds of this process's clock, or of the server's where it says so.
"""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from gradwire_protocol.table import Op

from ..context.call_sites import Line, user_stack
from ..wire.frame_travel import FrameTravel
from ..wire.server_clock import ServerClock
from .opened import OPENED

if TYPE_CHECKING:
    from .round_trips import Key


class Range:
    """A named stretch of the program: ``record_function``, or a step of the profile."""

    __slots__ = ("args", "began", "ended", "name", "parent", "thread")

    def __init__(self, name: str, args: str | None, parent: Range | None) -> None:
        self.name = name
        self.args = args
        self.parent = parent
        self.thread = threading.get_ident()
        self.began = perf_counter_ns()
        self.ended = 0


class RecordedOp:
    """An op as it was recorded: where in its frame, when, from which line, in which range."""

    __slots__ = ("began", "ended", "index", "inside", "line", "name", "shapes", "stack", "thread")

    def __init__(self, name: str, index: int, began: int, line: Line | None, inside: Range | None) -> None:
        self.name = name
        self.index = index
        self.began = began
        self.ended = perf_counter_ns()
        self.line = line
        self.inside = inside
        self.thread = threading.get_ident()
        self.shapes: list[Any] = []
        self.stack: list[str] = []


class RecordedWait:
    """A line that waited for the server: for the frame of this number, or (0) for room to record on."""

    __slots__ = ("began", "ended", "key", "seq", "session", "thread")

    def __init__(self, session: Any, key: Key, began: int, ended: int, seq: int) -> None:
        self.session = session
        self.key = key
        self.began = began
        self.ended = ended
        self.seq = seq
        self.thread = threading.get_ident()


class ProfileRecorder:
    """Notes what sessions do from :meth:`start` to :meth:`stop`.

    Args:
        shapes: note the shapes of operands, too.
        stacks: note the lines that led to an op, too.
    """

    def __init__(self, shapes: bool = False, stacks: bool = False) -> None:
        self.shapes = shapes
        self.stacks = stacks
        self.began = self.ended = 0
        self.frames: list[FrameTravel] = []
        self.waits: list[RecordedWait] = []
        self.ranges: list[Range] = []
        self._inside = threading.local()

    # Beginning and ending

    def start(self) -> None:
        """Note what all sessions do, also those that are opened from now on.

        Raises:
            RuntimeError: while another profile runs.
        """
        global _current
        with _lock:
            if _current is not None:
                raise RuntimeError("a profile is running already: stop it before another one is started")
            _current = self
        self.began = self.began or perf_counter_ns()
        self.ended = 0
        for session in OPENED:
            self.attach(session)

    def attach(self, session: Any) -> None:
        """Note what this session does."""
        session.builder.cut_for(self)
        session.builder.recorder = self
        session.waits.watching = lambda key, began, ended, seq: self.waits.append(
            RecordedWait(session, key, began, ended, seq)
        )

    def stop(self) -> None:
        """Note nothing more. Nothing is sent and nothing waited for."""
        global _current
        with _lock:
            if _current is self:
                _current = None
        self.ended = perf_counter_ns()
        for session in OPENED:
            if session.builder.recorder is self:
                session.builder.recorder = None
                session.waits.watching = None

    def settle(self) -> None:
        """Send what was noted and not sent, and wait for the times that the server has not told yet."""
        for frame in reversed(self.frames):  # with the last one, all before it are answered
            if not frame.arrived and not frame.session.closed:
                frame.session.reader.settle(frame)
        # One offset for all frames of a connection: else two that followed each other might seem to overlap.
        offsets: dict[ServerClock, int] = {}
        for frame in self.frames:
            if frame.clock is not None:
                if frame.clock not in offsets:
                    offsets[frame.clock] = frame.clock.offset
                frame.offset = offsets[frame.clock]

    # While it runs

    def recorded(self, frame: FrameTravel | None, session: Any, op: Op, values: list[Any], index: int,
                 began: int, line: Line | None) -> FrameTravel:  # fmt: skip
        """Note an op. Returns the notes of the frame that it is in, begun here where it is the first."""
        if frame is None:
            frame = FrameTravel(session)
            frame.began = began
            self.frames.append(frame)
        note = RecordedOp(op.name, index, began, line, self.inside)
        if self.shapes:
            note.shapes = [_shape(value) for value in values]
        if self.stacks:
            note.stack = user_stack()
        frame.ops.append(note)
        return frame

    def plain(self, session: Any) -> FrameTravel:
        """Note a frame with none of the ops that are noted: it only reads, or was recorded before."""
        frame = FrameTravel(session)
        self.frames.append(frame)
        return frame

    @property
    def inside(self) -> Range | None:
        """The innermost range that is open in this thread."""
        found: Range | None = getattr(self._inside, "range", None)
        return found

    def enter(self, name: str, args: str | None) -> Range:
        """Open a range."""
        made = Range(name, args, self.inside)
        self.ranges.append(made)
        self._inside.range = made
        return made

    def leave(self, opened: Range) -> None:
        """Close a range."""
        opened.ended = perf_counter_ns()
        self._inside.range = opened.parent


def _shape(value: Any) -> list[Any]:
    """The shape of an operand as PyTorch's profiler spells it: a list of ints, of lists for several tensors; ``[]``
    for what is no tensor."""
    meta = getattr(value, "_form", None)
    if meta is not None:
        return list(meta.shape) if meta.known else ["?"]
    if type(value) is list and any(hasattr(v, "_form") for v in value):
        return [_shape(v) for v in value]
    return []


_lock = threading.Lock()
_current: ProfileRecorder | None = None


def current() -> ProfileRecorder | None:
    """The recorder of the profile that runs."""
    return _current
