"""Keeps a session across hosts: loads it at first use, unloads it when idle, and moves it to a new worker after a
crash.

The rest of the server uses it as the session's host. It stores frames and chunks until they are answered. After a crash
of their worker, it resubmits them in order, one at a time. The session answers a numbered frame that was already
applied from the kept replies. A frame that was running in two crashes is refused, so that its client can continue. A
session without a folder cannot be recovered and ends with its worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from gradwire_protocol.errors import (
    Cancelled,
    GradwireError,
    InternalError,
    SessionGone,
    TimeExceeded,
    Unavailable,
    WorkerDied,
)
from gradwire_protocol.frames import Chunk, Frame, Reply

from ..errors.error_mapping import to_problem
from ..hosting.hosts import Host
from ..hosting.jobs import MOVING, Answer, Buffers
from ..hosting.runner import How
from ..settings.session_spec import SessionSpec
from ..settings.settings import variable
from ..workers.pool import Death

T = TypeVar("T")
MakeHost = Callable[[Callable[[Any, Death], None]], Host]

MAX_DEATHS: Final = 2
"""A frame is refused after this many worker deaths during its run."""

QUERY_TRIES: Final = 3
RECOVERY_TRIES: Final = 5
"""How often a query or a recovery is tried. They change nothing, so more tries are safe."""

CLOSE_PATIENCE_S: Final = 10.0

log = structlog.get_logger("gradwire.keeper")


class _PendingCall:
    """An unanswered frame or chunk.

    Attributes:
        submit_to: submits it to a host with a callback for the outcome.
        answer: the caller's callback: ``(reply, buffers)`` for a frame, ``(failure, [])`` for a chunk.
        submitted: a host has it.
        deaths: how many workers died while they had it.
        error: the reason to refuse it, unless it was applied.
        cancelled: the next host must not run it.
    """

    __slots__ = ("answer", "cancelled", "deaths", "frame", "submit_to", "submitted", "error")

    def __init__(self, frame: Frame | None, submit_to: Callable[[Host, Answer, bool], None], answer: Any) -> None:
        self.cancelled = False
        self.frame = frame
        self.submit_to = submit_to
        self.answer = answer
        self.submitted = False
        self.deaths = 0
        self.error: GradwireError | None = None

    def refuse(self, error: GradwireError) -> None:
        """Answer with an error."""
        if self.frame is None:
            self.answer(error, [])
        else:
            self.answer(Reply(seq=self.frame.seq, refused=to_problem(error)), [])


class SessionSupervisor:
    """A session's host across loads, unloads and crashes.

    Args:
        spec: the session's parameters.
        folder: the session's folder on disk, or ``None``.
        make: creates a host; its argument is a callback for the host's death.
        alone: a lock to hold while running calls that may have crashed a worker.
        admit: raises if no further session may be loaded now.
        troubled: called with the error when the session ends (SessionGone) or is unavailable.
    """

    def __init__(
        self,
        spec: SessionSpec,
        folder: Path | None,
        make: MakeHost,
        alone: Callable[[], asyncio.Lock],
        admit: Callable[[], None],
        on_unavailable: Callable[[GradwireError], None],
    ) -> None:
        self.spec = spec
        self.folder = folder
        self._make = make
        self._alone = alone
        self._admit = admit
        self._on_unavailable = on_unavailable
        self.recovered: Callable[[], Any] = lambda: None
        """Called after a recovery."""
        self._host: Host | None = None
        self._died_early: tuple[Any, Death] | None = None
        """The last host that died during its start, with the death."""
        self._closing: Host | None = None
        """The host of an ended session that may still compute."""
        self._catching_up = False
        self._entries: dict[int, _PendingCall] = {}
        self._last = 0
        self._pending = 0
        self._queries = 0
        self._waking: asyncio.Task[None] | None = None
        self._parking: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._answered = asyncio.Event()
        self._grouped = False
        """It has opened a group: its frames may wait for those of other sessions."""
        self._draining = False
        self._end: GradwireError | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    # State

    @property
    def pending(self) -> int:
        return self._pending

    @property
    def awake(self) -> bool:
        """Whether the session is loaded or being loaded."""
        return self._host is not None or self._waking is not None

    @property
    def waking(self) -> bool:
        """Whether the session is being loaded: its snapshot is read and its journal replayed."""
        return self._host is None and self._waking is not None

    @property
    def busy(self) -> bool:
        """Whether calls are pending."""
        return bool(self._entries or self._queries or self._waking is not None)

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        """Create the session.

        Raises:
            WorkerDied: when its worker died meanwhile.
        """
        try:
            self._host = await self._opened(how, image)
        except Death as death:
            raise WorkerDied(f"the worker process died while it opened the session: {death.text}") from None

    async def _opened(self, how: How, image: bytes | memoryview = b"") -> Host:
        host = self._make(self._died)
        await host.open(self.spec, self.folder, how, image)
        if self._died_early is not None and self._died_early[0] is host:
            raise self._died_early[1]
        return host

    def fail_permanently(self, error: GradwireError) -> None:
        """Fail all calls with this error, because the session cannot be recovered."""
        self._end = error

    # Frames and chunks

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer, cancelled: bool = False) -> None:
        if self._draining:
            raise Unavailable("the server is stopping and accepts no more frames")
        entry = _PendingCall(frame, lambda host, done, never: host.submit(frame, buffers, human, done, never), answer)
        entry.cancelled = cancelled
        self._add(entry)

    async def cancel(self, client: int | None, first: int, last: int) -> int:
        found = 0
        for entry in self._entries.values():
            frame = entry.frame
            if frame is not None and client in (None, frame.client) and first <= frame.seq <= last:
                entry.cancelled = True
                found += not entry.submitted
        if (host := self._host) is not None:
            with contextlib.suppress(Death, SessionGone):  # a dead worker runs nothing
                found += await host.cancel(client, first, last)
        return found

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        def submit_to(host: Host, done: Any, _: bool) -> None:
            host.add_chunk(client, chunk, data, lambda failure: done(failure, []))

        self._add(_PendingCall(None, submit_to, lambda failure, _: answer(failure)))

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        future: asyncio.Future[tuple[Reply, Buffers]] = asyncio.get_running_loop().create_future()

        def answer(reply: Reply, out: Buffers) -> None:
            if not future.done():
                future.set_result((reply, out))

        self.submit(frame, buffers, human, answer)
        return await future

    def _add(self, entry: _PendingCall) -> None:
        if self._end is not None:
            raise self._end
        self._last = number = self._last + 1
        self._entries[number] = entry
        if entry.frame is not None:
            self._pending += 1
            self._idle.clear()
        if self._host is not None and not self._catching_up:
            self._submit_to(number, entry, self._host)
        else:
            self._wake()

    def _submit_to(self, number: int, entry: _PendingCall, host: Host) -> None:
        # The closure must not reference the entry: the cycle would keep a frame's buffers alive.
        def done(result: Any, out: Buffers) -> None:
            found = self._remove(number)
            if found is not None:
                found.answer(result, out)

        entry.submitted = True
        try:
            entry.submit_to(host, done, entry.cancelled)
        except Death:
            pass  # _died() handles all entries
        except GradwireError as error:
            if (found := self._remove(number)) is not None:
                found.refuse(error)

    def _remove(self, number: int) -> _PendingCall | None:
        """Remove an entry; ``None`` if it was answered before."""
        entry = self._entries.pop(number, None)
        self._answered.set()
        if entry is not None and entry.frame is not None:
            self._pending -= 1
            if not self._pending:
                self._idle.set()
        return entry

    # Queries

    async def _query(self, query: Callable[[Host], Awaitable[T]]) -> T:
        self._queries += 1
        last = "it died before the query"
        try:
            for _ in range(QUERY_TRIES):
                if self._end is not None:
                    raise self._end
                if self._host is None:
                    await self._wait_until_awake()
                host = self._host
                if host is None:
                    continue  # it died again meanwhile
                try:
                    return await query(host)
                except Death as death:
                    last = death.text
            if self._end is not None:
                raise self._end
            raise WorkerDied(f"the session's worker process died {QUERY_TRIES} times during the query: {last}")
        finally:
            self._queries -= 1

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        if self._draining:
            raise Unavailable("the server is stopping and accepts no more clients")
        return await self._query(lambda host: host.join(client, instance, epoch))

    async def expected(self, client: int) -> int:
        return await self._query(lambda host: host.expected(client))

    async def describe(self) -> dict[str, Any]:
        return await self._query(lambda host: host.describe())

    async def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None
    ) -> list[dict[str, Any]]:
        return await self._query(lambda host: host.tensors(after, most, among))

    async def names(
        self, after: str = "", most: int | None = None, among: list[str] | None = None
    ) -> list[dict[str, Any]]:
        return await self._query(lambda host: host.names(after, most, among))

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        return await self._query(lambda host: host.memory(reset_peak))

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        return await self._query(lambda host: host.graph(ids, most))

    async def profile(self, seconds: float) -> dict[str, Any]:
        return await self._query(lambda host: host.profile(seconds))

    async def export(self) -> bytes | memoryview:
        return await self._query(lambda host: host.export())

    async def image(self) -> bytes | memoryview:
        return await self._query(lambda host: host.image())

    # Groups

    async def prepare_group(self, name: str) -> dict[str, Any]:
        return await self._query(lambda host: host.prepare_group(name))

    async def open_group(self, opening: dict[str, Any]) -> None:
        self._grouped = True
        await self._query(lambda host: host.open_group(opening))

    async def attach_group(self, name: str, secret: str, addresses: Sequence[tuple[str, int]]) -> bool:
        self._grouped = True
        return await self._query(lambda host: host.attach_group(name, secret, addresses))

    async def group_moved(self, name: str, rank: int, address: tuple[str, int]) -> None:
        if (host := self._host) is not None:  # else it learns of it when it is recovered
            with contextlib.suppress(Death, SessionGone):
                await host.group_moved(name, rank, address)

    async def group_lost(self, name: str, rank: int, reason: str) -> None:
        if (host := self._host) is not None:
            with contextlib.suppress(Death, SessionGone):
                await host.group_lost(name, rank, reason)

    async def close_group(self, name: str) -> None:
        await self._query(lambda host: host.close_group(name))

    async def groups(self) -> list[dict[str, Any]]:
        return await self._query(lambda host: host.groups())

    async def needed(self) -> bool:
        return await self._query(lambda host: host.needed())

    # Recovery

    async def _wait_until_awake(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._wake()
        await future

    def _wake(self) -> None:
        if self._waking is None:
            self._waking = asyncio.create_task(self._restart())

    async def _restart(self) -> None:
        """Recover the session and resubmit the unanswered calls."""
        try:
            if self._parking is not None:
                await self._parking
            await self._begin_and_catch_up()
        except GradwireError as error:
            self._fail(error)
        except Exception as error:
            log.error("recovering a session failed", session=self.spec.id, exc_info=error)
            self._fail(InternalError("the session could not be recovered; the server's log has details"))
        finally:
            self._catching_up = False
            self._waking = None

    async def _begin_and_catch_up(self) -> None:
        deaths = 0
        while True:
            # Ranks wait for each other, so they must not run alone.
            suspicious = not self._grouped and (deaths or any(entry.deaths for entry in self._entries.values()))
            async with self._alone() if suspicious else contextlib.nullcontext():
                self._catching_up = True
                if self._host is None:
                    try:
                        await self._begin()
                        deaths = 0
                    except Death as death:
                        deaths += 1
                        if deaths == RECOVERY_TRIES:
                            raise WorkerDied(
                                f"{deaths} worker processes died during the recovery of {self.spec.id}: {death.text}"
                            ) from None
                        continue
                if not await self._catch_up():
                    continue
            host = self._host
            if self._end is not None:
                return
            if host is None:
                continue
            self._catching_up = False
            for number, entry in list(self._entries.items()):
                if not entry.submitted:
                    self._submit_to(number, entry, host)
            return

    async def _begin(self) -> None:
        self._admit()
        if self._end is not None:
            raise self._end
        self._host = await self._opened("recover")
        self.recovered()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _catch_up(self) -> bool:
        """Resubmit calls that may have crashed a worker, one at a time. Returns False if the host died again."""
        for number, entry in list(self._entries.items()):
            if (not entry.deaths and entry.error is None) or self._end is not None:
                break
            host = self._host
            if host is None:
                return False
            if entry.error is not None and not await self._was_applied(entry, host):
                if self._host is None:
                    return False
                if (found := self._remove(number)) is not None:
                    found.refuse(entry.error)
                continue
            self._submit_to(number, entry, host)
            while number in self._entries and self._host is host and self._end is None:
                self._answered.clear()
                await self._answered.wait()
        return self._host is not None

    async def _was_applied(self, entry: _PendingCall, host: Host) -> bool:
        """Whether the dead host applied a frame, so that the session keeps its reply."""
        frame = entry.frame
        if frame is None or not frame.seq:
            return False
        try:
            return await host.expected(frame.client) > frame.seq
        except (Death, GradwireError):
            return False

    def _fail(self, error: GradwireError) -> None:
        """Fail all pending calls, because the session is unavailable."""
        log.error("session not recovered", session=self.spec.id, code=error.code, reason=error.message)
        self._host = None
        self._on_unavailable(error)
        self._refuse_all(error)

    def _refuse_all(self, error: GradwireError) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # marks it as retrieved; the caller may be gone
        for number in list(self._entries):
            if (entry := self._remove(number)) is not None:
                entry.refuse(error)

    # Crashes

    def _died(self, host: Any, death: Death) -> None:
        """Handle the death of a worker and of this session's host."""
        if host is not self._host:
            self._died_early = host, death
            return
        self._host = None
        if self.folder is None:
            self._end = SessionGone(f"session {self.spec.id} was lost: its worker process died ({death.text})")
            self._on_unavailable(self._end)
            self._refuse_all(self._end)
            return
        for number, entry in list(self._entries.items()):
            if entry.submitted:
                entry.submitted = False
                self._assign_death(number, entry, death)
        self._answered.set()
        if self._entries or self._waiting:
            self._wake()

    def _assign_death(self, number: int, entry: _PendingCall, death: Death) -> None:
        frame = entry.frame
        if frame is not None and frame is death.overdue and death.cancelled:
            if not frame.seq:
                entry.error = Cancelled("the frame was cancelled; its worker process did not stop and was replaced")
        elif frame is not None and frame is death.overdue:
            most = self.spec.limits.get("max_frame_seconds", 0)
            entry.error = TimeExceeded(
                f"the frame ran far longer than {most} s ({variable('max_frame_seconds')}); its worker process could "
                "not be interrupted and was replaced",
                setting=variable("max_frame_seconds"), limit=most,
            )  # fmt: skip
        elif death.overdue is None and not death.cancelled:
            entry.deaths += 1
        if frame is not None and not frame.seq:
            self._remove(number)
            entry.refuse(entry.error or WorkerDied(
                f"the session's worker process died ({death.text}); the frame has no number (seq), so it is unknown "
                "whether it was applied"
            ))  # fmt: skip
        elif entry.deaths >= MAX_DEATHS and entry.error is None:
            entry.error = WorkerDied(
                f"{entry.deaths} worker processes died while they applied this frame: {death.text}"
            )

    # Unload and close

    async def park(self) -> bool:
        """Unload the session to disk until its next use. Returns whether that was possible.

        Its groups go on then. But a rank that has sent something which others may still need stays, since they would
        wait for its next use.
        """
        if self._grouped and not self.busy and self._host is not None and await self.needed():
            return False
        host = self._host
        if host is None or self.busy or self.folder is None or self._end is not None:
            return False
        self._host = None
        self._parking = asyncio.create_task(self._unload(host))
        await asyncio.shield(self._parking)
        return True

    async def _unload(self, host: Host) -> None:
        try:
            # The host owns the folder until it is closed.
            while not await host.close(keep=True):
                pass
        finally:
            self._parking = None

    def drain(self) -> None:
        self._draining = True

    def undrain(self) -> None:
        """Accept frames again."""
        self._draining = False

    @property
    def grouped(self) -> bool:
        """Whether its frames may wait for other sessions."""
        return self._grouped

    async def idle(self) -> None:
        await self._idle.wait()

    async def close(self, keep: bool = False) -> bool:
        if self._end is None:
            unloaded = Unavailable("the session is being unloaded; try again", reason=MOVING)
            self._end = unloaded if keep else SessionGone("the session was deleted")
        if (waking := self._waking) is not None:
            # Let a recovery finish, within a timeout, so that its host is closed in order.
            self._answered.set()
            await asyncio.wait((waking,), timeout=CLOSE_PATIENCE_S)
            waking.cancel()
        if self._parking is not None:
            await self._parking
        host, self._host = self._host or self._closing, None
        self._closing = host
        over = await host.close(keep) if host is not None else True
        self._refuse_all(self._end)
        return over
