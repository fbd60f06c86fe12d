"""Walking through sequences of which some are longer than others.

The rows of a packed sequence lie step by step; each step has the rows of those sequences that are still going on, the
longest first. A sequence that is not packed is one whose steps all have the same number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..runtime import deadline
from ..runtime.arrays import Array, Namespace


def rows_there(xp: Namespace, batch_sizes: tuple[int, ...]) -> Array:
    """A mask ``(time, batch)`` of the rows that a packed sequence has."""
    return xp.arange(batch_sizes[0]) < xp.asarray(batch_sizes)[:, None]


class Walk:
    """The steps of a sequence, in the order in which a layer takes them.

    Attributes:
        rows: how many rows all steps have.
        batch: how many sequences there are.
    """

    __slots__ = ("_even", "_sizes", "_starts", "batch", "reverse", "rows")

    def __init__(self, shape: tuple[int, ...], batch_sizes: tuple[int, ...] | None, reverse: bool) -> None:
        self._sizes = (shape[1],) * shape[0] if batch_sizes is None else batch_sizes
        self._starts = [0]
        for size in self._sizes:
            self._starts.append(self._starts[-1] + size)
        self.rows = self._starts[-1]
        self.batch = self._sizes[0]
        self._even = self._sizes[-1] == self.batch
        self.reverse = reverse

    def _at(self, t: int) -> tuple[slice, int]:
        deadline.check("a recurrent layer")
        return slice(self._starts[t], self._starts[t + 1]), self._sizes[t]

    def there(self) -> Iterator[tuple[slice, int]]:
        """The rows of each step, and how many they are: the first so many sequences'."""
        times = range(len(self._sizes))
        return map(self._at, reversed(times) if self.reverse else times)

    def back(self) -> Iterator[tuple[slice, int]]:
        """The same, in the opposite order."""
        times = range(len(self._sizes))
        return map(self._at, times if self.reverse else reversed(times))

    def before(self, xp: Namespace, states: Array, first: Array) -> Array:
        """For each row what the state was when its step began, given what it was after each, and at first."""
        if self._even:
            b = self.batch
            return xp.concatenate([states[b:], first] if self.reverse else [first, states[: self.rows - b]])
        now, found = first.copy(), xp.empty((self.rows, first.shape[1]), first.dtype)
        for rows, b in self.there():
            found[rows] = now[:b]
            now[:b] = states[rows]
        return found

    def origins(self) -> list[int]:
        """Which row of ``first`` and ``states``, one put before the other, :meth:`before` has in each place."""
        now, found = list(range(self.batch)), [0] * self.rows
        for rows, b in self.there():
            found[rows] = now[:b]
            now[:b] = range(self.batch + rows.start, self.batch + rows.stop)
        return found

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many rows each step has, by time."""
        return self._sizes

    @property
    def times_back(self) -> range:
        """The times of the steps, from the last that is taken to the first."""
        return range(len(self._sizes)) if self.reverse else range(len(self._sizes) - 1, -1, -1)
