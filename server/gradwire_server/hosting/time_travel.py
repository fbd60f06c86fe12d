"""Time travel of a running session: checkpoints, rewinds, forks, looks at the past, and the search for a bad value."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import numpy as np

from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.backends import Backends
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import NotImageable, restore, revisited, take
from gradwire_protocol import envelope
from gradwire_protocol.errors import ArgumentValueError, InvalidRequest, OutOfMemory
from gradwire_protocol.frames import SEQS, Frame, place_of_position

from ..durable import checkpoints
from ..durable.history import Replay, Source, oldest_frame
from ..durable.records import Kind
from ..settings.session_spec import SessionSpec

MAGIC: Final = b"\xffPASTGW\xff"  # as a length, more than any file has
VISITOR: Final = "was made by a visitor of another frame"

FRAMES_KEPT: Final = 4096
SHOWN: Final = ("name", "frame", "bytes", "created")
"""What is told of a checkpoint."""
SAMPLES: Final = 1 << 20
"""Elements that are checked at once."""


class PastPlace(msgspec.Struct, array_like=True):
    """Where a fork or a look at the past begins: how it travels to the process that opens it."""

    folder: str
    frame: int

    def encode(self) -> bytes:
        """As bytes, which are no image's: those begin with the length of a header."""
        return MAGIC + msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes | memoryview) -> PastPlace:
        """The place in these bytes."""
        return msgspec.msgpack.decode(data[len(MAGIC) :], type=cls)

    @classmethod
    def found(cls, data: bytes | memoryview) -> PastPlace | None:
        """The place in these bytes; ``None`` if they are something else."""
        return cls.decode(data) if bytes(data[: len(MAGIC)]) == MAGIC else None


def no_journal(spec: SessionSpec) -> InvalidRequest:
    """The error of a session that keeps no journal."""
    return InvalidRequest(
        f"session {spec.id} has no journal, so nothing of its past is kept: its durability is {spec.durability!r}. "
        "Start the server with a data directory (GRADWIRE_DATA_DIR), and open the session with durability='applied' "
        "or 'durable'",
        durability=spec.durability, setting="GRADWIRE_DATA_DIR",
    )  # fmt: skip


def check_alone(session: Session) -> None:
    """Check that the session is in no group, whose other ranks would not travel with it.

    Raises:
        InvalidRequest: when it is.
    """
    if session.engine.groups:
        names = ", ".join(sorted(session.engine.groups))
        raise InvalidRequest(f"the session is in group {names}, whose other ranks do not travel along: close it first")


def imaged(session: Session) -> Any:
    """An image of a session.

    Raises:
        InvalidRequest: while it has transient state.
        OutOfMemory: when there is not enough memory.
    """
    try:
        return take(session)
    except NotImageable as error:
        raise InvalidRequest(f"the session cannot be kept at this moment: {error.message}") from None
    except MemoryError as error:
        raise OutOfMemory(f"not enough memory for an image of the session: {error}") from None


class Past:
    """A session that is only looked at: a replay, and a copy of its state for visitors, who may compute with it.

    Attributes:
        session: the copy.
    """

    def __init__(self, spec: SessionSpec, place: PastPlace, backends: Backends | None) -> None:
        self._limits, self._backends = spec.engine_limits(), backends
        self._replay = Replay(Source.of(Path(place.folder)), place.frame, backends)
        self.session = restore(imaged(self._replay.session), self._limits, backends)

    def advance(self, frame: int) -> Session:
        """The copy at another frame, for the same visitors.

        Raises:
            NotFound, JournalDamaged: as :class:`..durable.history.Replay`.
        """
        self._replay.advance(frame)
        image = imaged(self._replay.session)
        self.session = revisited(self.session, image, self._limits, VISITOR, self._backends)
        return self.session


def forked(place: PastPlace, backends: Backends | None) -> Any:
    """An image of a session as it was at a frame."""
    return imaged(Replay(Source.of(Path(place.folder)), place.frame, backends).session)


# The search

WANTED: Final[dict[str, Callable[[np.ndarray[Any, Any]], Any]]] = {
    "nan": np.isnan,
    "inf": np.isinf,
    "nonfinite": lambda values: ~np.isfinite(values),
}


class Found(msgspec.Struct, frozen=True):
    """The first value that was looked for.

    Attributes:
        op, index: of the record, in the frame.
        node: in a backward, the node whose derivative made it.
        line: where the program called the op; in a backward, the op that made the node. Empty if it is unknown.
    """

    frame: int
    client: int
    seq: int
    op: str
    index: int
    line: str
    node: str
    shape: list[int]
    name: str

    def described(self) -> dict[str, Any]:
        """As JSON."""
        return msgspec.structs.asdict(self)


