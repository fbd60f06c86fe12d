"""How the ranks of a group agree on the way between their GPUs, and use it.

Before each collective, every rank tells all others on which GPU its tensor lies and which communicator it has for it.
All know the same then, and come to the same decision: by NCCL if each tensor lies on a GPU of its own and NCCL's
versions are equal, else through host memory. A rank that has moved to another worker has no communicator any more, so
all make a new one. These messages are part of the collective, so they also show that all ranks run the same one before
any of them waits in NCCL; a second round shows that all have left it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from . import nccl
from .backends import CupyBackend
from .lane import Lane
from .nccl import Link, Ring

T = TypeVar("T")

log = logging.getLogger("gradwire.groups")


class Place(msgspec.Struct, array_like=True, frozen=True):
    """What a rank tells of itself.

    Attributes:
        version: of its NCCL; 0 if its tensor is in host memory, or if it does not use NCCL.
        device: names its GPU among those of all machines.
        link: names the communicator that it has for this GPU; empty for none.
        counts: what it will send to each rank, where that is not the same for all.
    """

    version: int = 0
    device: str = ""
    link: str = ""
    counts: tuple[int, ...] = ()


def told_by_all(lane: Lane, mine: T) -> list[T]:
    """What each rank tells, by rank, in as many rounds as a barrier takes."""
    ranks, rank = lane.world_size, lane.rank
    known = {rank: mine}
    decoder = msgspec.msgpack.Decoder(dict[int, type(mine)])  # type: ignore[misc]
    step = 1
    while step < ranks:
        lane.send((rank + step) % ranks, msgspec.msgpack.encode(known))
        peer = (rank - step) % ranks
        data = lane.receive(peer)
        try:
            known.update(decoder.decode(data))
        except msgspec.MsgspecError as error:
            raise lane.error(peer, f"{lane.named(peer)} does not tell where its tensors lie: {error}") from None
        step *= 2
    return [known[each] for each in range(ranks)]


class Meeting(NamedTuple):
    """The ranks of one collective, which have all come.

    Attributes:
        counts: what each rank has told (:attr:`Place.counts`).
        link: how their GPUs are connected; ``None`` if tensors go through host memory.
    """

    lane: Lane
    counts: list[tuple[int, ...]]
    link: Link | None

    def run(self, function: Callable[..., None], *arguments: Any, after: Any = None) -> None:
        """Call a function with a :class:`.nccl.Ring` and these arguments on the GPU; all ranks do.

        Args:
            after: the event that it begins after; by default, all that this thread has issued.

        Raises:
            CollectiveError: when a rank fails or is lost.
        """
        link = self.link
        assert link is not None

        def work(ring: Ring) -> None:
            function(ring, *arguments)

        link.run(self.lane, work, after)
        try:
            told_by_all(self.lane, 0)  # so that no rank releases its memory while another one reads it
        except BaseException:
            link.abort()
            raise


class DevicePeers:
    """The communicator of one rank of a group, for as long as there is one.

    Attributes:
        refused: why this group does not try NCCL any more.
    """

    def __init__(self) -> None:
        self.refused = ""
        self._link: Link | None = None
        self._over = False

    @property
    def linked(self) -> bool:
        """Whether there is a communicator."""
        return self._link is not None

    def meet(self, lane: Lane, backend: CupyBackend | None, counts: Sequence[int] = ()) -> Meeting:
        """Begin a collective of all ranks.

        Args:
            backend: of the GPU on which this rank's tensor lies; ``None`` for host memory.
            counts: what this rank will send to each rank.
        """
        place = Place(counts=tuple(counts))
        if backend is not None and not self.refused and (version := nccl.version_of(backend.xp)):
            device = nccl.identity(backend)
            has = self._link is not None and self._link.device == device
            place = Place(version, device, self._link.name if has and self._link else "", place.counts)
        places = told_by_all(lane, place)
        told = [each.counts for each in places]
        if backend is None or not _apart(places):
            return Meeting(lane, told, None)
        links = {each.link for each in places}
        if len(links) > 1 or "" in links:
            self._connect(lane, backend, place.device)
        if self._over:
            raise lane.error(lane.rank, "the group is over")
        return Meeting(lane, told, self._link)

    def _connect(self, lane: Lane, backend: CupyBackend, device: str) -> None:
        """Make a communicator instead of the one that not all ranks have; if one rank cannot, none has one."""
        self.close()
        unique, reason = b"", ""
        if lane.rank == 0:
            try:
                unique = nccl.unique_id(backend.xp)
            except Exception as error:
                log.warning("NCCL gives no id: %s", error)
        unique = told_by_all(lane, unique)[0]
        if unique:
            name = hashlib.sha256(unique).hexdigest()[:16]
            link = Link(name, device, backend, lane.rank, lane.world_size, unique)
            try:
                reason = _outcome(lane, link)
            except BaseException:
                link.abort()
                raise
        else:
            reason = "rank 0 has no id for the communicator"
        if reason:
            self.refused = reason
            if unique:
                link.abort()
            log.warning("tensors on GPUs go through host memory: %s", reason)
        else:
            self._link = link
            if self._over:
                self.abort()
            log.info("%d ranks exchange tensors on GPUs by NCCL", lane.world_size)

    def close(self) -> None:
        """Let go of the communicator; no rank is in a collective."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def abort(self) -> None:
        """End the collective that runs, and let go of the communicator. The group is over."""
        self._over = True
        if self._link is not None:
            self._link.abort()
            self._link = None


def _apart(places: Sequence[Place]) -> bool:
    """Whether each tensor lies on a GPU of its own, with the same NCCL."""
    versions, devices = {each.version for each in places}, {each.device for each in places}
    return len(versions) == 1 and 0 not in versions and len(devices) == len(places)


def _outcome(lane: Lane, link: Link) -> str:
    """Why a communicator cannot be used, the same for all ranks; empty if it can.

    A rank on which NCCL fails tells the others, who might wait for it in NCCL.
    """
    peers = [peer for peer in range(lane.world_size) if peer != lane.rank]
    heard: dict[int, str] = {}

    def ask(seconds: float) -> str | None:
        mine = link.opened(seconds)
        if mine is not None:
            return mine
        for peer in peers:
            if peer not in heard and (data := lane.arrived(peer)) is not None:
                heard[peer] = str(data, "utf-8")
        return "it waited for a rank on which NCCL failed" if any(heard.values()) else None

    mine = heard[lane.rank] = lane.wait(ask)
    for peer in peers:
        lane.send(peer, mine.encode())
    for peer in peers:
        if peer not in heard:
            heard[peer] = str(lane.receive(peer), "utf-8")
    failed = [f"rank {rank}: {text}" for rank, text in sorted(heard.items()) if text]
    return "; ".join(failed)
