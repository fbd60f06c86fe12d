"""Conversion between errors and ``Problem`` messages, without imports of HTTP libraries: workers use it, too."""

from __future__ import annotations

from typing import Any, Final

from gradwire_protocol.errors import GradwireError, from_code
from gradwire_protocol.frames import Problem

PLACE: Final = ("op", "seq", "index")
OWN: Final = (*PLACE, "code", "retryable")
"""Details of an error that are separate members of a problem; the others are its ``extra``."""


def particulars(error: GradwireError) -> dict[str, Any]:
    """The ``extra`` of an error."""
    return {name: value for name, value in error.details.items() if name not in OWN}


def to_problem(error: GradwireError) -> Problem:
    """An error as a ``Problem`` message."""
    code = error.details.get("code", error.code)
    op, seq, index = (error.details.get(name, default) for name, default in zip(PLACE, ("", 0, 0), strict=True))
    return Problem(code, error.message, op, seq, index, error.retryable, particulars(error))


def from_problem(problem: Problem) -> GradwireError:
    """The error of a ``Problem`` message."""
    place = {"op": problem.op, "seq": problem.seq, "index": problem.index} if problem.op else {}
    return from_code(problem.code, problem.detail, **(problem.extra | place))
