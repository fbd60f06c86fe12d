"""What workers and the Directory send each other about groups of ranks."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

Address = tuple[str, int]


class Seat(msgspec.Struct, kw_only=True):
    """One rank of a group.

    Attributes:
        worker: the actor that has its session.
        shown: the worker's machine and process, for people.
        host, port: where the rank's worker takes connections of other ranks.
        token: the incarnation of the group that a recovered session still has.
        attempt: of the request that opened the group; it is the same when a worker asks again.
        moves: how often the rank has moved to another worker. The higher one is newer.
        nccl: the version of NCCL by which the session may exchange tensors on GPUs; 0 for none.
    """

    rank: int = 0
    session: str = ""
    worker: str = ""
    shown: str = ""
    host: str = ""
    port: int = 0
    token: str = ""
    attempt: str = ""
    moves: int = 0
    nccl: int = 0

    @property
    def address(self) -> Address:
        return self.host, self.port


class Arrival(msgspec.Struct, kw_only=True):
    """A rank that wants to open a group."""

    tenant: str = ""
    group: str = ""
    world_size: int = 0
    seat: Seat = msgspec.field(default_factory=Seat)


class Meeting(msgspec.Struct, kw_only=True):
    """A group whose ranks have all come.

    Attributes:
        id: of this meeting; groups may have the same name one after the other.
        secret: known to the ranks' workers and the Directory alone.
        token: the incarnation of the group.
        resumes: the sessions have the group already, from their journals.
        nccl: its ranks may exchange tensors on GPUs by NCCL.
        seats: the ranks; those that have left are missing.
    """

    id: str = ""
    tenant: str = ""
    group: str = ""
    world_size: int = 0
    secret: str = ""
    token: str = ""
    resumes: bool = False
    nccl: bool = False
    seats: list[Seat] = []

    @property
    def complete(self) -> bool:
        """Whether no rank has left."""
        return len(self.seats) == self.world_size

    @property
    def addresses(self) -> list[Address]:
        """Where each rank listens; needs all of them."""
        return [each.address for each in sorted(self.seats, key=lambda each: each.rank)]

    def of_rank(self, rank: int) -> Seat | None:
        """The seat of a rank, if it has not left."""
        return next((each for each in self.seats if each.rank == rank), None)

    def of_session(self, session: str) -> Seat | None:
        """The seat of a session, if it has one."""
        return next((each for each in self.seats if each.session == session), None)

    def replace(self, seat: Seat) -> bool:
        """A rank has moved. Returns whether this was news."""
        known = self.of_rank(seat.rank)
        if known is None or known.moves >= seat.moves:
            return False
        self.seats[self.seats.index(known)] = seat
        return True


def plain(message: msgspec.Struct) -> dict[str, Any]:
    """A message as dictionaries and lists."""
    found: dict[str, Any] = msgspec.to_builtins(message)
    return found


def parsed(data: dict[str, Any], kind: type[T]) -> T:
    """The message in a dictionary."""
    return msgspec.convert(data, kind, strict=False)
