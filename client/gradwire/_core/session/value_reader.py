"""What a session waits for: values of tensors, and the errors that come with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import Problem, position_of

from ..context.call_sites import quote_line, spell_line, user_line
from ..context.modes import MODES
from ..context.numpy_dtypes import NUMPY_DTYPES
from ..graph.vmap_levels import refuse_reading
from ..wire.frame_travel import FrameTravel
from ..wire.replies import error_of
from ..wire.send_window import UNKNOWN_BYTES, Answer
from .frame_builder import FrameBuilder
from .round_trips import BACKPRESSURE, PROFILE, Waits
from .upload_cache import UploadCache

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

LINES_REMEMBERED: Final = 1000
"""Of ops that have failed."""


class ValueReader:
    """Waits for the server on behalf of a session: for values, and for the errors that come with them.

    Args:
        builder: the frames that the values are asked for with.
        kept_uploads: what is kept on the server; nothing of it, once something has failed.

    Attributes:
        waits: which lines of the program waited.
        while_waiting: what is worth doing while the server computes.
        doubtful: below this id a tensor may lack a gradient that was to come: the server has met errors.
    """

    def __init__(self, builder: FrameBuilder, kept_uploads: UploadCache) -> None:
        self.waits: Waits = Waits()
        self.while_waiting: list[Callable[[], Any]] = []
        self.doubtful: int = 0
        self._builder = builder
        self._link = builder.link
        self._kept_uploads = kept_uploads
        self._lines_of: dict[tuple[int, int], str] = {}
        self._link.stalled = lambda began: self.waits.note(began, what=BACKPRESSURE)

    def read(self, tensors: list[Tensor]) -> list[np.ndarray[Any, Any] | None]:
        """The values of tensors, in one round trip. ``None`` for an undefined gradient.

        Raises:
            The first error that the server met since the last read, or that one of the tensors depends on.
        """
        return self.read_along(tensors)[0]

    def read_along(
        self, tensors: list[Tensor], along: Sequence[int] = (), along_bytes: int = 0, own: int | None = None
    ) -> tuple[list[np.ndarray[Any, Any] | None], dict[int, np.ndarray[Any, Any] | None] | None]:
        """As :meth:`read`, with values of about ``along_bytes`` bytes of further tensors.

        Args:
            along: the ids of these. The second result has the values of those that are still there, by id.
            own: how many of the frame's records the program has made; the others were recorded ahead of it. ``None`` is
                returned in place of further values if one of those has failed, and no error is raised for it.
        """
        with self._builder.lock:
            for tensor in tensors:
                if tensor._levels:
                    refuse_reading(tensor)
            seq = self._ask(tensors, along, along_bytes)
            ids = self._builder.along.pop(seq, [])
            answered = False
            try:
                for task in list(self.while_waiting):
                    task()
                began = time.perf_counter_ns()
                answer = self._link.wait(seq)
                self.waits.note(began, answer)
                answered = True
            finally:
                if not answered:
                    self._link.give_up(seq)
            values = answer.reply.values
            whole = not answer.reply.errors or self._spare(answer, len(tensors), own)
            self._raise_first(answer)
            found = [self._value(v, answer) for v in values[: len(tensors)]]
            if not whole:
                return found, None
            further = zip(ids, values[len(tensors) :], strict=True)
            return found, {number: self._value(v, answer) for number, v in further if v.error is None}

    def _spare(self, answer: Answer, reads: int, own: int | None) -> bool:
        """Take from an answer the errors that the program has not met yet: those of records that were made ahead of it,
        and of values that were asked for beside the first ``reads``. Whether all of the former went well."""
        reply = answer.reply
        met = {value.error for value in reply.values[:reads]}
        asked = {value.error for value in reply.values[reads:]}
        ahead = [own is not None and problem.seq == reply.seq and problem.index >= own for problem in reply.errors]
        reply.errors = [
            problem for i, problem in enumerate(reply.errors)
            if i in met or not (ahead[i] or (i in asked and problem.seq != reply.seq))
        ]  # fmt: skip
        if not reply.errors and answer.refusal is None:
            self._link.failed = [each for each in self._link.failed if each is not answer]
        return not any(ahead[i] and i not in met for i in range(len(ahead)))

    def ask(self, tensors: list[Tensor]) -> Callable[[], list[Any]]:
        """Ask for the values of tensors without waiting; returns a function that waits for them.

        By the time the program has read anything that was computed later, they have arrived, and that function costs
        no round trip.
        """
        with self._builder.lock:
            seq = self._ask(tensors)
        values: list[Any] = []

        def answered() -> list[Any]:
            if not values:
                with self._builder.lock:
                    known = self._link.has_answer(seq)
                    began = time.perf_counter_ns()
                    answer = self._link.wait(seq, counts=not known)
                    if not known:
                        self.waits.note(began, answer)
                    self._raise_first(answer)
                    values.extend(self._value(v, answer) for v in answer.reply.values)
            return values

        return answered

    def _ask(self, tensors: list[Tensor], along: Sequence[int] = (), along_bytes: int = 0) -> int:
        if MODES.capture is not None:
            MODES.capture.refuse("it reads a value")
        size = sum([tensor._form.nbytes if tensor._form.known else UNKNOWN_BYTES for tensor in tensors])
        seq = self._builder.flush(wait=True, reads=tensors, read_bytes=size + along_bytes, along=along)
        assert seq is not None
        return seq

    def settle(self, frame: FrameTravel) -> None:
        """Send a frame that is being profiled, if it was not sent yet, and wait for the server's times of it."""
        builder = self._builder
        with builder.lock:
            if builder.travel is frame:
                builder.flush()
            if frame.seq and not frame.arrived:
                began = time.perf_counter_ns()
                self._link.until(frame.seq)
                self.waits.note(began, what=PROFILE)

    def _value(self, value: Any, answer: Answer) -> np.ndarray[Any, Any] | None:
        if not value.dtype:
            return None
        native = NUMPY_DTYPES[dtypes.BY_NAME[value.dtype]]
        data = answer.buffers[value.buffer]
        # What came inside a message is a read-only slice of it; what came in chunks is a buffer of its own.
        return np.ndarray(value.shape, native, bytearray(data) if data.readonly else data)

    def _raise_first(self, last: Answer) -> None:
        failed = self._link.failed
        if not failed and last.refusal is None and not last.reply.errors:
            return
        self._link.failed = []
        self.doubtful = self._builder.next_id
        self._kept_uploads.clear()
        for answer in failed:
            for problem in answer.reply.errors:
                self._remember_line(answer, problem)
        for answer in [*failed, last]:
            if answer.refusal is not None:
                answer.refusal.args = (
                    f"{answer.refusal.message} (a frame of {len(answer.lines)} ops that ends at "
                    f"{spell_line(answer.lines[-1] if answer.lines else None)} was refused)",
                )
                raise answer.refusal
            if answer.reply.errors:
                raise self._error(answer.reply.errors[0])

    def _remember_line(self, answer: Answer, problem: Problem) -> None:
        if problem.seq == answer.reply.seq and 0 <= problem.index < len(answer.lines):
            self._lines_of[problem.seq, problem.index] = spell_line(answer.lines[problem.index])
            if len(self._lines_of) > LINES_REMEMBERED:
                del self._lines_of[next(iter(self._lines_of))]

    def _error(self, problem: Problem) -> GradwireError:
        where = self._lines_of.get((problem.seq, problem.index))
        if where is None and problem.seq:  # it was one of very many
            line = self._builder.recent_lines.at(position_of(self._link.client, problem.seq, problem.index))
            where = None if line is None else spell_line(line)
        text = problem.detail
        if problem.op:
            operands = problem.extra.get("operands")
            of = f" of {', '.join(map(str, operands))}" if isinstance(operands, list | tuple) else ""
            text += f"\n  issued by {problem.op}{of}" + ("" if where is None else f" at {where}")
            reader = spell_line(user_line())
            if where != reader:
                text += f"\n  met by a later read, at {reader}"
        position = problem.extra.get("position", 0)
        made = self._builder.recent_lines.at(position) if isinstance(position, int) else None
        if made is not None:
            text += f"\n  {problem.extra.get('node')} was recorded at {quote_line(made)}"
        return error_of(problem, text, op=problem.op, line=where)
