"""Groups of sessions that exchange data, as one of their ranks sees them.

A rank and each of its peers exchange numbered messages in both directions, in order. Which messages a collective sends
and expects follows from its arguments alone, so a rank that is recovered and runs its last frames again sends the same
messages: its peers drop those that they have, and send again those that it had not committed. That is why a rank keeps
what it sent until the peer has committed it (:attr:`Group.outbox`), and why a journal keeps what a frame received: a
session replays alone (:meth:`Group.replay`), and has its outbox again afterwards.

This module knows neither sockets nor threads of others: the host provides a :class:`Communicator`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol, TypeVar

from gradwire_protocol.errors import Cancelled, CollectiveError, GroupNotOpen

from .arrays import Array
from .backends import CupyBackend
from .background import POLL_S, Background, BackgroundQueue
from .deadline import Clock
from .device_peers import DevicePeers, Meeting
from .lane import Lane

CONNECTIONS_S: Final = 15.0
"""How long a collective of a recovered session waits for the host to connect the group again."""

T = TypeVar("T")

Received = tuple[int, bytes | memoryview]
"""A peer, and what came from it."""


class Suspended(BaseException):
    """The frame's session goes on elsewhere, from before this frame. Not an :class:`Exception`: no op may catch it."""


class Member(NamedTuple):
    """A rank as its peers name it.

    Attributes:
        session: its session.
        worker: where that runs, for people.
    """

    session: str
    worker: str


class GroupSpec(NamedTuple):
    """What a group was opened with.

    Attributes:
        token: names the incarnation of the group: all its ranks opened it together.
        timeout_s: how long a collective waits for a peer.
        members: the ranks, in order.
    """

    name: str
    rank: int
    world_size: int
    token: str
    timeout_s: float
    members: tuple[Member, ...]


class Counts(NamedTuple):
    """How far a rank has come.

    Attributes:
        completed: how many ops of the group are complete.
        collectives: how many of them were of all ranks.
        sent, received: how many messages went to each peer and came from it.
    """

    completed: int
    collectives: int
    sent: tuple[int, ...]
    received: tuple[int, ...]


class Sent(NamedTuple):
    """A message for a peer.

    Attributes:
        number: counts the messages to this peer, from 1.
        what: the collective and its tensor, which must be the same for all ranks.
        data: a copy of its own.
        awaited: the sender waits until the peer's host has it.
    """

    number: int
    what: str
    data: bytes | memoryview
    awaited: bool


class Exchanged(NamedTuple):
    """What a frame did in a group, for the journal.

    Attributes:
        received: in order.
        needed: by peer, the number of the first message that the peer may still need.
    """

    received: tuple[Received, ...]
    needed: tuple[int, ...]


class Communicator(Protocol):
    """What a host provides to an open group. One thread at a time calls its methods: the session's, or for
    :meth:`post` and :meth:`take` that of a collective which runs beside it."""

    def post(self, peer: int) -> None:
        """The outbox has a new message for this peer."""

    def take(self, peer: int, timeout_s: float) -> tuple[str, bytes | memoryview] | None:
        """The next message of a peer and what it is part of; ``None`` after the timeout.

        Raises:
            CollectiveError: when a peer gave up, was lost, or does something else.
        """

    def watch(self) -> None:
        """Look whether all peers take part, whatever they have sent.

        Raises:
            CollectiveError: when one gave up or was lost.
        """

    def sent_to(self, peer: int, number: int, timeout_s: float) -> bool:
        """Whether the peer's host has received this message."""

    def committed(self, received: Sequence[int]) -> None:
        """Tell the peers which of their messages they need not keep any more."""

    def fail(self, reason: str) -> None:
        """Tell the peers that this rank gives up, and why."""

    def paused(self) -> bool:
        """The session's thread is about to wait: others may compute. Returns whether :meth:`resumed` is to follow."""

    def resumed(self) -> None:
        """The session's thread goes on."""


