"""An estimate of the offset between the server's clock and the client's, from the times of messages."""

from __future__ import annotations

from typing import Final

DRIFT: Final = 20e-6
"""The assumed drift of two clocks, in seconds per second: bounds widen by it as time passes."""
BEYOND: Final = 1 << 80
"""The bound when nothing is known."""


class ServerClock:
    """How far the server's clock is ahead of the client's, in nanoseconds.

    A message sent at ``a`` by the client's clock and received at ``b`` by the server's shows that the offset is at
    most ``b - a``; the answer gives a lower bound in the same way. Each exchange narrows the interval, and the estimate
    is its middle. A fast exchange narrows it most; later, slow exchanges then do not change it.

    Args:
        server: the server's clock in its welcome.
        asked, told: the client's clock when the hello was sent, and when the welcome had arrived.
    """

    def __init__(self, server: int = 0, asked: int = 0, told: int = 0) -> None:
        self._low, self._high = -BEYOND, BEYOND
        self._at = told
        if server:
            self.exchanged(asked, server, server, told)

    def exchanged(self, sent: int, received: int, answered: int, arrived: int) -> None:
        """Narrow the interval by a message (``sent``, ``received``) and its answer (``answered``, ``arrived``)."""
        low, high = answered - arrived, received - sent
        room = int(max(0, arrived - self._at) * DRIFT)
        self._at = arrived
        self._low, self._high = max(self._low - room, low), min(self._high + room, high)
        if self._low > self._high:  # a clock was set, or stopped while its machine was suspended
            self._low, self._high = low, high

    @property
    def offset(self) -> int:
        """What to subtract from a time of the server's clock to get the client's."""
        return (self._low + self._high) // 2

    @property
    def uncertainty(self) -> int:
        """The largest possible error of the offset."""
        return 0 if self._high == BEYOND else max(0, (self._high - self._low) // 2)
