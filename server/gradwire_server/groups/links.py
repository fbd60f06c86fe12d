"""All links of one rank: what the engine's collectives use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from gradwire_engine.runtime.groups import Group

from .listener import Listener
from .messages import Kind, group_of
from .peer_link import PeerLink

Address = tuple[str, int]


class GroupLinks:
    """The connections of one rank to its peers: made when they are first needed, or when a peer needs them.

    Args:
        secret: shared by the group's ranks.
        addresses: where each rank listens.
        pause, resume: called by the session's thread around a wait.
    """

    def __init__(
        self,
        group: Group,
        secret: str,
        addresses: Sequence[Address],
        listener: Listener,
        pause: Callable[[], bool] = lambda: False,
        resume: Callable[[], None] = lambda: None,
    ) -> None:
        self.group = group
        self._addresses = list(addresses)
        self._listener = listener
        self._pause, self._resume = pause, resume
        self._key = (group_of(secret), group.rank)
        self._links = {
            peer: PeerLink(group, peer, secret, lambda peer=peer: self._addresses[peer])  # type: ignore[misc]
            for peer in range(group.world_size)
            if peer != group.rank
        }
        listener.register(self._key, self._links)

    # The engine's side

    def post(self, peer: int) -> None:
        self._links[peer].post()

    def take(self, peer: int, timeout_s: float) -> tuple[str, bytes | memoryview] | None:
        found = self._links[peer].take(timeout_s)
        if found is None:
            return None
        if found.kind is Kind.FAILED:
            raise self.group.error(found.number, f"group {self.group.spec.name!r}: {found.text}")
        return found.text, found.data

    def watch(self) -> None:
        for link in self._links.values():
            if (failure := link.failure()) is not None:
                rank, reason = failure
                raise self.group.error(rank, f"group {self.group.spec.name!r}: {reason}")

    def sent_to(self, peer: int, number: int, timeout_s: float) -> bool:
        return self._links[peer].acknowledged(number, timeout_s)

    def committed(self, received: Sequence[int]) -> None:
        for peer, link in self._links.items():
            link.committed(received[peer])

    def fail(self, reason: str) -> None:
        for link in self._links.values():
            link.fail(reason)

    def paused(self) -> bool:
        return self._pause()

    def resumed(self) -> None:
        self._resume()

    # The host's side

    def moved(self, rank: int, address: Address) -> None:
        """A rank listens elsewhere from now on."""
        self._addresses[rank] = address
        self._links[rank].drop()

    def lost(self, rank: int, reason: str) -> None:
        """A rank will not come any more."""
        self._links[rank].lost(rank, reason)

    def describe(self) -> dict[str, Any]:
        """Counts for people and for the metrics."""
        group = self.group
        return {
            "group": group.spec.name, "rank": group.rank, "world_size": group.world_size,
            "completed": group.completed, "bytes_sent": group.bytes_sent, "bytes_received": group.bytes_received,
            "wire_bytes_sent": sum(link.wire_bytes for link in self._links.values()),
            "waited_s": round(group.waited_s, 6), "connected": sum(link.connected for link in self._links.values()),
            "reconnects": sum(max(link.reconnects, 0) for link in self._links.values()), "failed": group.failed,
            "nccl": group.linked,
        }  # fmt: skip

    def detach(self) -> None:
        """End all connections at once and without a word: the peers wait until this rank is there again."""
        self.group.unlink()
        self._listener.forget(self._key, self._links)
        for link in self._links.values():
            link.detach()

    def close(self, reason: str) -> None:
        """Close all links once the peers have what they need."""
        self.group.unlink()
        self.fail(reason)
        for link in self._links.values():
            link.close()
        threading.Thread(target=self._forget, name=f"rank-{self.group.rank}-leaves", daemon=True).start()

    def _forget(self) -> None:
        # A peer may connect only now, and need what this rank has sent to it.
        for link in self._links.values():
            link.ended()
        self._listener.forget(self._key, self._links)
