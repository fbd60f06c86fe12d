"""The worker's part of groups: its sessions meet others, on whatever worker, through the Directory."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Any, Final

import ray
import structlog

from gradwire_protocol.errors import GradwireError, Unavailable

from ..groups.rendezvous import GroupHost, Joining, did_not_come, opened_view
from ..hosting.jobs import MOVING
from .group_messages import Arrival, Meeting, Seat, parsed, plain
from .group_tables import POLL_S
from .messages import DIRECTORY, NAMESPACE, answered

PATIENCE_S: Final = 20.0
"""How long a call waits for a Directory that is being restarted."""

CALL_S: Final = 10.0
"""A call that takes longer, beyond what it waits for, is lost."""

PAUSE_S: Final = 0.2
SETTLE_S: Final = 15.0
"""How long a recovered session waits until a new Directory knows the groups of all workers."""

log = structlog.get_logger("gradwire.groups")


async def call_directory(method: str, *arguments: Any, patience: float = PATIENCE_S, takes: float = 0.0) -> Any:
    """Call a method of the Directory that may be repeated, for as long as it is away.

    Raises:
        Unavailable: when it stays away.
        GradwireError: when it refuses.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            directory = await asyncio.to_thread(ray.get_actor, DIRECTORY, namespace=NAMESPACE)
            async with asyncio.timeout(takes + CALL_S):
                return answered(await getattr(directory, method).remote(*arguments))
        except ray.exceptions.RayTaskError as error:
            raise Unavailable(f"the fleet's directory failed: {str(error)[-300:]}") from None
        except (ValueError, TimeoutError, ray.exceptions.RayError) as error:
            if time.monotonic() > deadline:
                raise Unavailable(f"the fleet's directory is away: {str(error)[:200]}") from None
        await asyncio.sleep(PAUSE_S)


