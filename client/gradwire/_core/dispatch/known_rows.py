"""Rows that an iteration handed out: when one of them is read, the others are known, too."""

from __future__ import annotations

from typing import Any, Final
from weakref import ref

import numpy as np

from ..graph.recorded_call import ARITHMETIC, RecordedCall
from ..session.session import Session
from ..tensor.tensor import Tensor

MOST_STEPS: Final = 4
"""Operations from a row on: a counter that goes on from its last value would otherwise keep all of them."""


class Rows:
    """What one iteration handed out. Values that were read hold until something is recorded that may change memory;
    from then on, rows are read one by one."""

    __slots__ = ("_changes", "_rows", "_values")

    steps = 0

    def __init__(self, rows: tuple[Tensor, ...]) -> None:
        self._rows = [ref(row) for row in rows]
        self._changes: int | None = None
        self._values: dict[int, np.ndarray[Any, Any] | None] = {}

    def value(self, at: int, row: Tensor) -> np.ndarray[Any, Any] | None:
        """The values of one row, in memory of their own."""
        session: Session = row._session
        with session.lock:
            if self._changes is None:
                alive = {i: found for i, other in enumerate(self._rows) if (found := other()) is not None}
                self._values = dict(zip(alive, session.read(list(alive.values())), strict=True))
                self._changes = session.builder.changes
            elif self._changes != session.builder.changes or at not in self._values:
                return session.read([row])[0]
            found_value = self._values[at]
            return None if found_value is None else found_value.copy()


class Shifted:
    """The result of integer arithmetic on a row and a number: worked out here, as long as the row is known here."""

    __slots__ = ("_changes", "_name", "_number", "_row", "steps")

    def __init__(self, row: Tensor, name: str, number: int, steps: int) -> None:
        self._row, self._name, self._number, self.steps = row, name, number, steps
        self._changes = row._session.builder.changes

    def value(self, at: int, result: Tensor) -> np.ndarray[Any, Any] | None:
        """What the server would say, too."""
        session: Session = result._session
        row = self._row
        with session.lock:
            assert row._row_of is not None
            if self._changes != session.builder.changes:
                return session.read([result])[0]
            known = row._row_of[0].value(row._row_of[1], row)
            if known is None:
                return None
            with np.errstate(over="ignore"):
                return np.asarray(ARITHMETIC[self._name](known, np.int64(self._number)))


def shift(recipe: RecordedCall, values: list[Any], result: Tensor) -> None:
    """Let the result of arithmetic on a row be known when the row is."""
    row, number = values[0], values[1]
    plain = len(values) < 3 or (type(values[2]) is int and values[2] == 1)  # add and sub may have a factor
    if row._row_of is None or type(number) is not int or abs(number) >= 1 << 62 or not plain:
        return
    steps = row._row_of[0].steps + 1
    if steps <= MOST_STEPS:
        result._row_of = Shifted(row, recipe.entry.op.name, number, steps), 0
