"""The time that a frame may take, and its cancellation: what asks is told to stop.

It is asked between the records of a frame, between the nodes of a backward, and in those kernels that go round a loop
in Python. One call of the array library is not interrupted: :mod:`.work` bounds what one op can cost, and
:mod:`..numerics.matmul` cuts products of matrices, which may cost most, into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from time import monotonic as monotonic
from typing import Any, Final

from gradwire_protocol.errors import Cancelled, TimeExceeded

_NEVER: Final = float("inf")
_AT_ONCE: Final = -_NEVER


class Clock:
    """What ends one frame before its last record. Another thread may call :meth:`cancel` at any time.

    Attributes:
        end: the moment of :func:`monotonic` from which on :meth:`stop` is to be called.
        seconds: that the frame was given; 0 for any number.
        cancelled: somebody wants the frame stopped.
        undo: how the frame can be taken back; where it ends with ``None``, it cannot any more, and is not cancelled.
    """

    end = _over = _NEVER
    seconds = 0
    cancelled = False
    undo: Sequence[Any] = ()

    def start(self, seconds: int) -> None:
        """Give so many seconds from now on, in this thread; 0 gives any number."""
        self.seconds = seconds
        self.end = self._over = monotonic() + seconds if seconds else _NEVER
        if self.cancelled:
            self.end = _AT_ONCE
        _CLOCK.set(self)

    def waited(self, seconds: float) -> None:
        """So long the frame has waited for others: that does not count."""
        self._over += seconds
        if not self.cancelled:
            self.end = self._over

    def cancel(self) -> None:
        """Let the frame stop where it asks next."""
        self.cancelled = True
        self.end = _AT_ONCE

    def stop(self, what: str) -> None:
        """Stop, if there is a reason to.

        Raises:
            Cancelled: when the frame was cancelled and can be taken back.
            TimeExceeded: when its time is over, naming the limit and its setting.
        """
        if self.cancelled and (not self.undo or self.undo[-1] is not None):
            raise Cancelled(f"{what}: the frame was cancelled and undone")
        if monotonic() > self._over:
            raise TimeExceeded(
                f"{what}: the frame has reached its time limit of {self.seconds:,} seconds "
                "(GRADWIRE_MAX_FRAME_SECONDS)",
                setting="GRADWIRE_MAX_FRAME_SECONDS",
                limit=self.seconds,
            )


_NO_FRAME: Final = Clock()
_CLOCK: Final = ContextVar("the clock of the frame that runs", default=_NO_FRAME)


def begin(seconds: int) -> Clock:
    """A clock that gives so many seconds from now on, in this thread; 0 gives any number."""
    clock = Clock()
    clock.start(seconds)
    return clock


def end() -> None:
    """The frame is over: what this thread computes outside frames has no deadline, and none that an old frame left."""
    _CLOCK.set(_NO_FRAME)


def passed() -> bool:
    """Whether the frame is to stop."""
    return monotonic() > _CLOCK.get().end


def check(what: str) -> None:
    """Go on, unless the frame is to stop: see :meth:`Clock.stop`."""
    clock = _CLOCK.get()
    if monotonic() > clock.end:
        clock.stop(what)
