"""What can be asked of a running session, whether it has a journal or not."""

from __future__ import annotations

from typing import Any

from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import detached, take

from ..durable import snapshots
from ..settings.session_spec import SessionSpec


class SessionQueries:
    """The queries of a runner."""

    spec: SessionSpec
    session: Session

    def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None, peek: bool = False
    ) -> list[dict[str, Any]]:
        """Rows of live tensors by ascending id; ``peek`` from another thread while an op runs."""
        return self.session.tensors(after, most, among, peek)

    def names(
        self, after: str = "", most: int | None = None, among: list[str] | None = None, peek: bool = False
    ) -> list[dict[str, Any]]:
        """Rows of named tensors by ascending name; ``peek`` as in :meth:`tensors`."""
        return self.session.names(after, most, among, peek)

    def memory(self) -> dict[str, int]:
        """The memory of the session's tensors."""
        return self.session.memory()

    def reset_peak(self) -> None:
        """Reset the peak memory to the current memory."""
        self.session.reset_peak_memory()

    def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the autograd graph of these tensors, or of all.

        Raises:
            UnknownTensor: for an unknown id.
            LimitExceeded: when the graph has more than ``most`` nodes.
        """
        return self.session.graph(ids, most)

    def export(self) -> bytes:
        """The session's tensors and names as a file."""
        return b"".join(snapshots.encode(detached(self.session)))

    def image(self) -> bytes:
        """The whole session, as :meth:`go_on` takes it: for one without a journal that moves to another process.

        Raises:
            NotImageable: while the session has transient state.
        """
        return b"".join(snapshots.encode(take(self.session), session=self.spec.id))
