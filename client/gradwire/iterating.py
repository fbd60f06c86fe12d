"""Iteration over a tensor: the first row that a program looks at brings the others along.

``for i in indices: data[i : i + 8]`` looks at one number after the other. Each would be a round trip of its own, though
all of them are there once the first one is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

if TYPE_CHECKING:
    from .tensor import Tensor

MOST_BYTES: Final = 1 << 16
MOST_ROWS: Final = 4096
"""Up to here, a tensor is worth reading whole when one row of it is asked for."""


class Rows:
    """What one iteration handed out. Values that were read hold until something is recorded that may change memory;
    from then on, rows are read one by one."""

    __slots__ = ("_changes", "_rows", "_values")

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


def rows(source: Tensor) -> Iterator[Tensor]:
    """Views of every index along the first dimension, to be read together where they are small."""
    from .dispatch import call

    made: tuple[Tensor, ...] = call("unbind", source, 0)
    if 1 < len(made) <= MOST_ROWS and not made[0]._levels and len(made) * made[0]._meta.nbytes <= MOST_BYTES:
        together = Rows(made)
        for at, row in enumerate(made):
            row._row_of = together, at
    return iter(made)
