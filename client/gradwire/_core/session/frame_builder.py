"""The frame that a session is recording: ops go into its tables, and when it is cut it is sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol import dtypes, envelope
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ConnectionLost, InternalError, Unsupported
from gradwire_protocol.frames import ID_BITS, Frame, Structure
from gradwire_protocol.ops.control import GRAD_MODE
from gradwire_protocol.records import PAYLOAD, encode_args, mentioned
from gradwire_protocol.table import DEFAULT_DTYPE, TABLE, Op

from ..context.biased_lock import NOBODY, ONE_THREAD_AT_A_TIME, BiasedLock
from ..context.call_sites import Line, RecentLines, user_line
from ..context.modes import MODES
from ..tensor.tensor import Moved, Tensor
from ..wire.frame_encoder import hash_of
from ..wire.link import Link
from .expected_calls import Call, Expected, Ids, record_of
from .pieces import Pieces

if TYPE_CHECKING:
    from ..graph.recorded_call import RecordedCall
    from ..tensor.tensor import Tensor
    from ..wire.frame_travel import FrameTravel
    from .profile_recorder import ProfileRecorder

OPS_PER_FRAME: Final = 2048
_UPLOAD: Final = TABLE["upload"]


class FrameBuilder:
    """Records the ops of a session, and cuts frames. It belongs to the thread whose turn it is.

    Args:
        session: the session, to which the tensors belong that records refer to.
        link: what makes frames arrive.
        resumed: whether a program before used this client's ids, so that the session is asked for the first free one.

    Attributes:
        records, lines: of the frame: its ops, and where the program called each.
        scalars, payloads, external: the frame's tables of numbers, of data and of the ids of tensors made before it.
        payload_bytes: what its payloads take.
        first, next_id: the ids of its first result, and of the next one.
        limit: at how many records the frame is sent, or its limit raised.
        lock: whose turn it is to record.
        stirred, watched: whether the thread that sends the frame of a quiet program was woken, as an event and plainly.
        dropped: ids whose proxies are gone, to be released with the next frame.
        sent_frames, sent_ops: how many were sent.
        changes: how many of the ops that were recorded may change memory.
        along: by frame, the ids whose values it asks for beside those of tensors that are read.
        expected: the calls that were recorded ahead of the program, until it makes another or the next frame is cut.
        recent_lines: the lines of frames that were sent.
        travel: what a profile notes of the frame.
        pieces: where a frame is cut before it is due.
        closed: whether nothing can be recorded any more.
        default_dtype: what Python's floats become.
    """

    def __init__(self, session: Any, link: Link, resumed: bool) -> None:
        self.session = session
        self.link = link
        self.lock = BiasedLock()
        self.dropped: list[int] = []
        self.sent_frames = 0
        self.sent_ops = 0
        self.changes = 0
        self.along: dict[int, list[int]] = {}
        self.expected: Expected | None = None
        self.default_dtype = dtypes.float32
        self._recorder: ProfileRecorder | None = None
        self.closed = False
        self._goes_on = False  # whether the frame is cut before it is due
        self.next_id = self._first_free_id() if resumed else self.base + 1
        self._nowhere = 0
        self.stirred = threading.Event()
        self.watched = False
        self.pieces = Pieces(min(OPS_PER_FRAME, link.limits.get("max_ops_per_frame", OPS_PER_FRAME)))
        self.recent_lines = RecentLines(link.client)
        self.begin_frame()

    def _first_free_id(self) -> int:
        """The id after all that the program before has used: the one that the session chooses for a result."""
        structure = envelope.encode_part(Structure(ops=[["zeros", [[0]]]], drops=[0]))
        seq = self.link.submit(Frame(), structure, b"", [], [None], wait=True)
        return self.link.wait(seq).reply.first

    def begin_frame(self) -> None:
        """Begin a frame, whatever becomes of what was recorded."""
        self.expect_nothing()
        self.limit = self.pieces.begin()
        self._number = 0
        self._batch: list[int] = []
        self._renew(0, 0)

    def _renew(self, frames: int, recorded: int) -> None:
        """Begin a frame after so many with so many ops, unless somebody came in between and did so."""
        number, following = self._number, self.link.next_frame
        records: list[Any] = []
        lines: list[Any] = []
        scalars: list[Any] = []
        payloads: list[Any] = []
        external: dict[int, int] = {}
        batch, none = self._batch, list[int]()
        count = len(batch)
        if number == following or self._number != number:
            return
        self._number = following  # from here on nothing is called, so that nobody comes in between
        if count and self.dropped[:count] == batch:  # an id is dropped once
            del self.dropped[:count]
        self.sent_frames += frames
        self.sent_ops += recorded
        self.records, self.lines, self.scalars, self.payloads = records, lines, scalars, payloads
        self.external, self._batch, self.payload_bytes = external, none, 0
        self.first = self.next_id
        self._flags = GRAD_MODE
        self._region: Any = None
        self.travel: FrameTravel | None = None
        self._due = self._due_beyond = False
        self.lock.busy = False
        self._let_through()

    def begin(self) -> None:
        """Whoever has the lock calls this before anything else: others wait, and what an exception left is mended."""
        lock = self.lock
        if lock.owner != get_ident() or lock.busy:
            lock.hold()
        if lock.broken:
            self._mend()

    def _mend(self) -> None:
        """After an exception at any moment: the tables are those of the records that are whole.

        The records decide. One of which not all is there is forgotten, and the other tables, counted anew from the
        records, are cut to what these mention. Results that were counted and that nobody got are dropped.
        """
        self.lock.ready = self.lock.joins = NOBODY
        if self.link.next_frame != self._number:  # the link had the frame already
            self._cut()
        else:
            records, lines = self.records, self.lines
            whole = min(len(records), len(lines))
            del records[whole:], lines[whole:]
            numbers = payloads = results = 0
            for name, args, *count in records:
                more = mentioned(name, args)
                numbers, payloads = numbers + more[0], payloads + more[1]
                declared = TABLE[name].results
                results += count[0] if declared is None else declared
            del self.scalars[numbers:], self.payloads[payloads:]
            self.payload_bytes = sum(each.nbytes for each in self.payloads)
            following = self.first + results
            lost = range(self.next_id, following)
            self.next_id = following
            self.dropped += lost
        self.link.mend()
        self.lock.broken = False

    def stir(self) -> None:
        """Wake what sends a frame once the program is quiet."""
        self.watched = True
        self.stirred.set()

    def holds(self, line: Line) -> bool:
        """Whether the last record of the frame is the one that was given this very line. The caller has the lock."""
        self.begin()
        return bool(self.lines) and self.lines[-1] is line

    def _cut(self) -> None:
        """The link has the frame: what was dropped goes with it, and a new one begins. Done twice, it is done once."""
        self._renew(1, len(self.records))

    def _let_through(self) -> None:
        """Let this thread, whose turn it is, take the fast path, if an op is nothing but its record now."""
        plain = ONE_THREAD_AT_A_TIME and self._plain and self.expected is None
        lock = self.lock
        lock.joins = MODES.thread | self._flags if plain else NOBODY
        lock.ready = NOBODY if self._due or self._due_beyond else lock.joins

    @property
    def base(self) -> int:
        """Where this client's ids begin."""
        return self.link.client << ID_BITS

    def close(self) -> None:
        """Have nothing recorded any more."""
        self.closed = True
        self.lock.ready = self.lock.joins = NOBODY

    @property
    def recorder(self) -> ProfileRecorder | None:
        """Of the profile that runs."""
        return self._recorder

    @recorder.setter
    def recorder(self, recorder: ProfileRecorder | None) -> None:
        self._recorder = recorder
        self.lock.ready = self.lock.joins = NOBODY

    def use_default_dtype(self, dtype: DType) -> None:
        """Have Python's floats become this, as the server does from the same record on."""
        self.default_dtype = dtype
        self.lock.ready = self.lock.joins = NOBODY

    def frame_ends(self) -> None:
        """The frame is due to end, after a backward or an optimizer's step: with the next read, or before the next
        record that does not belong to these. So a training step is one frame, whether or not its loss is read."""
        self._due = bool(self.records)
        self.lock.ready = NOBODY

    def frame_ends_beyond(self) -> None:
        """As :meth:`frame_ends`, but all that is computed with results of the frame still belongs to it: gradients that
        were asked for are used at once, and then the next step begins with other tensors."""
        self._due_beyond = bool(self.records)
        self.lock.ready = NOBODY

    def record(
        self, op: Op, values: list[Any], results: int, recipe: RecordedCall | None = None, line: Line | None = None
    ) -> int:
        """Add an op to the frame. Returns the id of its first result; the others follow.

        A recipe spares the encoding of arguments that were encoded before; a line that is known is not looked for.
        """
        with self.lock:
            first = -1
            while first < 0:
                self.begin()
                if self.closed:
                    raise InternalError("the session is closed")
                if self.expected is not None and (first := self._made_ahead(op, values)) >= 0:
                    break
                if (self._due or (self._due_beyond and not self._belongs(values))) and not op.after_backward:
                    self._due = self._due_beyond = False  # where it cannot be sent now, it goes on
                    self.flush()
                if len(self.records) >= self.limit:
                    self._reach_limit()
                try:
                    first = self._try(op, values, results, recipe, line)
                except BaseException:
                    self.lock.broken = True
                    self.lock.busy = False
                    raise
            self._let_through()
            return first

    def _reach_limit(self) -> None:
        """Send the frame, or raise its limit, before anything is recorded: if it fails, the op can be tried again."""
        full = self.limit >= self.pieces.most
        if full or (MODES.capture is None and self.pieces.cuts(self.records)):
            self._goes_on = True
            try:
                if self.flush(must=full) is not None:
                    return
            finally:
                self._goes_on = False
        self.limit = self.pieces.most

    def _try(self, op: Op, values: list[Any], results: int, recipe: RecordedCall | None, line: Line | None) -> int:
        """Make the record and append it. Below 0 if somebody came in between, and the references found here are no
        longer those to write down."""
        self.lock.busy = True
        recorder = self._recorder
        began = 0 if recorder is None else time.perf_counter_ns()
        records: list[Any] = []
        lines: list[Any] = []
        modes = flags, region = MODES.flags, MODES.region
        if flags != self._flags:
            records.append(["set_mode", [flags]])
            lines.append(None)
        if region is not self._region:
            records.append(["set_region", [None if region is None else self.reference(region.handle)]])
            lines.append(None)
        scalars: list[Any] = []
        payloads: list[Any] = []
        if recipe is not None and recipe.template is not None:
            args = recipe.template.copy()
            for i in recipe.references:
                args[i] = self.reference(values[i])
            for i in recipe.lists:
                args[i] = self.references(values[i])
            scalars += [values[i] for i in recipe.numbers]
        elif op is _UPLOAD:  # programs upload all the time
            data, dtype, shape, device = values
            args = [PAYLOAD, dtype.name, shape] if device == "cpu" else [PAYLOAD, dtype.name, shape, device]
            payloads.append(data)
        else:
            args = encode_args(op, values, Tensor.__instancecheck__, self.reference, scalars, payloads)
        records.append([op.name, args] if op.results is not None else [op.name, args, results])
        lines.append(user_line() if line is None else line)
        first = self.append(records, lines, scalars, results, payloads, modes)
        if first < 0:
            return first
        if op.mutates is not None or op.control:
            self.changes += 1
        if recorder is not None:
            at = len(self.records) - 1
            self.travel = recorder.recorded(self.travel, self.session, op, values, at, began, self.lines[at])
        return first

    def append(
        self, records: list[Any], lines: list[Any], scalars: list[Any], results: int,
        payloads: Sequence[memoryview] = (), modes: tuple[int, Any] | None = None,
    ) -> int:  # fmt: skip
        """Append records, with the lines and the numbers that belong to them, and end the turn, at one go: a signal's
        handler or a destructor may come at any moment and record something, too.

        Whoever calls this has said that the lock is ``busy`` before it looked for references. ``modes`` are those that
        the records change to. Returns the id of the first result; the others follow. Below 0 if somebody came in
        between: nothing is recorded then.
        """
        size = self.payload_bytes
        for payload in payloads:
            size += payload.nbytes
        lock = self.lock
        if not lock.busy:
            return -1
        first = self.next_id  # from here on nothing is called, so that nobody comes in between
        self.scalars += scalars
        if payloads:
            self.payloads += payloads
            self.payload_bytes = size
        self.records += records
        self.lines += lines
        self.next_id = first + results
        if modes is not None:
            self._flags, self._region = modes
        lock.busy = False
        if not self.watched:
            self.stir()
        return first

    def _belongs(self, values: list[Any]) -> bool:
        """Whether these arguments of an op are, or have among them, a result of the frame."""
        first = self.first
        for value in values:
            for each in value if type(value) in (list, tuple) else (value,):
                if isinstance(each, Tensor) and each._session is self.session and each._id >= first:
                    return True
        return False

    def reference(self, tensor: Tensor) -> int:
        """How a record of the frame refers to a tensor: to a result of the frame, or, below 0, to an external one."""
        if tensor._session is not self.session:
            raise ArgumentError(
                f"tensors of different sessions, {self.session.id} and {tensor._session.id}, were used together: each "
                "session computes on its own"
            )
        number: int = tensor._id
        slot: int = number - self.first
        if slot >= 0:
            return slot
        table = self.external
        at: int | None = table.get(number)
        if at is None:
            if number < 0:
                raise Unsupported(
                    f"{tensor._form!r} has no values: a tensor on the meta device is its shape and dtype, and nothing "
                    "can be computed from it on another"
                )
            at = table[number] = len(table)
        return -1 - at

    def references(self, tensors: list[Tensor | None]) -> list[int | None]:
        """References to several: an optimizer's step names all parameters of a model."""
        first, known = self.first, self.external.get
        found: list[int | None] = []
        for tensor in tensors:
            if tensor is None:
                found.append(None)
                continue
            number = tensor._id
            at = known(number) if number < first and tensor._session is self.session else None
            found.append(self.reference(tensor) if at is None else -1 - at)
        return found

    @property
    def recorded(self) -> int:
        """How many ops were recorded so far."""
        return self.sent_ops + len(self.records)

    def nowhere(self, count: int = 1) -> int:
        """An id for a tensor on the meta device, below zero; those of ``count - 1`` others follow it."""
        self._nowhere -= count
        return self._nowhere

    @property
    def _plain(self) -> bool:
        """Whether ops are nothing but their records now."""
        return not (
            self.closed or self._recorder is not None or self._region is not None
            or self.default_dtype is not DEFAULT_DTYPE or self._flags & ~GRAD_MODE
        )  # fmt: skip

    # Calls that are recorded ahead of the program

    def record_ahead(self, calls: list[Call], ids: Ids) -> Expected | None:
        """Add calls that the program will probably make after the read that ends the frame. ``None`` if that cannot be.

        The caller has the lock, and passes the calls to :meth:`expect` once it has the frame's answer.
        """
        self.begin()
        if not self._plain or len(self.records) + 2 * len(calls) > self.pieces.most:
            return None
        self.lock.busy = True
        try:
            records: list[Any] = []
            lines: list[Any] = []
            numbers: list[Any] = []
            flags = self._flags
            for call in calls:
                if call.flags != flags:
                    flags = call.flags
                    records.append(["set_mode", [flags]])
                    lines.append(None)
                records.append(record_of(call, lambda reference: self._refer(ids.number(reference))))
                lines.append(call.line)
                numbers += call.numbers
            made = self.append(records, lines, numbers, len(calls), modes=(flags, None))
        except BaseException:
            self.lock.broken = True
            self.lock.busy = False
            raise
        return None if made < 0 else Expected(self.session, calls, ids, made, self.recorded)

    def _refer(self, number: int) -> int:
        """How a record of the frame refers to the tensor of an id."""
        if number >= self.first:
            return number - self.first
        at = self.external.get(number)
        if at is None:
            at = self.external[number] = len(self.external)
        return -1 - at

    def expect(self, expected: Expected) -> None:
        """From now on, take the program's calls for these, which were recorded ahead and done, as long as they are."""
        self.begin()
        if self.recorded == expected.recorded and self._plain:
            self.expected = expected
            self.lock.ready = self.lock.joins = NOBODY

    def _made_ahead(self, op: Op, values: list[Any]) -> int:
        """The id of the result of a call that was recorded ahead. Below 0 for any other call, after which nothing is
        expected."""
        expected = self.expected
        if expected is None:
            return -1
        at, results = expected.taken, expected.results
        if not results:
            return -1  # somebody came in between
        is_next = self._plain and self.recorded == expected.recorded and expected.is_next(op, values)
        if self.expected is not expected or expected.taken != at:
            return -1
        if not is_next:
            self.expect_nothing()
            return -1
        expected.taken = at + 1
        if expected.taken == len(expected.calls):
            self.expected = None
        results[at].__class__ = Moved  # whoever makes the call has another proxy
        return expected.made + at

    def expect_nothing(self) -> None:
        """The program goes another way."""
        expected, self.expected = self.expected, None
        if expected is not None:
            expected.let_go()

    # Cutting frames

    def flush(
        self, wait: bool = False, reads: Sequence[Tensor] = (), read_bytes: int = 0, must: bool = False,
        along: Sequence[int] = (),
    ) -> int | None:  # fmt: skip
        """Send what was recorded, without waiting for it. Returns the frame's number, or None if nothing was sent.

        Where as much is on its way as may be, it waits until there is room. If the server cannot be reached then, what
        was recorded stays recorded; with ``wait`` or ``must`` that is raised. ``along`` are ids of tensors that are
        read, too, if they are still there: :attr:`along`.

        Raises:
            ConnectionLost: as said.
        """
        with self.lock:
            seq = 0
            while not seq:
                self.begin()
                self.expect_nothing()  # else its results would not be released with this frame
                if not self.records and not reads and not wait:
                    return None
                try:
                    self.link.make_room(self.payload_bytes, read_bytes)
                except ConnectionLost:
                    if wait or must:
                        raise
                    return None
                seq = self._end_frame(wait, reads, read_bytes, along)
            return seq

    def _end_frame(self, wait: bool, reads: Sequence[Tensor], read_bytes: int, along: Sequence[int]) -> int:
        """Hand the frame to the link. 0 if somebody came in between and the frame is another one now."""
        self.end_alone()
        try:
            if self.travel is None and self._recorder is not None:
                self.travel = self._recorder.plain(self.session)
            link, first, note = self.link, self.first, self.travel
            records, payloads, lines = self.records, self.payloads, self.lines
            asked = [self.reference(tensor) for tensor in reads]
            dropped = self.dropped[:]  # others are dropped meanwhile
            along = [number for number in along if self.base < number < self.next_id and number not in dropped]
            asked += [self._refer(number) for number in along]
            drops = [number - first for number in dropped if number >= first]
            releases = [number for number in dropped if 0 < number < first]
            drops.sort()
            releases.sort()
            structure = envelope.encode_part(Structure(ops=records, reads=asked, drops=drops, heard=wait and not asked))
            frame = Frame(
                first=first,
                external=list(self.external),
                scalars=self.scalars,
                releases=releases,
                timed=wait or note is not None,
            )
            key = hash_of(structure)
            before = 0
            if note is not None:
                frame.detailed = True
                note.cut, note.total = time.perf_counter_ns(), len(records)
                before = link.bytes_sent
        except BaseException:
            self.lock.broken = True
            self.lock.busy = False
            raise
        seq = self.hand_over(dropped, frame, structure, key, payloads, lines, wait, len(asked), read_bytes, note)
        if seq:
            self.limit = self.pieces.sent(key, len(records), self._goes_on)
            if along:
                self.along[seq] = along
            if note is not None:
                note.seq, note.sent, note.sent_bytes = seq, time.perf_counter_ns(), link.bytes_sent - before
            self.recent_lines.keep(seq, lines)
        return seq

    def end_alone(self) -> None:
        """From now on until the frame is cut, whoever comes in between takes the turn, and is noticed."""
        self.lock.ready = self.lock.joins = NOBODY
        self.lock.busy = True

    def hand_over(
        self,
        dropped: list[int],
        frame: Frame,
        structure: bytes,
        key: bytes,
        payloads: list[memoryview],
        lines: list[Any],
        wait: bool = False,
        reads: int = 0,
        read_bytes: int = 0,
        note: FrameTravel | None = None,
    ) -> int:
        """Give the link a frame, with which these ids at the head of ``dropped`` are released, and begin a new one.
        Returns its number. Whatever comes in between, both is done or neither.

        After :meth:`end_alone`. 0 if somebody came in between.
        """
        self._batch = dropped
        try:
            return self.link.submit(
                frame, structure, key, payloads, lines, wait, reads, read_bytes, note, kept=self._cut, turn=self.lock
            )
        except BaseException:
            self.lock.broken = True
            self.lock.busy = False
            raise

    def cut_for(self, recorder: ProfileRecorder) -> None:
        """Send what an earlier profile has noted, before this one notes anything: a frame belongs to one profile."""
        with self.lock:
            self.begin()
            if self.travel is not None and self.travel not in recorder.frames and not self.closed:
                self.flush()
