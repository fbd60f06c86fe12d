"""Where the ranks of a group find each other."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import structlog

from gradwire_protocol.errors import CollectiveError, GradwireError

Address = tuple[str, int]

log = structlog.get_logger("gradwire.groups")


class GroupHost(Protocol):
    """What a rendezvous needs of the host of a session, wherever that runs."""

    async def prepare_group(self, name: str) -> dict[str, Any]:
        """Where the session's process takes connections (``address``), how people call it (``worker``), the
        incarnation of the group that a recovered session still has (``token``), and the version of NCCL by which the
        session may exchange tensors on GPUs (``nccl``; 0 for none)."""

    async def open_group(self, opening: dict[str, Any]) -> None:
        """Open a group whose ranks are all known, see :func:`opening`."""

    async def attach_group(self, name: str, secret: str, addresses: Sequence[Address]) -> bool:
        """Connect the group of a recovered session again."""

    async def group_moved(self, name: str, rank: int, address: Address) -> None:
        """A rank listens elsewhere from now on."""

    async def group_lost(self, name: str, rank: int, reason: str) -> None:
        """A rank will not come any more."""


class Joining(NamedTuple):
    """A rank that wants to open a group.

    Attributes:
        nccl: tensors on GPUs may travel by NCCL.
    """

    tenant: str
    group: str
    rank: int
    world_size: int
    timeout_s: float
    session: str
    host: GroupHost
    nccl: bool = True


def nccl_among(versions: Sequence[int]) -> bool:
    """Whether ranks with these versions of NCCL, 0 for none, may exchange tensors by it."""
    return len(set(versions)) == 1 and versions[0] > 0


def sizes_differ(group: str, rank: int, session: str, wanted: int, opened: int) -> CollectiveError:
    """The error of a rank that wants another size than those before it."""
    return CollectiveError(
        f"group {group!r} is being opened with {opened} ranks, but rank {rank} of session {session} wants {wanted}",
        group=group, rank=rank,
    )  # fmt: skip


def rank_is_taken(group: str, rank: int, session: str, worker: str) -> CollectiveError:
    """The error of a rank that another session has."""
    return CollectiveError(
        f"rank {rank} of group {group!r} is session {session} already", group=group, rank=rank, worker=worker
    )


def did_not_come(group: str, rank: int, missing: Sequence[int], timeout_s: float) -> CollectiveError:
    """The error of a rank that has waited for others in vain."""
    named = ", ".join(map(str, missing))
    return CollectiveError(
        f"group {group!r}: rank{'s' if len(missing) > 1 else ''} {named} did not come within {timeout_s:g} s",
        group=group, rank=missing[0] if missing else rank,
    )  # fmt: skip


def opened_view(joining: Joining, members: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What a rank is told of a group that is open. ``members``: session and worker of each rank."""
    return {
        "group": joining.group, "rank": joining.rank, "world_size": joining.world_size, "timeout_s": joining.timeout_s,
        "members": [{"rank": i, "session": session, "worker": worker} for i, (session, worker) in enumerate(members)],
    }  # fmt: skip


class Rendezvous(Protocol):
    """Brings the ranks of groups together and tells them of each other's fate."""

    async def join(self, joining: Joining) -> dict[str, Any]:
        """Wait for all ranks of a group and open it.

        Raises:
            CollectiveError: when a rank does not come in time, or two want to be the same.
        """

    async def recovered(self, session: str) -> None:
        """A session was recovered, maybe in another process: connect its groups again."""

    async def left(self, session: str, reason: str, group: str | None = None) -> None:
        """A session has ended, or has closed this group."""

    async def leaving(self, session: str) -> None:
        """A session is about to go to another server: it opens no more groups here."""

    def gone(self, session: str) -> None:
        """A session is not on this server any more; its groups go on."""


@dataclass(eq=False)
class _Member:
    joining: Joining
    address: Address
    worker: str
    token: str
    nccl: int


@dataclass(eq=False)
class _Room:
    """A group that is being opened, or is open.

    Attributes:
        opened: done when all ranks have come and have opened it.
    """

    world_size: int
    members: dict[int, _Member] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    token: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    opened: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    waiting: int = 0

    @property
    def addresses(self) -> list[Address]:
        return [self.members[rank].address for rank in range(self.world_size)]