class FleetRendezvous:
    """The rendezvous of the sessions of one worker.

    Args:
        worker: its id.
        host_of: the host of a session that is here.
    """

    def __init__(self, worker: str, host_of: Callable[[str], GroupHost | None]) -> None:
        self.worker = worker
        self._host_of = host_of
        self._meetings: dict[tuple[str, str], Meeting] = {}
        self._joins: dict[str, set[asyncio.Task[Meeting]]] = {}
        """By session, its groups that are being opened."""
        self._ended: dict[str, asyncio.Event] = {}
        """By session, set when none is any more."""

    # The sessions' side

    async def join(self, joining: Joining) -> dict[str, Any]:
        """Wait for all ranks of a group and open it.

        Raises:
            CollectiveError: when a rank does not come in time, or two want to be the same.
            Unavailable: when the Directory stays away.
        """
        seat = await self._seat(joining.host, joining.group, joining.rank, joining.session)
        seat.nccl = seat.nccl if joining.nccl else 0
        seat.attempt = secrets.token_hex(12)
        arrival = Arrival(
            tenant=joining.tenant, group=joining.group, world_size=joining.world_size, seat=seat
        )  # fmt: skip
        waiting = asyncio.create_task(self._meet(arrival, joining))
        of_session = self._joins.setdefault(joining.session, set())
        of_session.add(waiting)
        ended = self._ended.setdefault(joining.session, asyncio.Event())
        try:
            return await self._open(joining, arrival, waiting)
        finally:
            of_session.discard(waiting)
            if not of_session:
                del self._joins[joining.session], self._ended[joining.session]
                ended.set()

    async def _open(self, joining: Joining, arrival: Arrival, waiting: asyncio.Task[Meeting]) -> dict[str, Any]:
        try:
            await asyncio.wait((waiting,))
        except asyncio.CancelledError:
            waiting.cancel()
            await asyncio.shield(self._withdraw(arrival))
            raise
        if waiting.cancelled():
            withdrawn = await self._withdraw(arrival)
            if withdrawn is None:
                raise Unavailable(f"session {joining.session} is being handed over", reason=MOVING)
            meeting = withdrawn  # the last rank came just now
        else:
            meeting = waiting.result()
        key = joining.session, joining.group
        self._meetings[key] = meeting
        addresses = meeting.addresses
        members = [(each.session, each.shown) for each in sorted(meeting.seats, key=lambda each: each.rank)]
        try:
            await joining.host.open_group({
                "name": joining.group, "rank": joining.rank, "world_size": meeting.world_size, "token": meeting.token,
                "timeout_s": joining.timeout_s, "members": members, "secret": meeting.secret,
                "addresses": addresses, "resumes": meeting.resumes, "nccl": meeting.nccl,
            })  # fmt: skip
        except BaseException as error:
            reason = error.message if isinstance(error, GradwireError) else type(error).__name__
            await self.left(joining.session, f"the group was not opened: {reason}", joining.group)
            raise
        await self._catch_up(joining.host, joining.rank, meeting, addresses)
        return opened_view(joining, members)

    async def _seat(self, host: GroupHost, group: str, rank: int, session: str) -> Seat:
        prepared = await host.prepare_group(group)
        address, port = prepared["address"]
        return Seat(
            rank=rank, session=session, worker=self.worker, shown=prepared["worker"], host=address, port=port,
            token=prepared["token"], nccl=prepared.get("nccl", 0),
        )  # fmt: skip

    async def _meet(self, arrival: Arrival, joining: Joining) -> Meeting:
        deadline = time.monotonic() + joining.timeout_s
        while True:
            remaining = deadline - time.monotonic()
            wait_s = min(max(remaining, 0.0), POLL_S)
            found = await call_directory("group_join", plain(arrival), wait_s, patience=max(remaining, 0), takes=wait_s)
            if "meeting" in found:
                return parsed(found["meeting"], Meeting)
            if time.monotonic() >= deadline:
                break
        withdrawn = await self._withdraw(arrival)
        if withdrawn is not None:  # the last one came just now
            return withdrawn
        raise did_not_come(joining.group, joining.rank, found["missing"], joining.timeout_s)

    async def _withdraw(self, arrival: Arrival) -> Meeting | None:
        found = await call_directory("group_withdraw", plain(arrival))
        return parsed(found["meeting"], Meeting) if "meeting" in found else None

    async def _catch_up(self, host: GroupHost, rank: int, meeting: Meeting, used: list[tuple[str, int]]) -> None:
        """Tell a host what has changed since it was given the addresses."""
        for at, address in enumerate(used):
            seat = meeting.of_rank(at)
            if at == rank:
                continue
            if seat is None:
                await host.group_lost(meeting.group, at, f"rank {at} has left group {meeting.group!r}")
            elif seat.address != address:
                await host.group_moved(meeting.group, at, seat.address)

    async def recovered(self, session: str) -> None:
        """A session was recovered here: its groups go on, with its new address."""
        deadline = time.monotonic() + SETTLE_S
        try:
            while True:
                found = await call_directory("groups_of", session)
                for each in found["meetings"]:
                    await self._attach(session, parsed(each, Meeting))
                if found["meetings"] or found["settled"] or time.monotonic() > deadline:
                    return
                await asyncio.sleep(PAUSE_S)
        except GradwireError as error:
            log.warning("groups are not connected again", session=session, reason=error.message)

    async def _attach(self, session: str, known: Meeting) -> None:
        host, former = self._host_of(session), known.of_session(session)
        if host is None or former is None:
            return
        seat = await self._seat(host, known.group, former.rank, session)
        seat.token, seat.attempt = former.token, former.attempt
        key = session, known.group
        meeting = parsed(await call_directory("group_moved", known.id, plain(seat)), Meeting)
        if (mine := self._meetings.get(key)) is not None and mine.id == meeting.id:
            for each in meeting.seats:
                mine.replace(each)
            meeting = mine
        self._meetings[key] = meeting
        addresses = meeting.addresses
        if not await host.attach_group(known.group, meeting.secret, addresses):
            await self.left(session, "its session was recovered without the group", known.group)
            return
        await self._catch_up(host, former.rank, meeting, addresses)
        log.info("a group is connected again", session=session, group=known.group, rank=former.rank)

    async def left(self, session: str, reason: str, group: str | None = None) -> None:
        """A session has ended, or has closed this group."""
        known = [key for key in self._meetings if key[0] == session and group in (None, key[1])]
        for key in known:
            del self._meetings[key]
        if known or group is not None:  # the Directory notices itself that a session has ended
            try:
                await call_directory("group_left", session, reason, group)
            except GradwireError as error:
                log.warning("ranks were not told that one has left", session=session, reason=error.message)

    async def leaving(self, session: str) -> None:
        """A session is about to go to another worker: end what waits for the ranks of a group, or let it open."""
        for each in self._joins.get(session, ()):
            each.cancel()
        if (last := self._ended.get(session)) is not None:
            await last.wait()

    def gone(self, session: str) -> None:
        """A session is not here any more. Its groups go on, and another worker announces them."""
        for key in [key for key in self._meetings if key[0] == session]:
            del self._meetings[key]

    # The Directory's side

    def announced(self) -> list[dict[str, Any]]:
        """The groups that are open here, for a Directory that does not know them."""
        return [plain(each) for each in {each.id: each for each in self._meetings.values()}.values()]

    async def moved(self, session: str, group: str, meeting: str, seat: Seat) -> None:
        """Another rank listens elsewhere from now on."""
        known, host = self._meetings.get((session, group)), self._host_of(session)
        if known is not None and known.id == meeting and known.replace(seat) and host is not None:
            await host.group_moved(group, seat.rank, seat.address)

    async def lost(self, session: str, group: str, meeting: str, rank: int, reason: str) -> None:
        """Another rank will not come any more."""
        known, host = self._meetings.get((session, group)), self._host_of(session)
        if known is None or known.id != meeting:
            return
        if (seat := known.of_rank(rank)) is not None:
            known.seats.remove(seat)
        if host is not None:
            await host.group_lost(group, rank, reason)
