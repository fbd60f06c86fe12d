"""The interface of a host, the place where a session runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from gradwire_engine.runtime import blas_buffers
from gradwire_engine.session.session import Session as EngineSession
from gradwire_protocol.frames import Chunk, Frame, Reply

from ..observability.metrics import Applied
from ..settings.session_spec import SessionSpec
from ..settings.tuning import give_back_memory
from .jobs import Answer, Buffers
from .runner import How
from .threads import default_threads


def warm_up() -> None:
    """Import everything that the first session would import, and fill BLAS's buffers."""
    EngineSession().close()
    blas_buffers.fill(default_threads())
    give_back_memory()


class Host(Protocol):
    """Runs one session.

    Calls take effect in the order in which they were made. All of them raise :class:`SessionGone` after ``close``.
    A call that changes the session completes when the change is durable, as far as the session's durability requires.
    It fails with :class:`Unavailable` if the change could not be written; the caller may retry it.
    """

    @property
    def pending(self) -> int:
        """How many frames are queued or running."""

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        """Create, recover or import a session; ``image`` is the file to import, or what :meth:`image` returned.

        Raises:
            DeviceError: when the server does not have the device.
            JournalDamaged: when the data in the folder is damaged.
        """

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer, cancelled: bool = False) -> None:
        """Apply a frame. The event loop calls ``answer`` with the reply; an error is a refusal in it. A ``cancelled``
        frame keeps its place in the order and does nothing.

        Raises:
            Unavailable: when the server is draining.
        """

    async def cancel(self, client: int | None, first: int, last: int) -> int:
        """Cancel queued and running frames in this range of numbers, of one client or of all; returns their number.

        A running frame stops between two kernels, and its reply has poisoned results. A frame that was already
        answered keeps its results.
        """

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        """Add a chunk of an upload; ``answer`` gets ``None`` or the error."""

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        """Apply a frame and wait for its reply."""

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        """Register a new client (0) or resume one. Returns its number, the number of its next frame, and its epoch.

        Raises:
            MalformedFrame: when the session has no such client.
            Superseded: when another program resumed the client.
        """

    async def expected(self, client: int) -> int:
        """The number of the next frame of a client.

        Raises:
            MalformedFrame: when the session has no such client.
        """

    async def describe(self) -> dict[str, Any]:
        """Counts and sizes of the session's contents. While a long op runs, ``busy`` is true, and values that require a
        walk over the session's tensors are ``age_s`` seconds old.
        """

    async def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None
    ) -> list[dict[str, Any]]:
        """At most ``most`` rows of live tensors with ids above ``after``, in ascending order; ``among`` restricts the
        ids.
        """

    async def names(
        self, after: str = "", most: int | None = None, among: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """At most ``most`` rows of named tensors with names above ``after``, in ascending order; ``among`` restricts
        the names.
        """

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        """The memory of the session's tensors; ``reset_peak`` resets the peak afterwards. The result may be ``busy`` as
        in :meth:`describe`, except with ``reset_peak``.
        """

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the autograd graph of these tensors, or of all.

        Raises:
            UnknownTensor: for an unknown id.
            LimitExceeded: when the graph has more than ``most`` nodes.
        """

    async def profile(self, seconds: float) -> dict[str, Any]:
        """Measure the frames of the next seconds (:mod:`.frame_profile`).

        Raises:
            TooManyRequests: while another profile is recorded.
        """

    async def export(self) -> bytes | memoryview:
        """The session's tensors and names as a file for import."""

    async def image(self) -> bytes | memoryview:
        """The whole session, to go on with it elsewhere (``how="go_on"``). Its groups wait for it there from now on.

        Raises:
            NotImageable: while the session has transient state.
        """

    async def travel(self, what: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do one of ``session_travels.TRAVELS``: keep a checkpoint, rewind, ...

        Raises:
            InvalidRequest: when the session has no journal, is in a group, or has transient state.
            NotFound: for an unknown checkpoint, or a frame that is not kept.
        """

    async def search(self, wanted: str, name: str) -> dict[str, Any] | None:
        """Find the first value of a kind in the session's history (``time_travel.search``). The session goes on
        meanwhile.
        """

    async def recorded(self) -> bytes | memoryview:
        """The session's history as a file (``durable.recording``)."""

    async def prepare_group(self, name: str) -> dict[str, Any]:
        """Where the session's process takes connections of other ranks, and more (``rendezvous.GroupHost``)."""

    async def open_group(self, opening: dict[str, Any]) -> None:
        """Open a group whose ranks are all known."""

    async def attach_group(self, name: str, secret: str, addresses: Sequence[tuple[str, int]]) -> bool:
        """Connect the group of a recovered session again. Does not wait for running frames."""

    async def group_moved(self, name: str, rank: int, address: tuple[str, int]) -> None:
        """A rank listens elsewhere from now on. Does not wait for running frames."""

    async def group_lost(self, name: str, rank: int, reason: str) -> None:
        """A rank will not come any more. Does not wait for running frames."""

    async def close_group(self, name: str) -> None:
        """Close a group; the other ranks' collectives fail."""

    async def groups(self) -> list[dict[str, Any]]:
        """Counts of the connected groups. Does not wait for running frames."""

    async def needed(self) -> bool:
        """Whether other ranks may still need something that only the memory of this session has."""

    def drain(self) -> None:
        """Refuse new frames and finish the submitted ones."""

    async def idle(self) -> None:
        """Wait until no frame is queued or running."""

    async def close(self, keep: bool = False) -> bool:
        """Close the session. Queued calls fail with SessionGone. Returns whether everything was released before a short
        timeout; another call waits again.

        ``keep`` leaves the session on disk, to be opened again; queued calls then fail with Unavailable.
        """


class Counting(Protocol):
    """The metrics that a host updates. A worker has an implementation that forwards to the server.

    Attributes:
        counts_first: a frame is counted before its reply leaves, which carries its statistics.
    """

    counts_first: bool

    def knows(self, key: bytes) -> bool:
        """Whether the families of the structure with this hash are known."""

    def applied(self, key: bytes, whole: bool, reply: Reply, stats: Applied) -> None:
        """Count a frame and its reply."""
