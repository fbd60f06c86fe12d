"""Calls that a program will probably make next: recorded ahead of it, and found done when it makes them.

``p.grad.numpy()`` looks at a gradient, which is an op, and reads it. So do ``p.grad.norm().item()`` and
``loss.detach().numpy()``. Reads of that kind cannot come with an earlier read unless their ops do. These ops change
nothing and take no memory to speak of, so that it does no harm where the program does not make the calls after all:
their results are dropped, and nothing else was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gradwire_protocol import dtypes, envelope
from gradwire_protocol.meta import meta
from gradwire_protocol.ops.control import GRAD_MODE
from gradwire_protocol.records import encode_args, mentioned, with_references
from gradwire_protocol.table import TABLE, Op

from ..context.call_sites import Line
from ..context.modes import MODES
from ..tensor.tensor import Tensor

MOST_CALLS: Final = 4
"""Before one read."""

_LOOKS: Final = frozenset({"grad_of", "max", "min"})
"""Ops that are neither views nor total, and do no harm either."""

_OLDER: Final = 1 << 54
"""Above all ids, and all distances between ids."""

_UNSEEN: Final = meta((0,), dtypes.float32, "cpu")
"""Of a result that the program has not asked for yet."""


@dataclass(slots=True, frozen=True)
class Ids:
    """How calls that follow a frame refer to tensors, so that the next time the same is referred to alike.

    A step's own tensors are new each time, and its parameters are old.

    Attributes:
        first: the id of the frame's first result, from which the ids of what is new are counted.
        since: the first id that is new.
    """

    first: int
    since: int

    def reference(self, number: int) -> int:
        """The reference to a tensor."""
        return number - self.first if number >= self.since else _OLDER + number

    def number(self, reference: int) -> int:
        """The id of the tensor that a reference is to."""
        return self.first + reference if reference < _OLDER >> 1 else reference - _OLDER

    @staticmethod
    def is_old(reference: int) -> bool:
        """Whether a reference is to a tensor that is not new each time."""
        return reference >= _OLDER >> 1


@dataclass(slots=True, frozen=True)
class Call:
    """An op with one result, as a record has it.

    Attributes:
        args: with references as :class:`Ids` has them.
        numbers: its entries in the table of scalars.
        flags: the modes it is made in.
        line: where in the program.
        spelled: all but the line, to compare it by.
    """

    name: str
    args: list[Any]
    numbers: list[Any]
    flags: int
    line: Line | None
    spelled: bytes


def calls_of(
    records: Sequence[Any], lines: Sequence[Line | None], scalars: Sequence[Any], refer: Callable[[int], int]
) -> list[Call] | None:
    """The calls that a frame's records are; ``None`` where one must not be made ahead of the program.

    Args:
        refer: converts the frame's references.
    """
    found: list[Call] = []
    flags, at = GRAD_MODE, 0
    for number, (record, line) in enumerate(zip(records, lines, strict=True)):
        name, args = record[0], record[1]
        if name == "set_mode" and not number:
            flags = args[0]
            continue
        op = TABLE[name]
        if not _harmless(op) or flags & ~GRAD_MODE:
            return None
        moved = with_references(op, args, refer)
        used = mentioned(name, args)[0]
        numbers = list(scalars[at : at + used])
        at += used
        spelled = _spell(name, moved, numbers, flags)
        if spelled is None:
            return None
        found.append(Call(name, moved, numbers, flags, line, spelled))
    # Only the last one may take memory: it is the one that is read, as a rule, and small.
    return found if all(TABLE[call.name].view or TABLE[call.name].control for call in found[:-1]) else None


def _harmless(op: Op) -> bool:
    """Whether it changes nothing, draws nothing, and its work is one step for each element."""
    if op.name in _LOOKS:
        return True
    plain = op.results == 1 and op.mutates is None and not (op.control or op.random or op.dynamic)
    return plain and op.cost is None and (op.view or bool(op.total))  # batch_norm, say, is neither


def record_of(call: Call, refer: Callable[[int], int]) -> list[Any]:
    """The record of a call, in a frame where the call's references are these."""
    return [call.name, with_references(TABLE[call.name], call.args, refer)]


def _spell(name: str, args: list[Any], numbers: list[Any], flags: int) -> bytes | None:
    """What distinguishes a call from others: equal numbers of other types are other arguments, and so is a zero with a
    sign. ``None`` for numbers that no message carries."""
    try:
        return envelope.encode_part([name, args, numbers, flags])
    except OverflowError:
        return None


class Expected:
    """Calls that were recorded ahead, in order, with their results.

    A call of the program is taken for the next one if nothing at all was recorded in between, so that it would do
    again what was done.

    Attributes:
        calls: all of them.
        results: proxies for their results.
        ids: how they refer to tensors.
        made: the id of the first one's result; those of the others follow.
        taken: how many the program has made.
        recorded: how many ops were recorded when these were.
    """

    __slots__ = ("_session", "calls", "ids", "made", "recorded", "results", "taken")

    def __init__(self, session: Any, calls: list[Call], ids: Ids, made: int, recorded: int) -> None:
        self._session = session
        self.results = [Tensor._make(session, made + i, _UNSEEN) for i in range(len(calls))]
        self.calls = calls
        self.ids = ids
        self.made = made
        self.taken = 0
        self.recorded = recorded

    def is_next(self, op: Op, values: list[Any]) -> bool:
        """Whether the call that is expected next is this one."""
        call = self.calls[self.taken]
        if op.name != call.name or MODES.key < 0 or MODES.flags != call.flags:
            return False
        numbers: list[Any] = []
        args = encode_args(op, values, Tensor.__instancecheck__, self._reference, numbers, [])
        return _spell(op.name, args, numbers, call.flags) == call.spelled

    def _reference(self, tensor: Tensor) -> int:
        number: int = tensor._id
        if tensor._session is not self._session or number < 0:
            return _OLDER >> 1  # which no reference is: it is refused where it is recorded
        return self.ids.reference(number)

    def let_go(self) -> None:
        """The program makes another call: drop the results that were not taken."""
        self.results = []
