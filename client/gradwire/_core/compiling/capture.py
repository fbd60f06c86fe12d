"""A call that is being recorded for replays: the frames it sends, and what it does that cannot be replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from gradwire_protocol import envelope
from gradwire_protocol.frames import Frame, Structure
from gradwire_protocol.ops.control import GRAD_MODE
from gradwire_protocol.records import with_references
from gradwire_protocol.table import TABLE

from ..context.call_sites import spell_line, user_line
from ..optimizers.optimizer import Optimizer
from ..wire.frame_encoder import hash_of

if TYPE_CHECKING:
    from ..session.session import Session

_structures = msgspec.msgpack.Decoder(Structure)


@dataclass(slots=True)
class CapturedFrame:
    """A frame as it was sent."""

    structure: bytes
    key: bytes
    first: int
    external: list[int]
    scalars: list[Any]
    payloads: list[bytes]
    releases: list[int]
    lines: list[Any]


@dataclass(slots=True)
class CapturedStep:
    """An optimizer's step: which, from which record of the call to which, and which parameters had a gradient."""

    optimizer: Optimizer
    begin: int
    end: int
    flags: int
    grad_states: list[int]


def merged(frames: list[CapturedFrame], steps: list[CapturedStep], base: int) -> CapturedFrame:
    """Frames of one call as one frame, and the steps' records in it. A call may be cut, a replay need not be."""
    ops: list[Any] = []
    whole = CapturedFrame(b"", b"", frames[0].first, [], [], [], [], [])
    places: dict[int, int] = {}
    drops: list[int] = []
    begin, moves = 0, []
    first = whole.first
    for frame in frames:
        structure = structure_of(frame)

        def moved(ref: int, frame: CapturedFrame = frame) -> int:
            number = frame.first + ref if ref >= 0 else frame.external[-1 - ref]
            if number >= first:
                return number - first
            return -1 - places.setdefault(number, len(places))

        modes = [record[1][0] for record in ops if record[0] == "set_mode"]
        if modes and modes[-1] != GRAD_MODE:  # each frame begins in this mode
            ops.append(["set_mode", [GRAD_MODE]])
            whole.lines.append(None)
        moves.append((begin, begin + len(structure.ops), len(ops) - begin))
        begin += len(structure.ops)
        ops += [renumbered(record, moved) for record in structure.ops]
        drops += [frame.first + n - first for n in structure.drops]
        drops += [n - first for n in frame.releases if n >= base]
        whole.lines += frame.lines
        whole.scalars += frame.scalars
        whole.payloads += frame.payloads
    for step in steps:
        by_begin = next(move for start, end, move in moves if start <= step.begin < max(end, start + 1))
        by_end = next(move for start, end, move in moves if start < max(step.end, 1) <= end)
        step.begin, step.end = step.begin + by_begin, step.end + by_end
    whole.external = list(places)
    whole.structure = envelope.encode_part(Structure(ops=ops, drops=sorted(drops)))
    whole.key = hash_of(whole.structure)
    return whole


def structure_of(frame: Any) -> Structure:
    """A frame's structure, decoded."""
    return _structures.decode(frame.structure)


def renumbered(record: list[Any], moved: Callable[[int], int]) -> list[Any]:
    """A record whose references go elsewhere."""
    return [record[0], with_references(TABLE[record[0]], record[1], moved), *record[2:]]


class Capture:
    """What happens in a session while a function runs.

    Attributes:
        frames: what was sent.
        steps: of optimizers, whose numbers a replay asks for again.
        reason: why the function cannot be replayed, once that is known.
        shared: whether other threads may record meanwhile.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.frames: list[CapturedFrame] = []
        self.steps: list[CapturedStep] = []
        self.reason: str | None = None
        self.shared = False
        self._begin = session.recorded

    def refuse(self, what: str) -> None:
        """The function does something that a replay could not."""
        if self.reason is None:
            self.reason = f"{what} at {spell_line(user_line())}"

    def let_others(self) -> None:
        """The function is about to wait for another thread, which may have to record: it will not be replayed."""
        if not self.shared:
            self.shared = True
            self.session.lock.release()

    def sent(self, frame: Frame, structure: bytes, key: bytes, payloads: list[Any], lines: list[Any]) -> None:
        """Keep a frame that is about to be sent."""
        self.frames.append(
            CapturedFrame(
                structure, key, frame.first, list(frame.external), list(frame.scalars), [bytes(p) for p in payloads],
                list(frame.releases), list(lines),
            )
        )  # fmt: skip

    def stepping(self, optimizer: Optimizer, flags: int) -> None:
        """An optimizer begins a step."""
        at = self.session.recorded - self._begin
        states = [p._grad_state for group in optimizer.param_groups for p in group["params"]]
        self.steps.append(CapturedStep(optimizer, at, at, flags, states))

    def stepped(self) -> None:
        """It has ended."""
        self.steps[-1].end = self.session.recorded - self._begin
