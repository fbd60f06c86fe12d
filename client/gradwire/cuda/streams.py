"""Streams and events. A session computes in program order, so there is one stream.

Waiting for another stream is therefore a no-op, and an event is a position in that order.
"""

from __future__ import annotations

import time
from typing import Any

from gradwire_protocol.errors import ArgumentError

from .._core.context import size
from .._core.context.argument_types import Device
from .._core.context.default_device import PLACES
from .._core.session.current_session import current_session
from .._core.surface.server_devices import gpu_index


class Stream:
    """A stream of a GPU. Work on all streams is done in the order of the program.

    Raises:
        DeviceError: when the server has no such GPU.
    """

    def __init__(self, device: Device = None, priority: int = 0, **_: Any) -> None:
        self.device: size.device = size.device("cuda", gpu_index(device))
        self.device_index: int | None = self.device.index
        self.priority: int = priority

    def synchronize(self) -> None:
        """Wait until everything recorded so far is done. One round trip."""
        current_session().synchronize()

    def query(self) -> bool:
        """Wait for all work and return True."""
        current_session().synchronize()
        return True

    def wait_stream(self, stream: Stream) -> None:
        """Work is done in order already."""

    def wait_event(self, event: Event) -> None:
        """Work is done in order already."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record this position in the order of work."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device}>"


class Event:
    """A position in the order of work.

    With ``enable_timing`` it waits for everything before it, so :meth:`elapsed_time` is what the program sees: with the
    way to the server and back.

    Raises:
        DeviceError: when the server has no GPU.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        gpu_index()
        self._timed = enable_timing
        self._at: float | None = None
        self._recorded = False

    def record(self, stream: Stream | None = None) -> None:
        """Record this position. One round trip with ``enable_timing``."""
        self._recorded = True
        if self._timed:
            current_session().synchronize()
            self._at = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Work is done in order already."""

    def query(self) -> bool:
        """Wait for the earlier work and return True."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait until what came before it is done."""
        if self._recorded and not self._timed:
            current_session().synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another.

        Raises:
            ArgumentError: when one of them was made without ``enable_timing``, or was not recorded.
        """
        if self._at is None or end_event._at is None:
            raise ArgumentError("elapsed_time needs two events with enable_timing=True that have been recorded")
        return (end_event._at - self._at) * 1e3


class StreamContext:
    """The extent of ``with torch.cuda.stream(s)``: the stream's GPU is the current one; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream: Stream | None = stream
        self._before = 0

    def __enter__(self) -> None:
        self._before = PLACES.cuda
        if self.stream is not None:
            PLACES.cuda = self.stream.device_index or 0

    def __exit__(self, *_: object) -> None:
        PLACES.cuda = self._before


def stream(stream: Stream | None) -> StreamContext:
    """``with torch.cuda.stream(s):`` work is done in the order of the program all the same."""
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """The one stream of a GPU."""
    return Stream(device)


def default_stream(device: Device = None) -> Stream:
    """The one stream of a GPU."""
    return Stream(device)


def set_stream(stream: Stream | None) -> None:
    """Make the stream's GPU the current one."""
    if stream is not None:
        PLACES.cuda = stream.device_index or 0
