"""What can be asked of a session: what it counts itself, and what the server knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ..wire.link import Link
from ..wire.rest import RestClient
from .reads import Reads
from .round_trips import Report, report
from .upload_cache import UploadCache

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

ROWS_AT_ONCE: Final = 500
"""Ids in one request: their list has to fit into the head of one."""


class SessionInfo(Reads):
    """The part of a session that tells about it.

    Args:
        rest: asks the server what is no frame.
    """

    def __init__(self, session: str, link: Link, resumed: bool, kept_uploads: UploadCache, rest: RestClient) -> None:
        super().__init__(session, link, resumed, kept_uploads)
        self.rest = rest

    @property
    def client(self) -> int:
        """The number under which this program's frames are counted. Another program can take its place by it."""
        return self.link.client

    @property
    def epoch(self) -> int:
        """Rises each time a program resumes this client's place; frames of older epochs are refused."""
        return self.link.epoch

    @property
    def durability(self) -> str:
        """What a frame survives once it is acknowledged.

        ``none``: nothing but a lost connection. ``applied``: the death of the server's process, since its journal was
        written. ``durable``: the loss of power as well, since it was on the disk.
        """
        return self.link.durability

    def stats(self) -> dict[str, int]:
        """Counts since the session was opened here: frames, ops, round trips, bytes, reconnects.

        ``structure_hits`` counts frames whose structure the server had and that travelled as its hash; the others
        carried it: since it was new (``structure_new``), for the first time on this connection
        (``structure_reconnected``), known once and forgotten to make room (``structure_forgotten``), or too small to
        be worth a hash (``structure_small``). ``bytes_per_frame`` is a mean, of all that was sent.
        ``uploads_skipped`` counts uploads of what the server had already, ``upload_bytes_skipped`` their bytes,
        ``uploads_kept`` the tensors that it keeps for that.
        ``acknowledged`` is the number of the last frame that is known to be applied; ``unanswered`` frames, of
        ``unanswered_bytes``, are on their way or wait for the server; ``resent`` counts frames that were sent again.
        """
        link = self.link
        structures = {f"structure_{name}": count for name, count in link.structures.items()}
        return {
            "frames": self.frames, "ops": self.ops, "round_trips": link.round_trips, "bytes_sent": link.bytes_sent,
            "bytes_received": link.bytes_received, "reconnects": link.reconnects, "acknowledged": link.acknowledged,
            "unanswered": link.unanswered, "unanswered_bytes": link.unanswered_bytes, "resent": link.resent,
            "uploads_skipped": self.kept_uploads.skipped, "upload_bytes_skipped": self.kept_uploads.skipped_bytes,
            "uploads_kept": len(self.kept_uploads),
            "bytes_per_frame": link.bytes_sent // max(self.frames, 1), **structures,
        }  # fmt: skip

    def round_trip_report(self) -> Report:
        """Which lines of the program waited for the server since the session was opened here, and for how long."""
        return report([self.waits.copy()])

    def describe(self) -> dict[str, Any]:
        """What the server says of the session: memory, tensors, expiry."""
        found: dict[str, Any] = self.rest.get(f"/v1/sessions/{self.id}")
        return found

    def memory(self) -> dict[str, int]:
        """What the session's tensors occupy on the server, in bytes, once everything recorded so far is done.

        ``live_bytes`` is held by tensors and graph, each piece of memory once; ``saved_bytes`` are those of them that
        the graph keeps for backward; ``pooled_bytes`` is held in reserve by the devices' allocators (0 on the CPU);
        ``peak_bytes`` was the most that was live at once; ``limit_bytes`` is the session's limit.
        """
        self.synchronize()
        found: dict[str, int] = self.rest.get(f"/v1/sessions/{self.id}/memory")
        return found

    def reset_peak_memory(self) -> None:
        """Forget the peak of :meth:`memory`: it becomes what is live once everything recorded so far is done."""
        self.synchronize()
        self.rest.delete(f"/v1/sessions/{self.id}/memory/peak")

    def rows(self, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """What the server's list of tensors says of these ids, by id; one that it does not have is left out. Sends
        nothing of what was recorded.
        """
        found: dict[int, dict[str, Any]] = {}
        for at in range(0, len(ids), ROWS_AT_ONCE):
            query = "&".join(f"tensor={each}" for each in ids[at : at + ROWS_AT_ONCE])
            page = self.rest.get(f"/v1/sessions/{self.id}/tensors?{query}")["tensors"]
            found.update((row["id"], row) for row in page)
        return found

    def graph(self, *tensors: Tensor) -> dict[str, Any]:
        """Nodes and edges of the live autograd graph behind these tensors (all, when none are given)."""
        self.synchronize()
        query = "&".join(f"tensor={t._id}" for t in tensors)
        found: dict[str, Any] = self.rest.get(f"/v1/sessions/{self.id}/graph" + (f"?{query}" if query else ""))
        return found
