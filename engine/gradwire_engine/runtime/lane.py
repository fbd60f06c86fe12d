"""What a collective needs of the group that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from gradwire_protocol.errors import CollectiveError

T = TypeVar("T")


class Lane(Protocol):
    """What a collective needs of its group: :class:`.groups.Group` itself, or :class:`.background.Background`."""

    @property
    def rank(self) -> int: ...

    @property
    def world_size(self) -> int: ...

    def named(self, peer: int) -> str:
        """A peer as an error names it."""

    def error(self, peer: int, text: str) -> CollectiveError:
        """The error to raise because of a peer."""

    def send(self, peer: int, data: bytes | memoryview, awaited: bool = False) -> None:
        """Send a message to a peer."""

    def receive(self, peer: int) -> bytes | memoryview:
        """The next message of a peer."""

    def arrived(self, peer: int) -> bytes | memoryview | None:
        """The next message of a peer, if it is there already."""

    def wait(self, ask: Callable[[float], T | None]) -> T:
        """Wait for what all ranks have a part in. ``ask`` waits for so many seconds at most.

        Raises:
            CollectiveError: when a peer is lost or gives up, or when it takes too long.
            Cancelled: when the frame was cancelled, and can be undone.
        """
