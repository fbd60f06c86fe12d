"""What ops cost, from the shapes that their rules see: the ``cost`` of a declaration.

A cost is counted in steps: one multiply-add, or what takes as much time. It is an upper bound on what one record can
take, not a forecast. An op that declares none takes a step for each element of its operands and results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .meta import Meta


class OpCall:
    """One call of an op, as its rule saw it: parameters by name, metas for tensors, and the metas of the results."""

    def __init__(self, positions: Mapping[str, int], values: Sequence[Any], outs: Sequence[Meta]) -> None:
        self._at = positions
        self._values = values
        self.outs: Sequence[Meta] = outs or tuple(values[:1])  # an in-place form has its first operand for a result

    def __getattr__(self, name: str) -> Any:
        return self._values[self._at[name]]

    @property
    def metas(self) -> list[Meta]:
        """All operands."""
        flat = [v for value in self._values for v in (value if type(value) in (list, tuple) else (value,))]
        return [v for v in flat if isinstance(v, Meta)]

    @property
    def made(self) -> int:
        """Elements of the first result."""
        return numel(self.outs[0])

    @property
    def elements(self) -> int:
        """Elements of all operands and results."""
        return sum(numel(m) for m in (*self.metas, *self.outs) if isinstance(m, Meta))


class Cost(NamedTuple):
    """The steps of one call.

    Attributes:
        steps: how many there are, of an :class:`OpCall`.
        product: whether it is a product of matrices, which BLAS computes where it can.
    """

    steps: Callable[[OpCall], int]
    product: bool = False


def numel(tensor: Meta) -> int:
    """How many elements a tensor has; 0 while its shape is unknown."""
    return max(tensor.numel, 0)


def last(tensor: Meta) -> int:
    """The extent of the last dimension."""
    return tensor.shape[-1] if tensor.shape else 1


def product(left: str) -> Cost:
    """A matrix product: each element of the result sums over the last dimension of its left operand."""
    return Cost(lambda c: c.made * last(getattr(c, left)), product=True)


def matrices(times: int) -> Cost:
    """A decomposition: ``times`` the elements of the first operand's matrices, times their smaller extent."""
    return Cost(lambda c: times * sum(numel(m) * min(m.shape[-2:]) for m in c.metas[:1] if m.ndim >= 2))


def solution(matrix: str = "self", right: str = "other", times: int = 1) -> Cost:
    """A system of equations: the matrix is decomposed, and each column of the right-hand side takes its elements."""

    def steps(c: OpCall) -> int:
        a, b = getattr(c, matrix), getattr(c, right)
        return times * (numel(a) + max(numel(b), c.made)) * max(a.shape[-2:], default=1)

    return Cost(steps)


def each(times: int) -> Cost:
    """Functions that take many steps for an element: series, continued fractions, iterations."""
    return Cost(lambda c: times * c.elements)


def _sorted(c: OpCall) -> int:
    given = max((numel(m) for m in c.metas), default=0)
    return c.elements + given * max(given, 1).bit_length()


SORTING: Final = Cost(_sorted)
"""Sorts, and what takes as long: searches and Fourier transforms."""

ALL_PAIRS: Final = Cost(lambda c: numel(c.self) * last(c.self))
"""Each element meets all others of its row."""
