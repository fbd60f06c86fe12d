"""Reads that follow each other: a frame also asks for what the program read after it the last times.

``loss.item()`` and then the gradients, one by one, are as many round trips. Where a frame of the same form was followed
twice by the same reads, with nothing recorded between them, the first of these asks for all. What was asked for in vain
even once is not asked for again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .frame_builder import FrameBuilder
from .value_reader import ValueReader

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

FORMS_KEPT: Final = 256
SURE: Final = 2
"""Times that the same reads followed a frame before they are asked for."""

MOST_READS: Final = 32
MOST_BYTES: Final = 1 << 16
"""What is asked for beside the value that is waited for."""

KEPT_S: Final = 0.01
"""No longer, since another client of the session may write to the tensors."""

Value = np.ndarray[Any, Any] | None


@dataclass(slots=True)
class _Form:
    """What is known of frames of one form.

    Attributes:
        reads: which of the frame's results followed the last time, by position, with their bytes.
        times: how often in a row it was these.
        refused: they were asked for in vain.
    """

    reads: list[tuple[int, int]] = field(default_factory=list)
    times: int = 0
    refused: bool = False


@dataclass(slots=True)
class _Frame:
    """The last frame that was sent by a read of one of its results.

    Attributes:
        first: the id of its first result.
        recorded: how many ops were recorded when it was sent; its values hold as long as none follows.
        until: when its values are to be read again.
        known: the values that came with it and that nobody read yet, by id.
        followed: the reads after the first one, as in :attr:`_Form.reads`.
    """

    form: _Form
    first: int
    recorded: int
    until: float
    known: dict[int, Value]
    followed: list[tuple[int, int]] = field(default_factory=list)


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

    def read(self, tensor: Tensor) -> Value:
        """The value of a tensor.

        Raises:
            What :meth:`ValueReader.read` raises.
        """
        builder, frame = self._builder, self._frame
        if frame is not None and builder.recorded == frame.recorded:
            if tensor._id in frame.known and monotonic() < frame.until:
                value = frame.known.pop(tensor._id)
            else:
                (value, *_), _ = self._reader.read_along([tensor])
            read = tensor._id - frame.first, 0 if value is None else value.nbytes
            if tensor._id >= frame.first and read not in frame.followed:
                frame.followed.append(read)
            return value
        self._frame = None
        if frame is not None:
            _learn(frame)
        builder.begin()
        recorded, first = builder.recorded, builder.first
        made, at = builder.next_id - first, tensor._id - first
        if not builder.records or not 0 <= at < made:
            (value, *_), _ = self._reader.read_along([tensor])
            return value
        form = self._form_of((len(builder.records), made, at, builder.records[0][0], builder.records[-1][0]))
        ahead = form.reads if form.times >= SURE and not form.refused else []
        (value, *others), ids = self._reader.read_along(
            [tensor], [first + position for position, _ in ahead], sum(nbytes for _, nbytes in ahead)
        )
        known = dict(zip(ids, others, strict=True)) if len(ids) == len(others) else {}
        self._frame = _Frame(form, first, recorded, monotonic() + KEPT_S, known)
        return value

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
    """Nothing more follows this frame's read."""
    form, followed = frame.form, frame.followed
    if frame.known:
        form.refused = True
    if sum(nbytes for _, nbytes in followed) > MOST_BYTES or len(followed) > MOST_READS:
        followed = []
    if followed and followed == form.reads:
        form.times += 1
    else:
        form.reads, form.times = followed, 1
