"""The Directory's part of groups: ranks on all workers find each other here, and are told of each other's fate.

Groups that are open do not need the Directory. The table of them follows from the workers, which announce theirs to
each new Directory; a rank that still waits asks again.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from gradwire_protocol.errors import CollectiveError

from ..groups.rendezvous import nccl_among, rank_is_taken, sizes_differ
from .group_messages import Arrival, Meeting, Seat, plain

POLL_S: Final = 5.0
"""How long one call of a rank that waits takes at most."""

PRESENT_S: Final = 3.0
"""How long a rank counts as present after such a call, until the next."""

Tell = Callable[[str, str, tuple[Any, ...]], None]


@dataclass(eq=False)
class _Waiting:
    seat: Seat
    calls: int = 0
    seen: float = field(default_factory=time.monotonic)

    @property
    def present(self) -> bool:
        return self.calls > 0 or time.monotonic() - self.seen < PRESENT_S


@dataclass(eq=False)
class _Room:
    """A group that is being opened."""

    world_size: int
    ranks: dict[int, _Waiting] = field(default_factory=dict)
    met: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def missing(self) -> list[int]:
        return [rank for rank in range(self.world_size) if rank not in self.ranks]


class GroupTables:
    """All groups of the fleet.

    Args:
        tell: calls a method of a worker, in the background.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._opening: dict[tuple[str, str], _Room] = {}
        self._open: dict[str, Meeting] = {}
        self._of_session: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._open)

    # Opening

    async def join(self, arrival: Arrival, wait_s: float) -> Meeting | list[int]:
        """Wait a while for all ranks of a group. Returns the ranks that are missing, if some are.

        Raises:
            CollectiveError: when two ranks want to be the same, or the sizes differ.
        """
        seat = arrival.seat
        if (met := self._met(seat)) is not None:
            return met
        room = self._room(arrival)
        waiting = room.ranks.get(seat.rank)
        if waiting is None or waiting.seat.attempt != seat.attempt:
            waiting = room.ranks[seat.rank] = _Waiting(seat)
        if not room.missing:
            return self._open_room(arrival, room)
        waiting.calls += 1
        try:
            await asyncio.wait_for(room.met.wait(), min(max(wait_s, 0.0), POLL_S))
        except TimeoutError:
            self._drop_absent(room)
        finally:
            waiting.calls -= 1
            waiting.seen = time.monotonic()
        return self._met(seat) or room.missing

    def withdraw(self, arrival: Arrival) -> Meeting | None:
        """A rank waits no more. Returns the meeting if it has come about meanwhile."""
        if (met := self._met(arrival.seat)) is not None:
            return met
        key = arrival.tenant, arrival.group
        room = self._opening.get(key)
        if room is not None:
            waiting = room.ranks.get(arrival.seat.rank)
            if waiting is not None and waiting.seat.attempt == arrival.seat.attempt:
                del room.ranks[arrival.seat.rank]
            if not room.ranks:
                del self._opening[key]
        return None

    def _met(self, seat: Seat) -> Meeting | None:
        for each in self._of(seat.session):
            known = each.of_session(seat.session)
            if known is not None and known.attempt == seat.attempt:
                return each
        return None

    def _room(self, arrival: Arrival) -> _Room:
        """The room of an arrival, in which its place is free or its own."""
        seat, key = arrival.seat, (arrival.tenant, arrival.group)
        room = self._opening.get(key)
        if room is not None:
            self._drop_absent(room)
        if room is None or not room.ranks:
            room = self._opening[key] = _Room(arrival.world_size)
        if room.world_size != arrival.world_size:
            raise sizes_differ(arrival.group, seat.rank, seat.session, arrival.world_size, room.world_size)
        taken = room.ranks.get(seat.rank)
        if taken is not None and taken.seat.session != seat.session:
            raise rank_is_taken(arrival.group, seat.rank, taken.seat.session, taken.seat.shown)
        return room

    def _drop_absent(self, room: _Room) -> None:
        """Forget ranks whose workers do not ask any more."""
        for rank, each in list(room.ranks.items()):
            if not each.present:
                del room.ranks[rank]

    def _open_room(self, arrival: Arrival, room: _Room) -> Meeting:
        del self._opening[(arrival.tenant, arrival.group)]
        seats = [room.ranks[rank].seat for rank in range(room.world_size)]
        tokens = {each.token for each in seats}
        resumes = len(tokens) == 1 and "" not in tokens
        made = Meeting(
            id=secrets.token_hex(12), tenant=arrival.tenant, group=arrival.group, world_size=room.world_size,
            secret=secrets.token_urlsafe(24), token=tokens.pop() if resumes else secrets.token_urlsafe(12),
            resumes=resumes, nccl=nccl_among([each.nccl for each in seats]), seats=seats,
        )  # fmt: skip
        self._add(made)
        room.met.set()
        return made

    def sweep(self) -> None:
        """Forget rooms in which nobody waits any more."""
        for key, room in list(self._opening.items()):
            self._drop_absent(room)
            if not room.ranks:
                del self._opening[key]

    # Open groups

    def _add(self, meeting: Meeting) -> None:
        self._open[meeting.id] = meeting
        for each in meeting.seats:
            self._of_session.setdefault(each.session, set()).add(meeting.id)

    def _of(self, session: str) -> list[Meeting]:
        return [self._open[name] for name in sorted(self._of_session.get(session, ()))]

    def of_session(self, session: str) -> list[Meeting]:
        """The groups of a session, whose ranks are all still there."""
        return [each for each in self._of(session) if each.complete]

    def announced(self, meeting: Meeting) -> None:
        """A worker has this group open."""
        known = self._open.get(meeting.id)
        if known is None:
            self._add(meeting)
            return
        for seat in meeting.seats:
            known.replace(seat)

    def moved(self, meeting: str, seat: Seat) -> Meeting:
        """A rank was taken over by another worker. Tells the others, and returns where they are.

        Raises:
            CollectiveError: when the group is over.
        """
        known = self._open.get(meeting)
        former = known.of_rank(seat.rank) if known is not None else None
        if known is None or former is None or not known.complete:
            raise CollectiveError("the group is over", rank=seat.rank)
        seat.moves = former.moves + 1
        known.replace(seat)
        for each in known.seats:
            if each.rank != seat.rank:
                self._tell(each.worker, "group_moved", (each.session, known.group, known.id, plain(seat)))
        return known

    def left(self, session: str, reason: str, group: str | None = None) -> None:
        """A session has ended, or has left this group: the others are told."""
        for meeting in self._of(session):
            if group not in (None, meeting.group):
                continue
            seat = meeting.of_session(session)
            assert seat is not None
            meeting.seats.remove(seat)
            of_session = self._of_session[session]
            of_session.discard(meeting.id)
            if not of_session:
                del self._of_session[session]
            if not meeting.seats:
                del self._open[meeting.id]
            text = f"rank {seat.rank} (session {session} on {seat.shown}) does not take part any more: {reason}"
            for each in meeting.seats:
                self._tell(each.worker, "group_lost", (each.session, meeting.group, meeting.id, seat.rank, text))
