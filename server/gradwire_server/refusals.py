"""Errors in the form in which they travel on a stream, and back. A worker does this without what speaks HTTP."""

from __future__ import annotations

from typing import Any, Final

from gradwire_protocol.errors import GradwireError, from_code
from gradwire_protocol.frames import Problem

PLACE: Final = ("op", "seq", "index")
OWN: Final = (*PLACE, "code", "retryable")
"""Details of an error that are members of a problem of their own; the others are its ``extra``."""


def particulars(error: GradwireError) -> dict[str, Any]:
    """The ``extra`` of an error."""
    return {name: value for name, value in error.details.items() if name not in OWN}


def to_problem(error: GradwireError) -> Problem:
    """An error in the form in which it travels on a stream."""
    code = error.details.get("code", error.code)
    return Problem(code, error.message, retryable=error.retryable, extra=particulars(error))


def from_problem(problem: Problem) -> GradwireError:
    """A frame's error as the error of a whole request."""
    place = {"op": problem.op, "seq": problem.seq, "index": problem.index} if problem.op else {}
    return from_code(problem.code, problem.detail, **(problem.extra | place))
