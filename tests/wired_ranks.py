"""Ranks of one process that exchange messages by queues, without sockets."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from typing import Any, TypeAlias

from gradwire_engine.runtime.groups import Group, GroupSpec, Member

Queues: TypeAlias = "dict[tuple[int, int], queue.SimpleQueue[Any]]"


def spec(rank: int, ranks: int, timeout_s: float = 30.0) -> GroupSpec:
    return GroupSpec("world", rank, ranks, "token", timeout_s, tuple([Member(f"s{r}", "here") for r in range(ranks)]))


def queues_of(ranks: int) -> Queues:
    """A queue from each rank to each."""
    return {(a, b): queue.SimpleQueue() for a in range(ranks) for b in range(ranks)}


class Wires:
    """What one rank has of queues between all."""

    def __init__(self, group: Group, queues: Queues) -> None:
        self.group, self._queues = group, queues

    def post(self, peer: int) -> None:
        sent = self.group.outbox[peer][-1]
        self._queues[self.group.rank, peer].put((sent.what, sent.data))

    def take(self, peer: int, timeout_s: float) -> tuple[str, bytes] | None:
        try:
            found: tuple[str, bytes] = self._queues[peer, self.group.rank].get(timeout=timeout_s or 0.001)
        except queue.Empty:
            return None
        return found

    def watch(self) -> None:
        pass

    def sent_to(self, peer: int, number: int, timeout_s: float) -> bool:
        return True

    def committed(self, received: Sequence[int]) -> None:
        pass

    def fail(self, reason: str) -> None:
        pass

    def paused(self) -> bool:
        return False

    def resumed(self) -> None:
        pass


class Links(Wires):
    """Wires whose ends hear of each other's failure, as links do.

    Args:
        failed: why, by rank; all ends share it.
    """

    def __init__(self, group: Group, queues: Queues, failed: dict[int, str]) -> None:
        super().__init__(group, queues)
        self.failed = failed

    def watch(self) -> None:
        for rank, reason in list(self.failed.items()):
            if rank != self.group.rank:
                raise self.group.error(rank, reason)

    def take(self, peer: int, timeout_s: float) -> tuple[str, bytes] | None:
        found = super().take(peer, timeout_s)
        if found is None and peer in self.failed:
            raise self.group.error(peer, self.failed[peer])
        return found

    def fail(self, reason: str) -> None:
        self.failed[self.group.rank] = reason
