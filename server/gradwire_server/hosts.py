"""What a host is: the place where a session runs, and what the rest of the server may ask of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from gradwire_engine.session import Session as EngineSession
from gradwire_protocol.frames import Chunk, Frame, Reply

from .durable.spec import SessionSpec
from .jobs import Answer, Buffers
from .metrics import Applied
from .runner import How


def warm_up() -> None:
    """Load everything that the first session would load."""
    EngineSession().close()


class Host(Protocol):
    """What the rest of the server knows of the place where a session runs.

    Calls take effect in the order in which they were made. All of them raise :class:`SessionGone` after ``close``.
    Whatever changes the session is answered when it is as safe as the session's durability promises; one that could
    not be written down is answered with :class:`Unavailable`, and may be sent again.
    """

    @property
    def pending(self) -> int:
        """How many frames wait or run."""

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        """Begin a session, or go on with one; ``image`` is the file to adopt.

        Raises:
            DeviceError: when the server has no such device.
            JournalDamaged: when what the folder holds cannot be trusted.
        """

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer, cancelled: bool = False) -> None:
        """Apply a frame; ``answer`` is called in the event loop, with a refusal rather than an exception. One that is
        ``cancelled`` already has its turn like others, and does nothing.

        Raises:
            Unavailable: when the server is draining.
        """

    async def cancel(self, client: int | None, first: int, last: int) -> int:
        """Cancel those of the frames with these numbers, of one client or of all, that wait or run; how many did.

        One that runs stops between two kernels, and is answered with its results poisoned. So is one that is over
        before it is asked: what was answered stays.
        """

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        """Take a piece of an upload; ``answer`` gets ``None``, or the error."""

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        """Apply a frame and wait for its reply."""

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        """Register a new client (0), or resume one: its number, the number of its next frame, its epoch.

        Raises:
            MalformedFrame: for a client that the session never had.
            Superseded: for a program whose place was taken by another one.
        """

    async def expected(self, client: int) -> int:
        """The number of the next frame of a client.

        Raises:
            MalformedFrame: for a client that the session never had.
        """

    async def describe(self) -> dict[str, Any]:
        """Counts and sizes of what the session holds. While a long op runs, ``busy`` is true and what takes a walk
        through the session's tensors is of ``age_s`` seconds ago.
        """

    async def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None
    ) -> list[dict[str, Any]]:
        """One row per live tensor, by rising id: of the ids above ``after`` and, where given, ``among`` these; no more
        than ``most`` rows.
        """

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        """What the session's tensors occupy; the peak is reset after it was looked at. As for :meth:`describe`, it may
        be ``busy``, but not when the peak is to be reset.
        """

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the autograd graph behind these tensors, or all.

        Raises:
            UnknownTensor: for an id that is not there.
            LimitExceeded: for a graph of more nodes than ``most``.
        """

    async def export(self) -> bytes | memoryview:
        """The session's tensors and names as one file, to be adopted by another session."""

    def drain(self) -> None:
        """Refuse further frames; those submitted before run to their end."""

    async def idle(self) -> None:
        """Wait until no frame waits or runs."""

    async def close(self, keep: bool = False) -> bool:
        """Release everything. What waits is answered with SessionGone; what runs is not waited for long. Returns
        whether all is released; called again, waits again.

        ``keep`` leaves the session on disk, to be opened again; what waits is then answered with Unavailable.
        """


class Counting(Protocol):
    """What a host needs of the metrics; a worker has a stand-in that passes it on."""

    def knows(self, key: bytes) -> bool:
        """Whether the families of the structure with this hash were told."""

    def applied(self, key: bytes, whole: bool, reply: Reply, told: Applied) -> None:
        """Count a frame that was answered."""
