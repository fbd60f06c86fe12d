"""The server's clock in terms of the client's: two clocks with origins of their own, compared by what travels."""

from __future__ import annotations

from typing import Final

DRIFT: Final = 20e-6
"""How fast two clocks may drift apart, in seconds a second: what was known is less sure by so much as time goes on."""
BEYOND: Final = 1 << 80
"""Nothing is known."""


class Clock:
    """How far the server's clock is ahead of the client's, in nanoseconds.

    What left at ``a`` here and arrived at ``b`` there shows that the offset is at most ``b - a``; the way back shows
    that it is at least so much. With each exchange the truth has less room; the middle of what is left is the guess.
    A fast exchange tells most and is not forgotten: after it, answers that nobody takes in for a while tell nothing.

    Args:
        server: the server's clock in its welcome.
        asked, told: this clock when the hello was sent and the welcome had come.
    """

    def __init__(self, server: int = 0, asked: int = 0, told: int = 0) -> None:
        self._low, self._high = -BEYOND, BEYOND
        self._at = told
        if server:
            self.exchanged(asked, server, server, told)

    def exchanged(self, sent: int, received: int, answered: int, arrived: int) -> None:
        """A message left here at ``sent`` and was there at ``received``; its answer left there and was here."""
        low, high = answered - arrived, received - sent
        room = int(max(0, arrived - self._at) * DRIFT)
        self._at = arrived
        self._low, self._high = max(self._low - room, low), min(self._high + room, high)
        if self._low > self._high:  # a clock was set, or stood still while its machine slept
            self._low, self._high = low, high

    @property
    def offset(self) -> int:
        """What to take from a time of the server's to have it by this clock."""
        return (self._low + self._high) // 2

    @property
    def uncertainty(self) -> int:
        """How far off the offset may be, at most."""
        return 0 if self._high == BEYOND else max(0, (self._high - self._low) // 2)
