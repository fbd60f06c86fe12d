"""A profile's record of a frame's round trip."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from gradwire_protocol.frames import Timing

from .server_clock import ServerClock


class FrameTravel:
    """The round trip of a frame whose ops a profile records.

    Attributes:
        session: the frame's session.
        ops: the profile's records of the ops.
        began: when the first op was recorded.
        cut, sent: when the frame was closed, and when it had been written to the socket.
        arrived: when the reply was received.
        offset: how far the server's clock was ahead, as estimated when the recording was settled.
    """

    __slots__ = (
        "arrived", "began", "clock", "cut", "offset", "ops", "received_bytes", "seq", "sent", "sent_bytes", "session",
        "timing", "total",
    )  # fmt: skip

    def __init__(self, session: Any) -> None:
        self.session = session
        self.began = perf_counter_ns()
        self.ops: list[Any] = []
        self.seq = self.cut = self.sent = self.arrived = self.offset = self.total = 0
        self.sent_bytes = self.received_bytes = 0
        self.timing: Timing | None = None
        self.clock: ServerClock | None = None

    def answered(self, timing: Timing | None, buffers: list[memoryview], arrived: int, clock: ServerClock) -> None:
        """Record the reply. ``timing`` is ``None`` for a frame that was sent twice: its times are ambiguous."""
        self.timing = timing
        self.arrived = arrived
        self.clock = clock
        self.received_bytes = sum(b.nbytes for b in buffers)
