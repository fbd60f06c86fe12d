"""When a frame is sent in pieces: the server computes the beginning of what is new while the program records the rest.

What a program repeats is sent whole, since the server has a plan for the whole of it. What it does for the first time
has no plan. Then client and server would take turns: one records, the other waits for it. Whether a frame is new is
judged by the names of its first ops, and by what followed the last times a frame began so.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

FIRST: Final = 64
"""Ops of the first piece; each of the others has twice as many as the one before, so that they are few and the server
never runs out of them: an op takes it longer than the client."""

PATIENCE: Final = 4
"""So many frames of one beginning are sent whole, in the hope that one of them repeats another."""

BEGINNINGS_KEPT: Final = 256
FORMS_KEPT: Final = 256


@dataclass(slots=True)
class _Beginning:
    """What is known of frames that begin with the same ops.

    Attributes:
        forms: the hashes of these frames, in pieces or whole.
        alone: how many there were since one was a repetition.
    """

    forms: dict[int, None] = field(default_factory=dict)
    alone: int = 0


class Pieces:
    """Where the frames of one session are cut before they are due.

    Args:
        most: how many records a frame may have.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._beginnings: OrderedDict[tuple[str, ...], _Beginning] = OrderedDict()
        self._beginning: _Beginning | None = None
        self._form = 0

    def begin(self) -> int:
        """A frame begins. Returns at how many records :meth:`cuts` is to be asked."""
        self._beginning, self._form = None, 0
        return min(FIRST, self.most)

    def cuts(self, records: Sequence[Any]) -> bool:
        """Whether these records are to be sent without waiting for the rest of the frame. If not, it is sent whole."""
        if self._beginning is not None:
            return True  # others of its pieces are under way
        names = tuple([record[0] for record in records])
        found = self._beginnings.get(names)
        new = found is None
        if found is None:
            found = self._beginnings[names] = _Beginning()
            if len(self._beginnings) > BEGINNINGS_KEPT:
                self._beginnings.popitem(last=False)
        else:
            self._beginnings.move_to_end(names)
        self._beginning = found
        return new or found.alone > PATIENCE

    def sent(self, key: bytes, records: int, goes_on: bool) -> int:
        """A frame with this hash of its structure was sent. Returns at how many records of the next one :meth:`cuts`
        is to be asked.

        Args:
            goes_on: whether it was cut before it was due, so that the next one is its continuation.
        """
        self._form = hash((self._form, key))
        if goes_on:
            return min(2 * records, self.most)
        found = self._beginning
        if found is not None:
            if self._form in found.forms:
                found.alone = 0
            else:
                found.alone += 1
                found.forms[self._form] = None
                if len(found.forms) > FORMS_KEPT:
                    del found.forms[next(iter(found.forms))]
        return self.begin()