class Group:
    """One open group of a session.

    Attributes:
        keeps: the session has a journal, so this rank and its peers may be recovered: what was sent is kept until
            the peer has committed it.
        meets: before each collective, the ranks tell each other where its tensors lie. No rank of such a group keeps
            what it sent: what goes from GPU to GPU is not kept.
        outbox: by peer, the messages that it may still need. Guarded by :attr:`lock`.
        failed: why no further collective of this group can run; empty while it works.
        suspended: the session is to go on elsewhere: a frame that would wait is given up. Set by any thread.
        taken: what the frame that runs has received, in order.
        bytes_sent, bytes_received: of tensors, without headers.
    """

    def __init__(self, spec: GroupSpec, counts: Counts | None = None, keeps: bool = False, meets: bool = False) -> None:
        self.spec = spec
        self.keeps = keeps
        self.meets = meets
        self._devices = DevicePeers()
        self.lock = threading.Lock()
        start = counts or Counts(0, 0, (0,) * spec.world_size, (0,) * spec.world_size)
        self.completed = start.completed
        self.sent = list(start.sent)
        self.received = list(start.received)
        self.outbox: list[deque[Sent]] = [deque() for _ in range(spec.world_size)]
        self.communicator: Communicator | None = None
        self.failed = ""
        self.suspended = False
        self._told = start.completed
        self.taken: list[Received] = []
        self.waited_s = 0.0
        self.bytes_sent = 0
        self.bytes_received = 0
        self._replayed: Iterator[Received] | None = None
        self._what = ""
        self._all = start.collectives
        self._clock = Clock()
        self._started: deque[Background] = deque()
        self._background = BackgroundQueue()

    @property
    def rank(self) -> int:
        return self.spec.rank

    @property
    def world_size(self) -> int:
        return self.spec.world_size

    def counts(self) -> Counts:
        """How far this rank has come."""
        return Counts(self.completed, self._all, tuple(self.sent), tuple(self.received))

    def named(self, peer: int) -> str:
        """A peer as an error names it."""
        if peer >= len(self.spec.members):
            return f"rank {peer}"
        member = self.spec.members[peer]
        return f"rank {peer} (session {member.session} on {member.worker})"

    def error(self, peer: int, text: str) -> CollectiveError:
        """The error to raise because of a peer."""
        worker = self.spec.members[peer].worker if peer < len(self.spec.members) else ""
        return CollectiveError(text, group=self.spec.name, rank=peer, worker=worker)

    # Replay

    def replay(self, exchanged: Exchanged | None) -> None:
        """Let the collectives of the next frame take what it received when it first ran, and send to nobody."""
        self._replayed = iter(exchanged.received if exchanged is not None else ())

    def replayed(self, exchanged: Exchanged | None) -> None:
        """The replay of a frame is over."""
        self._replayed, self._told = None, self.completed
        if exchanged is not None:
            for peer, first in enumerate(exchanged.needed):
                self.forget(peer, first - 1)

    def exchanged(self) -> Exchanged | None:
        """What happened since the last call; ``None`` for nothing."""
        if self.completed == self._told:
            return None
        self._told, taken, self.taken = self.completed, tuple(self.taken), []
        with self.lock:
            needed = [box[0].number if box else self.sent[peer] + 1 for peer, box in enumerate(self.outbox)]
        return Exchanged(taken, tuple(needed))

    def forget(self, peer: int, number: int) -> None:
        """The peer needs no message up to this one any more."""
        with self.lock:
            box = self.outbox[peer]
            while box and box[0].number <= number:
                box.popleft()

    @property
    def needed(self) -> bool:
        """Whether a peer may still need something that only the memory of this rank has."""
        with self.lock:
            return not self.failed and any(self.outbox)

    # One collective

    @contextmanager
    def collective(self, what: str, clock: Clock) -> Iterator[None]:
        """Run one collective of all ranks. If it fails, the group has failed for all.

        Args:
            what: the op with its arguments, the same for all ranks.
            clock: of the frame; time spent waiting does not count.
        """
        self._all += 1
        with self.exchange(f"{what} as collective {self._all}", clock):
            yield

    @contextmanager
    def exchange(self, what: str, clock: Clock) -> Iterator[None]:
        """As :meth:`collective`, for two ranks."""
        if self.failed:
            raise GroupNotOpen(
                f"group {self.spec.name!r} has ended, open it again: {self.failed}", group=self.spec.name
            )
        self._what, self._clock = what, clock
        begun = len(self.taken)
        try:
            if self._started and self._started[0].what != what:
                raise self.error(self.rank, f"{what} comes while {self._started[0].what} is due")
            if self._replayed is None and self.communicator is None and self.world_size > 1:
                self._wait_for_connections()
            yield
        except Suspended:
            raise
        except BaseException as error:
            del self.taken[begun:]
            self.fail(f"rank {self.rank} ended in {what}: {error}")
            raise
        self.completed += 1
        if not self.keeps and self.communicator is not None:
            self.communicator.committed(self.received)

    def fail(self, reason: str) -> None:
        """No further collective of this group can run, here or on another rank."""
        if not self.failed:
            self.failed = reason
            while self._started:
                self._started.popleft().unwanted = True
            self._devices.abort()
            if self.communicator is not None:
                self.communicator.fail(reason)

    # Tensors on GPUs

    def meet(self, lane: Lane, backend: CupyBackend | None, counts: Sequence[int] = ()) -> Meeting | None:
        """Begin a collective where ranks tell each other where its tensors lie; see :meth:`.DevicePeers.meet`.

        Args:
            lane: of this group.
        """
        if not self.meets or self.world_size == 1:
            return None
        return self._devices.meet(lane, backend, counts)

    def unlink(self) -> None:
        """Let go of the connection of the ranks' GPUs; the next collective makes another one."""
        self._devices.close()

    @property
    def linked(self) -> bool:
        """Whether the GPUs of all ranks are connected by NCCL."""
        return self._devices.linked

    # Collectives that run beside the session's thread

    @property
    def starts(self) -> bool:
        """Whether a collective can be started before its record: not in a replay, nor without connections."""
        return not self.failed and self._replayed is None and self.communicator is not None and self.world_size > 1

    def start(self, what: str, values: Array, work: Callable[[Lane], None]) -> None:
        """Start the next collective of all ranks that has not been started. Its record asks for :meth:`started`.

        Args:
            what: as for :meth:`collective`.
            values: a buffer of its own, which ``work`` changes.
        """
        numbered = f"{what} as collective {self._all + len(self._started) + 1}"
        found = Background(self, numbered, values, work)
        self._started.append(found)
        self._background.add(found)

    def started(self) -> Array | None:
        """The values of the collective that runs, if it was started before; waits for them.

        Raises:
            CollectiveError: what it failed with.
            Cancelled: when the frame was cancelled, and can be undone.
        """
        if not self._started:
            return None
        found = self._started[0]
        if not found.done.is_set():
            self._poll(None, lambda: found.done.wait(POLL_S) or None)
        if found.error_found is not None:
            raise found.error_found
        self.taken += found.taken
        self._started.popleft()
        return found.values

    def end_started(self, reason: str) -> None:
        """The frame is over: what was started and has no record any more fails."""
        if self._started:
            self.fail(f"rank {self.rank} ended in {self._started[0].what}: {reason}")

    def _wait_for_connections(self) -> None:
        end = time.monotonic() + min(self.spec.timeout_s, CONNECTIONS_S)
        while self.communicator is None:
            if self.suspended:
                raise Suspended
            if time.monotonic() > end or self._clock.cancelled:
                raise GroupNotOpen(
                    f"group {self.spec.name!r} lost its connections when the server restarted; open it again",
                    group=self.spec.name,
                )
            time.sleep(POLL_S)

    # Messages

    def send(self, peer: int, data: bytes | memoryview, awaited: bool = False) -> None:
        """Send a message to a peer. ``awaited``: :meth:`delivered` is called next."""
        self.put(self._what, peer, data, awaited)

    def put(self, what: str, peer: int, data: bytes | memoryview, awaited: bool = False) -> None:
        """Send a message that is part of this collective."""
        self.sent[peer] += 1
        with self.lock:
            self.outbox[peer].append(Sent(self.sent[peer], what, data, awaited))
        if self._replayed is None and self.communicator is not None:
            self.bytes_sent += len(data)
            self.communicator.post(peer)

    def receive(self, peer: int) -> bytes | memoryview:
        """The next message of a peer.

        Raises:
            CollectiveError: when it does not come in time, or is of another collective. It names the peer.
            Cancelled: when the frame was cancelled, and can be undone.
        """
        if self._replayed is not None:
            origin, data = next(self._replayed, (-1, b""))
            if origin != peer:
                raise self.error(peer, f"the journal has a message of rank {origin} where one of rank {peer} is due")
            self.received[peer] += 1
        else:
            data = self.checked(peer, self._what, *self._wait_for(peer))
            if self.keeps:
                self.taken.append((peer, data))
        return data

    def checked(self, peer: int, what: str, theirs: str, data: bytes | memoryview) -> bytes | memoryview:
        """Count a message that has come, which is to be of this collective.

        Raises:
            CollectiveError: when it is of another one.
        """
        if theirs != what:
            raise self.error(
                peer, f"group {self.spec.name!r}: {self.named(peer)} runs {theirs}, but rank {self.rank} {what}"
            )
        self.bytes_received += len(data)
        self.received[peer] += 1
        return data

    def late(self, peer: int, what: str) -> CollectiveError:
        """The error of a peer that has not come in time."""
        return self.error(
            peer,
            f"group {self.spec.name!r}: {self.named(peer)} did not come to {what} within {self.spec.timeout_s:g} s",
        )

    def overdue(self, what: str) -> CollectiveError:
        """The error of a collective in which all take part and that does not end."""
        text = f"group {self.spec.name!r}: {what} did not end within {self.spec.timeout_s:g} s"
        return self.error(self.rank, text)

    def arrived(self, peer: int) -> bytes | memoryview | None:
        """The next message of a peer, if it is there already. Not in a replay."""
        assert self.communicator is not None
        found = self.communicator.take(peer, 0)
        return None if found is None else self.checked(peer, self._what, *found)

    def wait(self, ask: Callable[[float], T | None]) -> T:
        """As :meth:`.Lane.wait`. Not in a replay."""
        communicator, began = self.communicator, time.monotonic()
        assert communicator is not None

        def watched() -> T | None:
            found = ask(POLL_S)
            if found is None:
                communicator.watch()
                if time.monotonic() - began > self.spec.timeout_s:
                    raise self.overdue(self._what)
            return found

        found = ask(0)
        return found if found is not None else self._poll(None, watched)

    def delivered(self, peer: int) -> None:
        """Wait until a peer's host has what was sent to it.

        Raises:
            CollectiveError: when that takes too long.
        """
        if self._replayed is not None:
            return
        communicator, number = self.communicator, self.sent[peer]
        assert communicator is not None
        self._poll(peer, lambda: communicator.sent_to(peer, number, POLL_S) or None)

    def _wait_for(self, peer: int) -> tuple[str, bytes | memoryview]:
        communicator = self.communicator
        assert communicator is not None
        found = communicator.take(peer, 0)
        if found is None:
            found = self._poll(peer, lambda: communicator.take(peer, POLL_S))
        return found

    def _poll(self, peer: int | None, ask: Callable[[], T | None]) -> T:
        """Ask again and again, for as long as the peer may take; without one, as long as it takes."""
        communicator = self.communicator
        assert communicator is not None
        began = time.monotonic()
        paused = communicator.paused()
        try:
            while True:
                found = ask()
                if found is not None:
                    return found
                if self.suspended:
                    raise Suspended
                if self._clock.cancelled:
                    if not self._clock.undo or self._clock.undo[-1] is not None:
                        raise Cancelled(f"{self._what}: the frame was cancelled and undone")
                    raise self.error(self.rank, f"{self._what}: the frame was cancelled while it waited")
                if peer is not None and time.monotonic() - began > self.spec.timeout_s:
                    raise self.late(peer, self._what)
        finally:
            spent = time.monotonic() - began
            self.waited_s += spent
            self._clock.waited(spent)
            if paused:
                communicator.resumed()
