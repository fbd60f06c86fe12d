"""Numbers of a frame that Python code of a derivative is given while the frame is captured.

Such a number can be handed on to an op, which then takes it from the frame each time. Any other use of it (arithmetic,
a comparison, a look at its value) makes it one that a frame must repeat for the plan to hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..autograd.tape import Node, Saved
from ..autograd.tensor import Tensor

_NOTICED: Final = (
    "abs", "add", "bool", "ceil", "divmod", "eq", "float", "floor", "floordiv", "format", "ge", "gt", "hash",
    "index", "int", "le", "lt", "mod", "mul", "ne", "neg", "pos", "pow", "radd", "rdivmod", "repr", "rfloordiv",
    "rmod", "rmul", "round", "rpow", "rsub", "rtruediv", "str", "sub", "truediv", "trunc",
)  # fmt: skip


class TrackedFloat(float):
    """A float of the frame's table of numbers."""

    place: int
    notice: Callable[[int], None]

    def conjugate(self) -> float:
        return self


class TrackedInt(int):
    """An int of the frame's table of numbers."""

    place: int
    notice: Callable[[int], None]

    def conjugate(self) -> int:
        return self


def _noticing(kind: type, name: str) -> Callable[..., Any]:
    plain = getattr(kind, name)

    def method(self: Any, *others: Any) -> Any:
        if any(isinstance(other, Tensor) for other in others):
            return NotImplemented  # the tensor's own operator has its turn, and is given the number as it is
        self.notice(self.place)
        return plain(self, *others)

    return method


for _kind, _base in ((TrackedFloat, float), (TrackedInt, int)):
    for _name in _NOTICED:
        if hasattr(_base, f"__{_name}__"):
            setattr(_kind, f"__{_name}__", _noticing(_base, f"__{_name}__"))

TRACKED: Final = frozenset({TrackedFloat, TrackedInt})


def tracked(value: Any, place: int, notice: Callable[[int], None]) -> Any:
    """The number, so that its uses are noticed; ``None`` for one of a kind that cannot be followed."""
    if type(value) not in (float, int):
        return None
    made: Any = TrackedFloat(value) if type(value) is float else TrackedInt(value)
    made.place, made.notice = place, notice
    return made


def plain(value: Any) -> Any:
    """The number without its tracking."""
    return float.__float__(value) if type(value) is TrackedFloat else int.__int__(value)


class TracedSaved(Saved):
    """Gives out numbers of the frame so that their use is noticed."""

    __slots__ = ("_guard", "_numbers")

    def __init__(self, node: Node, needed: list[bool], numbers: dict[int, int], guard: Callable[[int], None]) -> None:
        super().__init__(node, needed)
        self._numbers = numbers
        self._guard = guard

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        op = self._node.row.op
        at = op.positions.get(name)
        place = None if at is None else self._numbers.get(at)
        if place is None or found is None:
            return found
        if name in self._node.row.passed_on:
            followed = tracked(found, place, self._guard)
            if followed is not None:
                return followed
        self._guard(place)
        return found
