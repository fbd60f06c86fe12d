"""The server's clock in terms of the client's: two clocks with origins of their own, compared by what travels."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW: Final = 64
"""Exchanges that count. Clocks drift apart by some ms an hour: old comparisons do not help."""


class Clock:
    """How far the server's clock is ahead of the client's, in nanoseconds.

    What left at ``a`` here and arrived at ``b`` there shows that the offset is at most ``b - a``; the way back shows
    that it is at least so much. With each exchange the truth has less room; the middle of what is left is the guess.

    Args:
        server: the server's clock in its welcome.
        asked, told: this clock when the hello was sent and the welcome had come.
    """

    def __init__(self, server: int = 0, asked: int = 0, told: int = 0) -> None:
        self._bounds: deque[tuple[int, int]] = deque(maxlen=WINDOW)
        self._first = server - (asked + told) // 2
        if server:
            self._bounds.append((server - told, server - asked))

    def exchanged(self, sent: int, received: int, answered: int, arrived: int) -> None:
        """A message left here at ``sent`` and was there at ``received``; its answer left there and was here."""
        self._bounds.append((answered - arrived, received - sent))

    @property
    def offset(self) -> int:
        """What to take from a time of the server's to have it by this clock."""
        if not self._bounds:
            return self._first
        low = max(bound[0] for bound in self._bounds)
        high = min(bound[1] for bound in self._bounds)
        return (low + high) // 2

    @property
    def uncertainty(self) -> int:
        """How far off the offset may be, at most."""
        if not self._bounds:
            return 0
        return max(0, (min(b[1] for b in self._bounds) - max(b[0] for b in self._bounds)) // 2)
