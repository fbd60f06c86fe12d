"""What of a session's recording a replay steps around: it sends frames that were recorded another time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradwire_protocol.frames import Frame

if TYPE_CHECKING:
    from ..session.session import Session


@dataclass(slots=True)
class FrameTemplate:
    """A frame of a call. References to externals are their numbers; to earlier frames, -1 - the result's offset."""

    structure: bytes
    key: bytes
    first: int
    external: list[int]
    scalars: list[Any]
    payloads: list[memoryview]
    releases: list[int]
    lines: list[Any]
    records: int


@dataclass(slots=True)
class TrialSend:
    """What was recorded in a trial."""

    ops: list[Any] = field(default_factory=list)
    scalars: list[Any] = field(default_factory=list)
    external: list[int] = field(default_factory=list)


def send(
    session: Session, part: FrameTemplate, base: int, external: list[int], scalars: list[Any], repeat: int = 0,
    stacked: list[int] | None = None,
) -> int:  # fmt: skip
    """Send a frame of a call whose first result gets the id ``base``, with what was dropped since the last frame."""
    builder = session.builder
    seq = 0
    while not seq:
        builder.begin()
        builder.end_alone()
        batch = builder.dropped[:]  # others are dropped meanwhile
        dropped = [n for n in batch if n > 0]
        frame = Frame(
            first=base + part.first, external=external, scalars=scalars,
            releases=sorted([*dropped, *[base + n for n in part.releases]]),
            repeat=repeat, stacked=stacked or [],
        )  # fmt: skip
        seq = builder.hand_over(batch, frame, part.structure, part.key, list(part.payloads), part.lines)
    builder.sent_ops += part.records * max(repeat, 1)
    builder.changes += part.records
    builder.recent_lines.keep(seq, part.lines)
    return seq


def skip_ids(session: Session, count: int) -> None:
    """The next results get ids after those of ``count`` others. Nothing is recorded at this moment."""
    builder = session.builder
    builder.next_id += count
    builder.begin_frame()


@contextmanager
def trial(session: Session) -> Iterator[TrialSend]:
    """What is recorded in the extent of the ``with`` is not sent but handed over. Nothing is recorded before it.

    Ids that it used up are not used again: their tensors may be dropped at any moment.
    """
    tried = TrialSend()
    builder = session.builder
    changes = builder.changes
    try:
        yield tried
    finally:
        tried.ops, tried.scalars, tried.external = builder.records, builder.scalars, list(builder.external)
        builder.changes = changes
        builder.begin_frame()
