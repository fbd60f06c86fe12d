"""What stands for a tensor that could not be computed, and how an error travels."""

from __future__ import annotations

from typing import Final

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import MAX_NAME, Problem
from gradwire_protocol.table import TABLE

MOMENTARY: Final = frozenset({
    "cancelled", "collective_failed", "group_not_open", "internal", "limit_exceeded", "out_of_memory", "time_exceeded",
})  # fmt: skip
"""Codes of errors that depend on the moment: a record that failed with one fails again in a replay, and is not run."""


def leaves_traces(name: str) -> bool:
    """Whether an op that fails halfway may have changed something by then."""
    op = TABLE.get(name)
    return op is not None and (op.mutates is not None or op.control)


class Poison:
    """Stands for a tensor that could not be computed, and remembers the first cause."""

    __slots__ = ("problem",)

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


GONE: Final = Poison(Problem(code="unknown_tensor", detail="this result was dropped by its frame"))


class Poisoned(Exception):
    """An operand of the record is poisoned."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def problem_of(error: GradwireError, op: str = "", seq: int = 0, index: int = 0) -> Problem:
    """An error as it travels."""
    return Problem(
        code=error.code,
        detail=error.message,
        op=op[:MAX_NAME],
        seq=seq,
        index=index,
        retryable=error.retryable,
        # Shapes are unbounded, and what is said of them must travel: no encoding has larger ints.
        extra={k: v if type(v) is not int or abs(v) < 1 << 63 else str(v) for k, v in error.details.items()},
    )
