"""Retries: how long a program keeps trying to reach its server, and how long it pauses between attempts."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gradwire_protocol.errors import ArgumentValueError

if TYPE_CHECKING:
    from ..context.waiting import Wait

PATIENCE_S: Final = 120.0
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 5.0
ASLEEP_S: Final = 30.0
"""An attempt that exceeds its time limit by this much was not slow: the machine was suspended."""

_chance: Final = random.Random()  # separate from the generator that programs seed


def chosen(name: str, given: float | None, default: float, unit: str = "seconds") -> float:
    """A number of seconds (or bytes): the argument, else the environment variable, else the default.

    Raises:
        ArgumentValueError: when it is not a number of at least zero.
    """
    text = os.environ.get(name) or None
    value: object = given if given is not None else default if text is None else text
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = -1.0
    if not number >= 0:
        raise ArgumentValueError(f"{value!r:.40} is not a number of {unit} ({name}): it must be zero or more")
    return number


class RetryPolicy:
    """A budget of time for retries. Time during which the machine is suspended does not count.

    Args:
        seconds: the budget.
        clocks: clocks of which, depending on the system, some stop while the machine is suspended.

    Attributes:
        again_at: when the pause ends that is being made (``monotonic``); 0 if there is none.
    """

    def __init__(
        self,
        seconds: float,
        clocks: tuple[Callable[[], float], ...] = (time.monotonic, time.time),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.seconds = seconds
        self.spent = 0.0
        self.tries = 0
        self.again_at = 0.0
        self._trying_since = 0.0
        self._clocks = clocks
        self._sleep = sleep

    def renew(self) -> None:
        """Reset the budget after a success."""
        self.spent, self.tries = 0.0, 0

    @contextmanager
    def trying(self, most: float) -> Iterator[None]:
        """Count the time of an attempt, which takes at most ``most`` seconds while the machine is running."""
        began = [clock() for clock in self._clocks]
        self._trying_since = time.monotonic()
        try:
            yield
        finally:
            self._trying_since = 0.0
            passed = max(clock() - start for clock, start in zip(self._clocks, began, strict=True))
            if passed > most + ASLEEP_S:
                self.renew()  # failures before the machine was suspended do not count
            else:
                self.spent += max(passed, 0.0)

    @property
    def left(self) -> float:
        """Seconds of the budget that are left, now."""
        since = self._trying_since
        return max(self.seconds - self.spent - (time.monotonic() - since if since else 0.0), 0.0)

    def next_pause(self) -> float:
        """A random pause up to a doubling bound, so that many clients do not retry at once."""
        self.tries += 1
        return _chance.uniform(0.0, min(FIRST_PAUSE_S * 2 ** min(self.tries - 1, 16), LONGEST_PAUSE_S))

    def pause(self, asked: float = 0.0, wait: Wait | None = None) -> bool:
        """Pause before the next attempt, at least ``asked`` seconds; return False if the budget does not allow it.
        ``wait`` is told while it lasts."""
        left = self.seconds - self.spent
        if left <= 0 or asked > left:
            return False
        length = max(asked, min(self.next_pause(), left))
        self.again_at = time.monotonic() + length
        try:
            with self.trying(length):
                first = length if wait is None else wait.pause(length) or 0.0
                self._sleep(first)
                if wait is not None and first < length:
                    wait.look()
                    self._sleep(length - first)
        finally:
            self.again_at = 0.0
        return True
