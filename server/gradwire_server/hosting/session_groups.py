"""The open groups of one session, with their connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gradwire_engine.runtime.groups import Group, GroupSpec, Member
from gradwire_engine.session.session import Session

from ..durable.records import ExchangeNote, GroupNote, Notes
from ..groups import listener
from ..groups.links import GroupLinks


class SessionGroups:
    """What a runner has besides the engine's groups.

    Attributes:
        pause, resume: called by the session's thread around a wait for other ranks; the host sets them.
    """

    def __init__(self) -> None:
        self._links: dict[str, GroupLinks] = {}
        self._ended: set[str] = set()
        self.pause: Callable[[], bool] = lambda: False
        self.resume: Callable[[], None] = lambda: None

    def open(self, session: Session, opened: GroupNote, keeps: bool, meets: bool = False) -> None:
        """Let the session have this group, instead of an older one with its name.

        Args:
            keeps, meets: see :class:`.Group`.
        """
        self.close(session, opened.name, "it was opened again")
        members = tuple([Member(*member) for member in opened.members])
        spec = GroupSpec(opened.name, opened.rank, opened.world_size, opened.token, opened.timeout_s, members)
        session.engine.groups[opened.name] = Group(spec, keeps=keeps, meets=meets and not keeps)
        self._ended.discard(opened.name)

    def connect(self, session: Session, name: str, secret: str, addresses: Sequence[tuple[str, int]]) -> bool:
        """Connect a group with its ranks. Returns False if the session has no such group."""
        group = session.engine.groups.get(name)
        if group is None or group.failed:
            return False
        old = self._links.pop(name, None)
        if old is not None:
            old.close("it was connected again")
        made = GroupLinks(group, secret, addresses, listener.SHARED, lambda: self.pause(), lambda: self.resume())
        self._links[name] = group.communicator = made
        return True

    def token(self, session: Session, name: str) -> str:
        """The incarnation of a group that the session has and that is not connected; empty without one."""
        group = session.engine.groups.get(name)
        return group.spec.token if group is not None and not group.failed and name not in self._links else ""

    def close(self, session: Session, name: str, reason: str = "it closed the group") -> bool:
        """Close a group. Returns whether there was one."""
        links, group = self._links.pop(name, None), session.engine.groups.pop(name, None)
        if links is not None:
            links.close(f"rank {links.group.rank} does not take part any more: {reason}")
        return group is not None

    def close_all(self, reason: str, session: Session | None = None) -> None:
        """Close the connections of all groups; with ``session``, its groups have failed."""
        for links in self._links.values():
            links.close(f"rank {links.group.rank} does not take part any more: {reason}")
        self._links.clear()
        if session is not None:
            for group in session.engine.groups.values():
                group.failed = group.failed or reason

    def suspend(self, session: Session) -> None:
        """Give up a frame that waits for other ranks. Any thread may call this."""
        for group in list(session.engine.groups.values()):
            group.suspended = True

    def detach(self) -> None:
        """End all connections, so that the groups go on where the session does."""
        for links in self._links.values():
            links.detach()
            links.group.communicator = None
        self._links.clear()

    def needed(self, session: Session) -> bool:
        """Whether another rank may still need something that only this session's memory has. Any thread may call."""
        return any(group.needed for group in list(session.engine.groups.values()))

    def moved(self, name: str, rank: int, address: tuple[str, int]) -> None:
        """A rank listens elsewhere from now on."""
        if (links := self._links.get(name)) is not None:
            links.moved(rank, address)

    def lost(self, name: str, rank: int, reason: str) -> None:
        """A rank will not come any more."""
        if (links := self._links.get(name)) is not None:
            links.lost(rank, reason)

    def describe(self) -> list[dict[str, Any]]:
        """Counts of all connected groups."""
        return [links.describe() for links in self._links.values()]

    # The journal

    def noted(self, session: Session, notes: Notes) -> Notes:
        """The notes of a frame, with what it received from other ranks."""
        exchanges = {}
        for name, group in session.engine.groups.items():
            found = group.exchanged()
            if found is not None:
                received = [(peer, bytes(data)) for peer, data in found.received]
                exchanges[name] = ExchangeNote(received, list(found.needed))
        return msgspec.structs.replace(notes, exchanges=exchanges) if exchanges else notes

    def ended(self, session: Session) -> list[str]:
        """The groups that have failed since the last call."""
        found = [n for n, group in session.engine.groups.items() if group.failed and n not in self._ended]
        self._ended.update(found)
        return found

    def committed(self, session: Session) -> None:
        """All applied frames are committed: the other ranks need not keep what they sent for them."""
        for name, group in session.engine.groups.items():
            if group.keeps and (links := self._links.get(name)) is not None:
                links.committed(group.received)
