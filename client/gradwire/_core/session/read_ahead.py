"""Reads that follow each other: a frame also asks for what the program read after it the last times.

``loss.item()`` and then the gradients, one by one, are as many round trips. Where a frame of the same form was followed
twice by the same reads, the first of these asks for all. What the program calls between two reads is recorded ahead of
it (:mod:`.expected_calls`): ``p.grad.numpy()`` for each parameter is one round trip, too. What was asked for in vain is
asked for again only after it has followed four times as often.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

from ..context.modes import MODES
from .expected_calls import MOST_CALLS, Call, Expected, Ids, calls_of
from .frame_builder import FrameBuilder
from .value_reader import ValueReader

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

FORMS_KEPT: Final = 256
SURE: Final = 2
"""Times that the same reads followed a frame before they are asked for."""
DOUBT: Final = 4
"""By how much this rises each time they are asked for in vain."""

MOST_CHANGES: Final = 4
"""Where calls follow a frame that are others each time, frames of such calls stand for themselves from then on."""

MOST_READS: Final = 32
MOST_BYTES: Final = 1 << 16
"""What is asked for beside the value that is waited for."""

KEPT_S: Final = 0.01
"""No longer, since another client of the session may write to the tensors."""

Value = np.ndarray[Any, Any] | None


@dataclass(slots=True)
class _Step:
    """A read that followed a frame.

    Attributes:
        calls: what the program called before it.
        read: the reference to what was read.
        nbytes: of its value.
        tensor: what was read, if it was old, while it is there.
    """

    calls: list[Call]
    read: int
    nbytes: int
    tensor: ref[Tensor] | None = None

    @property
    def form(self) -> tuple[Any, ...]:
        """What is the same where the same is done again."""
        return self.read, self.nbytes, *[call.spelled for call in self.calls]


@dataclass(slots=True)
class _Form:
    """What is known of frames of one form.

    Attributes:
        steps: the reads that followed the last time.
        times: how often in a row it was these.
        sure: how often it has to be before they are asked for.
        changes: how often in a row the program made other calls before these reads than the last time.
    """

    steps: list[_Step] = field(default_factory=list)
    times: int = 0
    sure: int = SURE
    changes: int = 0


@dataclass(slots=True)
class _Frame:
    """The last frame that was sent by a read, and what followed it.

    Attributes:
        ids: how what follows refers to tensors.
        recorded: how many ops were recorded at the last read; the values hold as long as none follows.
        until: when its values are to be read again.
        known: the values that came with it and that nobody read yet, by id.
        expected: the calls that were recorded ahead of the program.
        counted: how many of these were made before the last read.
        steps: the reads after the first one.
    """

    form: _Form
    ids: Ids
    recorded: int
    until: float
    known: dict[int, Value]
    expected: Expected | None = None
    counted: int = 0
    steps: list[_Step] = field(default_factory=list)


class ReadAhead:
    """The reads of one session. Its methods are for whoever has the session's lock.

    A signal handler may read between any two lines. So what is known of a frame changes in one assignment, and its
    count of ops is taken before it is sent.
    """

    def __init__(self, builder: FrameBuilder, reader: ValueReader) -> None:
        self._builder = builder
        self._reader = reader
        self._forms: OrderedDict[tuple[Any, ...], _Form] = OrderedDict()
        self._frame: _Frame | None = None
        self._since = 0  # the first id that was made after the last read

    def read(self, tensor: Tensor) -> Value:
        """The value of a tensor.

        Raises:
            What :meth:`ValueReader.read` raises.
        """
        frame = self._frame
        try:
            if frame is not None:
                calls = self._calls_since(frame)
                if calls is not None and (step := self._step(frame, tensor, calls)) is not None:
                    return self._follow(frame, tensor, step)
                self._frame = None
                _learn(frame)
            return self._begin(tensor)
        finally:
            self._since = self._builder.next_id

    def _begin(self, tensor: Tensor) -> Value:
        """The value of a tensor whose read ends a frame that others may follow."""
        builder = self._builder
        builder.begin()
        ids, end = Ids(builder.first, self._since), builder.next_id
        records, read = builder.records, ids.reference(tensor._id)
        if not records or tensor._id >= end:
            return self._read_alone(tensor)
        own = len(records)
        form = self._form_of((own, end - ids.first, read, records[0][0], records[-1][0]))
        steps = form.steps if form.times >= form.sure else []
        calls = list(chain.from_iterable([step.calls for step in steps]))
        expected = None
        if calls:
            expected = builder.record_ahead(calls, ids) if MODES.key >= 0 else None
            if expected is None or builder.first != ids.first or expected.made != end:
                steps, expected = [], None
        recorded = builder.recorded
        along = [ids.number(step.read) for step in steps if step.tensor is None or step.tensor() is not None]
        (value, *_), known = self._reader.read_along([tensor], along, sum(step.nbytes for step in steps), own)
        if known is None:
            _doubt(form)
            return value
        if expected is not None:
            builder.expect(expected)
        self._frame = _Frame(form, ids, recorded, monotonic() + KEPT_S, known, expected)
        return value

    def _read_alone(self, tensor: Tensor) -> Value:
        (value, *_), _ = self._reader.read_along([tensor])
        return value

    def _follow(self, frame: _Frame, tensor: Tensor, step: _Step) -> Value:
        """The value of a tensor that is read after a frame, as this step."""
        builder = self._builder
        value: Value
        if tensor._id in frame.known and builder.recorded == frame.recorded and monotonic() < frame.until:
            value = frame.known.pop(tensor._id)
        else:
            value = self._read_alone(tensor)
        step.nbytes = 0 if value is None else value.nbytes
        if step.calls or step.read not in [each.read for each in frame.steps]:
            frame.steps.append(step)
        if frame.expected is not None:
            frame.counted = frame.expected.taken
        frame.recorded = builder.recorded
        return value

    def _calls_since(self, frame: _Frame) -> list[Call] | None:
        """What the program has called since a frame's last read. ``None`` if it is not of the kind that may be recorded
        ahead of it."""
        builder, expected = self._builder, frame.expected
        made = [] if expected is None else expected.calls[frame.counted : expected.taken]
        count = builder.recorded - frame.recorded
        if not count:
            return made
        if expected is not None and expected.taken < len(expected.calls):
            return None  # it went another way
        records = builder.records
        if frame.form.changes >= MOST_CHANGES or count != len(records) or len(made) + count > MOST_CALLS:
            return None
        calls = calls_of(records, builder.lines, builder.scalars, self._refer(frame.ids))
        return None if calls is None else [*made, *calls]

    def _step(self, frame: _Frame, tensor: Tensor, calls: list[Call]) -> _Step | None:
        """The read of a tensor as one that follows a frame; ``None`` if it is none that may be asked for with it."""
        number, steps = tensor._id, frame.steps
        size = tensor._form.nbytes if tensor._form.known else MOST_BYTES + 1
        if len(steps) >= MOST_READS or sum(step.nbytes for step in steps) + size > MOST_BYTES:
            return None
        if calls:
            # What is recorded ahead of the program is what it reads, without history and small.
            builder, expected = self._builder, frame.expected
            last = builder.next_id if builder.records or expected is None else expected.made + expected.taken
            if number != last - 1 or tensor.requires_grad:
                return None
        read = frame.ids.reference(number)
        return _Step(calls, read, 0, ref(tensor) if Ids.is_old(read) else None)

    def _refer(self, ids: Ids) -> Callable[[int], int]:
        """Converts references of the frame being recorded to those of calls."""
        first, external = self._builder.first, list(self._builder.external)
        return lambda slot: ids.reference(first + slot if slot >= 0 else external[-1 - slot])

    def _form_of(self, key: tuple[Any, ...]) -> _Form:
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = _Form()
            if len(self._forms) > FORMS_KEPT:
                self._forms.popitem(last=False)
        else:
            self._forms.move_to_end(key)
        return form


def _learn(frame: _Frame) -> None:
    """Nothing more follows this frame."""
    form, steps, expected = frame.form, frame.steps, frame.expected
    if frame.known or (expected is not None and expected.taken < len(expected.calls)):
        _doubt(form)
    if steps and [step.form for step in steps] == [step.form for step in form.steps]:
        form.times += 1
        form.changes = 0
    else:
        form.times = 1
        form.changes += any(step.calls for step in steps)
    form.steps = steps


def _doubt(form: _Form) -> None:
    """What was asked for was not wanted."""
    form.times, form.steps, form.sure = 0, [], form.sure * DOUBT
