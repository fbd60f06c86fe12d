"""The time that a frame may take: a moment, in this thread, after which what asks is told to stop.

It is asked between the records of a frame, between the nodes of a backward, and in those kernels that go round a loop
in Python. One call of the array library is not interrupted: :mod:`.work` bounds what one op can cost.
"""

from __future__ import annotations

from contextvars import ContextVar
from time import monotonic as monotonic
from typing import Final

from gradwire_protocol.errors import TimeExceeded

NEVER: Final = (float("inf"), 0)

_END: Final[ContextVar[tuple[float, int]]] = ContextVar("the moment, and the seconds that were given", default=NEVER)


def begin(seconds: int) -> float:
    """Give so many seconds from now on, in this thread; 0 gives any number. Returns the moment of :func:`monotonic` at
    which they are over, for who asks so often that the call of :func:`check` would tell.
    """
    end = (monotonic() + seconds, seconds) if seconds else NEVER
    _END.set(end)
    return end[0]


def end() -> None:
    """The frame is over: what this thread computes outside frames has no deadline, and none that an old frame left."""
    _END.set(NEVER)


def passed() -> bool:
    """Whether time is up."""
    return monotonic() > _END.get()[0]


def check(what: str) -> None:
    """Go on, unless time is up.

    Raises:
        TimeExceeded: naming the limit and its setting.
    """
    end, seconds = _END.get()
    if monotonic() > end:
        raise TimeExceeded(
            f"{what}: the frame has run for the {seconds:,} seconds it may take (GRADWIRE_MAX_FRAME_SECONDS)",
            setting="GRADWIRE_MAX_FRAME_SECONDS", limit=seconds,
        )  # fmt: skip
