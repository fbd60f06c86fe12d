"""Iteration over a tensor: the first row that a program looks at brings the others along.

``for i in indices: data[i : i + 8]`` looks at one number after the other. Each would be a round trip of its own, though
all of them are there once the first one is, and so is what a number is added to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.meta import Meta

from .modes import MODES

if TYPE_CHECKING:
    from .dispatch import Recipe
    from .tensor import Tensor

MOST_BYTES: Final = 1 << 16
MOST_ROWS: Final = 4096
"""Up to here, a tensor is worth reading whole when one row of it is asked for."""


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
        session = row._session
        with session.lock:
            if self._changes is None:
                alive = {i: found for i, other in enumerate(self._rows) if (found := other()) is not None}
                self._values = dict(zip(alive, session.read(list(alive.values())), strict=True))
                self._changes = session.changes
            elif self._changes != session.changes or at not in self._values:
                return session.read([row])[0]
            found_value = self._values[at]
            return None if found_value is None else found_value.copy()


class Shifted:
    """The result of integer arithmetic on a row and a number: worked out here, as long as the row is known here."""

    __slots__ = ("_changes", "_name", "_number", "_row", "steps")

    def __init__(self, row: Tensor, name: str, number: int, steps: int) -> None:
        self._row, self._name, self._number, self.steps = row, name, number, steps
        self._changes = row._session.changes

    def value(self, at: int, result: Tensor) -> np.ndarray[Any, Any] | None:
        """What the server would say, too."""
        session, row = result._session, self._row
        with session.lock:
            assert row._row_of is not None
            if self._changes != session.changes:
                return session.read([result])[0]
            known = row._row_of[0].value(row._row_of[1], row)
            if known is None:
                return None
            with np.errstate(over="ignore"):
                return np.asarray(_ARITHMETIC[self._name](known, np.int64(self._number)))


_ARITHMETIC: Final[dict[str, np.ufunc]] = {"add": np.add, "mul": np.multiply, "sub": np.subtract}


def can_shift(name: str, described: list[Any]) -> bool:
    """Whether it is a 0-dim int64 tensor, an operator of those known here, and a number."""
    one = described[0] if described else None
    return name in _ARITHMETIC and type(one) is Meta and one.shape == () and one.dtype is dtypes.int64


def shift(recipe: Recipe, values: list[Any], result: Tensor) -> None:
    """Let the result of arithmetic on a row be known when the row is."""
    row, number = values[0], values[1]
    plain = len(values) < 3 or (type(values[2]) is int and values[2] == 1)  # add and sub may have a factor
    if row._row_of is None or type(number) is not int or abs(number) >= 1 << 62 or not plain:
        return
    steps = row._row_of[0].steps + 1
    if steps <= MOST_STEPS:
        result._row_of = Shifted(row, recipe.entry.op.name, number, steps), 0


def rows(source: Tensor) -> Iterator[Tensor]:
    """Views of every index along the first dimension, to be read together where they are small. They are made in
    stretches: a vector of a million elements would else be a million tensors, of which a session has a limit."""
    if source.ndim and source.shape[0] > MOST_ROWS:
        return _stretches(source)
    return _together(source)


def _stretches(source: Tensor) -> Iterator[Tensor]:
    from .dispatch import call

    flags = MODES.flags  # those at the begin of the iteration
    for start in range(0, source.shape[0], MOST_ROWS):
        now, MODES.flags = MODES.flags, flags
        try:
            made = _together(call("narrow", source, 0, start, min(MOST_ROWS, source.shape[0] - start)))
        finally:
            MODES.flags = now
        yield from made


def _together(source: Tensor) -> Iterator[Tensor]:
    from .dispatch import call

    made: tuple[Tensor, ...] = call("unbind", source, 0)
    if 1 < len(made) <= MOST_ROWS and not made[0]._levels and len(made) * made[0]._meta.nbytes <= MOST_BYTES:
        together = Rows(made)
        for at, row in enumerate(made):
            row._row_of = together, at
    return iter(made)