class LocalRendezvous:
    """The rendezvous of the sessions of one server."""

    def __init__(self) -> None:
        self._opening: dict[tuple[str, str], _Room] = {}
        self._open: dict[tuple[str, str], _Room] = {}

    async def join(self, joining: Joining) -> dict[str, Any]:
        key = joining.tenant, joining.group
        prepared = await joining.host.prepare_group(joining.group)
        member = _Member(
            joining, tuple(prepared["address"]), prepared["worker"], prepared["token"],
            prepared.get("nccl", 0) if joining.nccl else 0,
        )  # fmt: skip
        room = self._opening.setdefault(key, _Room(joining.world_size))
        if room.world_size != joining.world_size:
            raise sizes_differ(joining.group, joining.rank, joining.session, joining.world_size, room.world_size)
        taken = room.members.get(joining.rank)
        if taken is not None and taken.joining.session != joining.session:
            raise rank_is_taken(joining.group, joining.rank, taken.joining.session, taken.worker)
        room.members[joining.rank] = member
        room.waiting += 1
        try:
            if len(room.members) == room.world_size:
                del self._opening[key]
                await self._open_all(key, room)
            else:
                await asyncio.wait_for(asyncio.shield(room.opened), joining.timeout_s)
        except TimeoutError:
            missing = [rank for rank in range(room.world_size) if rank not in room.members]
            room.members.pop(joining.rank, None)
            raise did_not_come(joining.group, joining.rank, missing, joining.timeout_s) from None
        finally:
            room.waiting -= 1
            if not room.waiting and self._opening.get(key) is room:
                del self._opening[key]
        return opened_view(joining, [(each.joining.session, each.worker) for _, each in sorted(room.members.items())])

    async def _open_all(self, key: tuple[str, str], room: _Room) -> None:
        tokens = {member.token for member in room.members.values()}
        resumes = len(tokens) == 1 and "" not in tokens
        if resumes:
            room.token = tokens.pop()
        self._open[key] = room
        nccl = nccl_among([member.nccl for member in room.members.values()])
        members = [(room.members[r].joining.session, room.members[r].worker) for r in range(room.world_size)]
        try:
            await asyncio.gather(*[
                member.joining.host.open_group({
                    "name": member.joining.group, "rank": rank, "world_size": room.world_size, "token": room.token,
                    "timeout_s": member.joining.timeout_s, "members": members, "secret": room.secret,
                    "addresses": room.addresses, "resumes": resumes, "nccl": nccl,
                })
                for rank, member in room.members.items()
            ])  # fmt: skip
        except BaseException as error:
            self._open.pop(key, None)
            if not room.opened.done():
                text = error.message if isinstance(error, GradwireError) else type(error).__name__
                room.opened.set_exception(CollectiveError(f"group {key[1]!r} was not opened: {text}", group=key[1]))
                room.opened.exception()  # marks it as retrieved; nobody else may wait
            raise
        room.opened.set_result(None)

    def _rooms_of(self, session: str, group: str | None = None) -> list[tuple[tuple[str, str], _Room, int]]:
        return [
            (key, room, rank)
            for key, room in list(self._open.items())
            for rank, member in room.members.items()
            if member.joining.session == session and group in (None, key[1])
        ]

    async def recovered(self, session: str) -> None:
        for (_, name), room, rank in self._rooms_of(session):
            member = room.members[rank]
            if len(room.members) < room.world_size:
                continue  # a rank has left: the group is over
            try:
                prepared = await member.joining.host.prepare_group(name)
                member.address, member.worker = tuple(prepared["address"]), prepared["worker"]
                await asyncio.gather(*[
                    other.joining.host.group_moved(name, rank, member.address)
                    for at, other in room.members.items()
                    if at != rank
                ])  # fmt: skip
                await member.joining.host.attach_group(name, room.secret, room.addresses)
            except GradwireError as error:
                log.warning("a group is not connected again", group=name, rank=rank, reason=error.message)

    async def leaving(self, session: str) -> None:
        """Sessions of one server only do not go elsewhere."""

    def gone(self, session: str) -> None:
        """As :meth:`leaving`."""

    async def left(self, session: str, reason: str, group: str | None = None) -> None:
        for key, room, rank in self._rooms_of(session, group):
            member = room.members.pop(rank)
            if not room.members:
                self._open.pop(key, None)
            text = f"rank {rank} (session {session} on {member.worker}) does not take part any more: {reason}"
            told = await asyncio.gather(
                *[other.joining.host.group_lost(key[1], rank, text) for other in room.members.values()],
                return_exceptions=True,
            )
            for error in told:
                if isinstance(error, BaseException) and not isinstance(error, GradwireError):
                    log.error("a rank was not told", group=key[1], exc_info=error)
