"""How long a program keeps trying to reach its server, and how long it pauses between two tries."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gradwire_protocol.errors import ArgumentValueError

PATIENCE_S: Final = 120.0
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 5.0
ASLEEP_S: Final = 30.0
"""What takes this much longer than it may was not slow: the machine slept."""

_chance: Final = random.Random()  # not the generator that programs seed


def chosen(name: str, given: float | None, default: float, unit: str = "seconds") -> float:
    """A number of seconds (or bytes): the argument, else the environment variable, else the default.

    Raises:
        ArgumentValueError: for what is no such number.
    """
    text = os.environ.get(name) or None
    value: object = given if given is not None else default if text is None else text
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = -1.0
    if not number >= 0:
        raise ArgumentValueError(f"{value!r:.40} is no number of {unit} ({name}): it must be zero or more")
    return number


class Patience:
    """The time that is spent trying, which is not the time that passes: a laptop that sleeps for an hour spends none.

    Args:
        seconds: how much may be spent.
        clocks: some stand while the machine sleeps and some run, which differs between systems.
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
        self._clocks = clocks
        self._sleep = sleep

    def renew(self) -> None:
        """Something was achieved: begin anew."""
        self.spent, self.tries = 0.0, 0

    @contextmanager
    def trying(self, most: float) -> Iterator[None]:
        """Count the time of a try, which takes ``most`` seconds at most as long as the machine is awake."""
        began = [clock() for clock in self._clocks]
        try:
            yield
        finally:
            passed = max(clock() - start for clock, start in zip(self._clocks, began, strict=True))
            if passed > most + ASLEEP_S:
                self.renew()  # whatever failed before the machine slept, it deserves a try now
            else:
                self.spent += max(passed, 0.0)

    def next_pause(self) -> float:
        """A pause before the next try: anything up to a bound that doubles, lest many clients come at once."""
        self.tries += 1
        return _chance.uniform(0.0, min(FIRST_PAUSE_S * 2 ** min(self.tries - 1, 16), LONGEST_PAUSE_S))

    def pause(self, asked: float = 0.0) -> bool:
        """Pause before the next try, for as long as the server ``asked`` for; False where patience does not reach."""
        left = self.seconds - self.spent
        if left <= 0 or asked > left:
            return False
        length = max(asked, min(self.next_pause(), left))
        with self.trying(length):
            self._sleep(length)
        return True
