"""What keeps a session while hosts come and go: it wakes from its folder at first use, is put back when nobody uses
it, and is carried over to the next worker when one dies.

To the rest of the server a keeper is the session's host. It holds frames and chunks until they are answered. When the
worker that ran them dies, they are submitted again in order, one at a time: a numbered frame that was applied before
is answered from the kept replies, and one that was running when two workers died is refused, so that its client can go
on. Without a folder there is nothing to go on from, and the session ends with its worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
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

from .durable.spec import SessionSpec
from .hosts import Host
from .jobs import Answer, Buffers
from .refusals import to_problem
from .runner import How
from .settings import variable
from .workers.pool import Death

T = TypeVar("T")
MakeHost = Callable[[Callable[[Any, Death], None]], Host]

DEATHS: Final = 2
"""At how many deaths a frame may have been running; then it is refused."""

QUESTIONS: Final = 3
RECOVERIES: Final = 5
"""How often the same question, or recovery, is tried. These change nothing, and are not given up as soon."""

CLOSE_PATIENCE_S: Final = 10.0

log = structlog.get_logger("gradwire.keeper")


class _Entry:
    """A frame or a chunk that was not answered yet.

    Attributes:
        give: hands it to a host, which calls the function that it is given with the outcome.
        answer: tells whoever waits: ``(reply, buffers)`` for a frame, ``(failure, [])`` for a chunk.
        given: a host has it.
        deaths: how many workers have died while they had it.
        verdict: why it is refused, unless it turns out to have been applied.
        cancelled: whichever host has it next shall not compute it.
    """

    __slots__ = ("answer", "cancelled", "deaths", "frame", "give", "given", "verdict")

    def __init__(self, frame: Frame | None, give: Callable[[Host, Answer, bool], None], answer: Any) -> None:
        self.cancelled = False
        self.frame = frame
        self.give = give
        self.answer = answer
        self.given = False
        self.deaths = 0
        self.verdict: GradwireError | None = None

    def refuse(self, error: GradwireError) -> None:
        """Answer with an error."""
        if self.frame is None:
            self.answer(error, [])
        else:
            self.answer(Reply(seq=self.frame.seq, refused=to_problem(error)), [])


class Keeper:
    """A session's host over all its lives.

    Args:
        spec: what the session is.
        folder: where it is kept on disk, or ``None``.
        make: makes the host of its next life, and is given whom to tell of its death.
        alone: held while doing what a worker may have died of before.
        admit: raises if there may be no further live session now.
        troubled: called with the error when the session cannot go on: at all (SessionGone), or for now.
    """

    def __init__(
        self,
        spec: SessionSpec,
        folder: Path | None,
        make: MakeHost,
        alone: Callable[[], asyncio.Lock],
        admit: Callable[[], None],
        troubled: Callable[[GradwireError], None],
    ) -> None:
        self.spec = spec
        self.folder = folder
        self._make = make
        self._alone = alone
        self._admit = admit
        self._troubled = troubled
        self.recovered: Callable[[], Any] = lambda: None
        """Called when it has come back from its folder."""
        self._host: Host | None = None
        self._stillborn: tuple[Any, Death] | None = None
        """The last host that died before it was this session's."""
        self._closing: Host | None = None
        """The host of a session that has ended, while that may compute on."""
        self._careful = False
        self._entries: dict[int, _Entry] = {}
        self._last = 0
        self._pending = 0
        self._asking = 0
        self._waking: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._answered = asyncio.Event()
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
        """Whether a host holds the session, or is about to."""
        return self._host is not None or self._waking is not None

    @property
    def busy(self) -> bool:
        """Whether anybody waits for it."""
        return bool(self._entries or self._asking or self._waking is not None)

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        """Begin the session.

        Raises:
            WorkerDied: when its worker died of that.
        """
        try:
            self._host = await self._opened(how, image)
        except Death as death:
            raise WorkerDied(f"the worker that was to hold the session died: {death.text}") from None

    async def _opened(self, how: How, image: bytes | memoryview = b"") -> Host:
        host = self._make(self._died)
        await host.open(self.spec, self.folder, how, image)
        if self._stillborn is not None and self._stillborn[0] is host:
            raise self._stillborn[1]
        return host

    def condemn(self, error: GradwireError) -> None:
        """Answer everything with this error: the session cannot be brought back."""
        self._end = error

    # Frames and chunks

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer, cancelled: bool = False) -> None:
        if self._draining:
            raise Unavailable("the server is stopping: it takes no more frames")
        if self._end is not None:
            raise self._end
        self._pending += 1  # first: the answer may come at once
        self._idle.clear()
        entry = _Entry(frame, lambda host, done, never: host.submit(frame, buffers, human, done, never), answer)
        entry.cancelled = cancelled
        self._add(entry)

    async def cancel(self, client: int | None, first: int, last: int) -> int:
        found = 0
        for entry in self._entries.values():
            frame = entry.frame
            if frame is not None and client in (None, frame.client) and first <= frame.seq <= last:
                entry.cancelled = True
                found += not entry.given
        if (host := self._host) is not None:
            with contextlib.suppress(Death, SessionGone):  # a worker that is gone computes nothing
                found += await host.cancel(client, first, last)
        return found

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        def give(host: Host, done: Any, _: bool) -> None:
            host.add_chunk(client, chunk, data, lambda failure: done(failure, []))

        self._add(_Entry(None, give, lambda failure, _: answer(failure)))

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        future: asyncio.Future[tuple[Reply, Buffers]] = asyncio.get_running_loop().create_future()

        def answer(reply: Reply, out: Buffers) -> None:
            if not future.done():
                future.set_result((reply, out))

        self.submit(frame, buffers, human, answer)
        return await future

    def _add(self, entry: _Entry) -> None:
        if self._end is not None:
            raise self._end
        self._last = number = self._last + 1
        self._entries[number] = entry
        if self._host is not None and not self._careful:
            self._give(number, entry, self._host)
        else:
            self._wake()

    def _give(self, number: int, entry: _Entry, host: Host) -> None:
        # The closure must not know the entry: that would be a cycle, and a frame's buffers would live on in it.
        def done(result: Any, out: Buffers) -> None:
            found = self._take(number)
            if found is not None:
                found.answer(result, out)

        entry.given = True
        try:
            entry.give(host, done, entry.cancelled)
        except Death:
            pass  # its death is told to all entries at once
        except GradwireError as error:
            if (found := self._take(number)) is not None:
                found.refuse(error)

    def _take(self, number: int) -> _Entry | None:
        """Strike an entry off the list; ``None`` when it was answered before."""
        entry = self._entries.pop(number, None)
        self._answered.set()
        if entry is not None and entry.frame is not None:
            self._pending -= 1
            if not self._pending:
                self._idle.set()
        return entry

    # Questions

    async def _ask(self, question: Callable[[Host], Awaitable[T]]) -> T:
        self._asking += 1
        last = "it died before it was asked"
        try:
            for _ in range(QUESTIONS):
                if self._end is not None:
                    raise self._end
                if self._host is None:
                    await self._awake()
                host = self._host
                if host is None:
                    continue  # it died again, before this task had its turn
                try:
                    return await question(host)
                except Death as death:
                    last = death.text
            if self._end is not None:
                raise self._end
            raise WorkerDied(f"the session's worker died {QUESTIONS} times before it could answer: {last}")
        finally:
            self._asking -= 1

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        return await self._ask(lambda host: host.join(client, instance, epoch))

    async def expected(self, client: int) -> int:
        return await self._ask(lambda host: host.expected(client))

    async def describe(self) -> dict[str, Any]:
        return await self._ask(lambda host: host.describe())

    async def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None
    ) -> list[dict[str, Any]]:
        return await self._ask(lambda host: host.tensors(after, most, among))

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        return await self._ask(lambda host: host.memory(reset_peak))

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        return await self._ask(lambda host: host.graph(ids, most))

    async def export(self) -> bytes | memoryview:
        return await self._ask(lambda host: host.export())

    # Waking

    async def _awake(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._wake()
        await future

    def _wake(self) -> None:
        if self._waking is None:
            self._waking = asyncio.create_task(self._live())

    async def _live(self) -> None:
        """Begin the next life: recover the session, and work off what the last one left unanswered."""
        try:
            if self._leaving is not None:
                await self._leaving
            await self._begin_and_catch_up()
        except GradwireError as error:
            self._fail(error)
        except Exception as error:
            log.error("waking a session failed", session=self.spec.id, exc_info=error)
            self._fail(InternalError("the session could not be recovered; the server's log has the details"))
        finally:
            self._careful = False
            self._waking = None

    async def _begin_and_catch_up(self) -> None:
        deaths = 0
        while True:
            suspicious = deaths or any(entry.deaths for entry in self._entries.values())
            async with self._alone() if suspicious else contextlib.nullcontext():
                self._careful = True
                if self._host is None:
                    try:
                        await self._begin()
                        deaths = 0
                    except Death as death:
                        deaths += 1
                        if deaths == RECOVERIES:
                            raise WorkerDied(
                                f"{deaths} workers died while they recovered session {self.spec.id}: {death.text}"
                            ) from None
                        continue
                if not await self._catch_up():
                    continue
            host = self._host
            if self._end is not None:
                return
            if host is None:
                continue
            self._careful = False
            for number, entry in list(self._entries.items()):
                if not entry.given:
                    self._give(number, entry, host)
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
        """Give the host what an earlier one may have died of, one at a time. Returns False when it died again."""
        for number, entry in list(self._entries.items()):
            if (not entry.deaths and entry.verdict is None) or self._end is not None:
                break
            host = self._host
            if host is None:
                return False
            if entry.verdict is not None and not await self._was_applied(entry, host):
                if self._host is None:
                    return False
                if (found := self._take(number)) is not None:
                    found.refuse(entry.verdict)
                continue
            self._give(number, entry, host)
            while number in self._entries and self._host is host and self._end is None:
                self._answered.clear()
                await self._answered.wait()
        return self._host is not None

    async def _was_applied(self, entry: _Entry, host: Host) -> bool:
        """Whether a frame was applied by the host that died: then its reply is kept."""
        frame = entry.frame
        if frame is None or not frame.seq:
            return False
        try:
            return await host.expected(frame.client) > frame.seq
        except (Death, GradwireError):
            return False

    def _fail(self, error: GradwireError) -> None:
        """Tell everybody that the session cannot go on for now."""
        log.error("a session could not be recovered", session=self.spec.id, code=error.code, reason=error.message)
        self._host = None
        self._troubled(error)
        self._refuse_all(error)

    def _refuse_all(self, error: GradwireError) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever waited may have left
        for number in list(self._entries):
            if (entry := self._take(number)) is not None:
                entry.refuse(error)

    # Dying

    def _died(self, host: Any, death: Death) -> None:
        """A worker is gone, and this session's host with it."""
        if host is not self._host:
            self._stillborn = host, death
            return
        self._host = None
        if self.folder is None:
            self._end = SessionGone(f"session {self.spec.id} was lost: its worker died ({death.text})")
            self._troubled(self._end)
            self._refuse_all(self._end)
            return
        for number, entry in list(self._entries.items()):
            if entry.given:
                entry.given = False
                self._blame(number, entry, death)
        self._answered.set()
        if self._entries or self._waiting:
            self._wake()

    def _blame(self, number: int, entry: _Entry, death: Death) -> None:
        frame = entry.frame
        if frame is not None and frame is death.overdue and death.cancelled:
            if not frame.seq:
                entry.verdict = Cancelled("the frame was cancelled: the process that ran it was replaced")
        elif frame is not None and frame is death.overdue:
            most = self.spec.limits.get("max_frame_seconds", 0)
            entry.verdict = TimeExceeded(
                f"the frame ran far longer than {most} s ({variable('max_frame_seconds')}) and could not be "
                "interrupted: the process that ran it was replaced",
                setting=variable("max_frame_seconds"), limit=most,
            )  # fmt: skip
        elif death.overdue is None and not death.cancelled:
            entry.deaths += 1
        if frame is not None and not frame.seq:
            self._take(number)
            entry.refuse(entry.verdict or WorkerDied(
                f"the process that ran the session died ({death.text}); the frame had no number, so whether it was "
                "applied is not known"
            ))  # fmt: skip
        elif entry.deaths >= DEATHS and entry.verdict is None:
            entry.verdict = WorkerDied(
                f"{entry.deaths} processes that ran the session died while they applied this frame: {death.text}"
            )

    # The end of a life, and of all

    async def park(self) -> bool:
        """Put the session away until somebody uses it. Returns whether that was possible."""
        host = self._host
        if host is None or self.busy or self.folder is None or self._end is not None:
            return False
        self._host = None
        self._leaving = asyncio.create_task(self._leave(host))
        await asyncio.shield(self._leaving)
        return True

    async def _leave(self, host: Host) -> None:
        try:
            # Its folder is its own until it has let go of it, however long that takes.
            while not await host.close(keep=True):
                pass
        finally:
            self._leaving = None

    def drain(self) -> None:
        self._draining = True

    async def idle(self) -> None:
        await self._idle.wait()

    async def close(self, keep: bool = False) -> bool:
        if self._end is None:
            text = "the session is put away: it can be resumed" if keep else "the session was deleted"
            self._end = Unavailable(text) if keep else SessionGone(text)
        if (waking := self._waking) is not None:
            # A recovery is let finish, if it does soon: what it opened is then closed in order.
            self._answered.set()
            await asyncio.wait((waking,), timeout=CLOSE_PATIENCE_S)
            waking.cancel()
        if self._leaving is not None:
            await self._leaving
        host, self._host = self._host or self._closing, None
        self._closing = host
        over = await host.close(keep) if host is not None else True
        self._refuse_all(self._end)
        return over