class _Search:
    """Looks at what each record and each derivative of a replay makes."""

    def __init__(self, replay: Replay, wanted: str, name: str) -> None:
        self._replay = replay
        self._test = WANTED[wanted]
        self._name = name
        self.op, self.index, self.node, self.position = "", 0, "", -1
        self.shape: list[int] = []
        self.hit = False

    def results(self, op: str, index: int, tensors: list[Any]) -> None:
        """See :class:`ResultObserver`."""
        if not self.hit and not self._name:
            self._look(op, index, tensors, "", -1)

    def gradients(self, node: Any, gradients: Sequence[Any]) -> None:
        """See :class:`ResultObserver`."""
        if not self.hit and not self._name and node.edges:
            self._look("backward", -1, [g for g in gradients if g is not None], node.name, node.position)

    def named(self, session: Session) -> None:
        """Look at the tensor of the name that is looked for."""
        held = session.engine.names.get(self._name)
        if held is not None:
            self._look("", -1, [held], "", -1)

    def _look(self, op: str, index: int, tensors: list[Any], node: str, position: int) -> None:
        for tensor in tensors:
            if type(tensor) is Tensor and tensor.storage.poison is None and self._has(tensor):
                self.hit, self.op, self.index, self.node, self.position = True, op, index, node, position
                self.shape = list(tensor.shape)
                return

    def _has(self, tensor: Tensor) -> bool:
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            return False
        values = np.asarray(tensor.engine.to_numpy(tensor)).reshape(-1)
        if tensor.dtype.for_storage or values.dtype.kind not in "fc":
            values = values.astype(np.float32)
        return any(bool(self._test(values[at : at + SAMPLES]).any()) for at in range(0, len(values), SAMPLES))


def search(source: Source, wanted: str, name: str, backends: Backends, stop: Callable[[], bool]) -> Found | None:
    """Find the first value that is not a number (``nan``), infinite (``inf``) or either (``nonfinite``).

    The whole history that is kept is replayed once, and what each record and each derivative makes is looked at, also
    what its frame drops again. So the answer does not assume that the value stays.

    Args:
        name: look only at the tensor that has this name after each frame.
        stop: whether to give up.

    Raises:
        ArgumentValueError: for something else to look for.
    """
    if wanted not in WANTED:
        raise ArgumentValueError(f"look for {', '.join(WANTED)}, not {wanted!r:.80}")
    source = source._replace(spec=source.spec.with_plans(0))  # plans run whole frames, and make the same bits
    replay = Replay(source, None, backends)
    looking, lines = _Search(replay, wanted, name), _Lines()
    replay.session.engine.observer = looking
    for record in replay.steps():
        replay.session.engine.observer = looking  # a rewind makes another engine
        if record.kind != Kind.FRAME:
            continue
        frame = envelope.decode(record.message)[0]
        assert isinstance(frame, Frame)
        lines.note(replay.session, frame)
        if name:
            looking.named(replay.session)
        if looking.hit:
            return _found(replay, frame, looking, lines, name)
        if stop():
            break
    return None


def _found(replay: Replay, frame: Frame, looking: _Search, lines: _Lines, name: str) -> Found:
    index, line = looking.index, ""
    if looking.position >= 0:
        client, seq, at = place_of_position(looking.position)
        line = lines.at(client, seq, at)
        index = at if (client, seq) == (frame.client, frame.seq % SEQS) else -1
    elif index >= 0:
        line = lines.at(frame.client, frame.seq % SEQS, index)
    return Found(
        replay.frame, frame.client, frame.seq, looking.op, index, line, looking.node, looking.shape, name
    )  # fmt: skip


class _Lines:
    """The lines of the last frames of a replay, since the op of a derivative may be in an earlier frame."""

    def __init__(self) -> None:
        self._frames: OrderedDict[tuple[int, int], Sequence[str]] = OrderedDict()

    def note(self, session: Session, frame: Frame) -> None:
        """Note the lines of a frame that was applied."""
        lines: Sequence[str] = frame.lines
        if not lines and frame.hash:
            known = session.structures.get(frame.hash)
            lines = known.lines if known is not None else ()
        self._frames[frame.client, frame.seq % SEQS] = lines
        if len(self._frames) > FRAMES_KEPT:
            self._frames.popitem(last=False)

    def at(self, client: int, seq: int, index: int) -> str:
        """The line of a record; empty if it is unknown."""
        lines = self._frames.get((client, seq), ())
        return lines[index] if index < len(lines) else ""


class Journaled(Protocol):
    """What time travel needs of a runner."""

    spec: SessionSpec
    session: Session
    folder: Path | None


def history(runner: Journaled) -> dict[str, Any]:
    """How far back the session's folder reaches, and its checkpoints.

    Raises:
        InvalidRequest: when the session has no journal.
    """
    if runner.folder is None:
        raise no_journal(runner.spec)
    rows = [msgspec.structs.asdict(each) for each in checkpoints.listed(runner.folder)]
    return {
        "frame": runner.session.frames_applied, "oldest": oldest_frame(Source.of(runner.folder)),
        "checkpoints": [{key: row[key] for key in SHOWN} for row in rows],
    }  # fmt: skip


def now() -> float:
    """The Unix time of a new checkpoint, in milliseconds' precision."""
    return round(time.time(), 3)
