"""The host that runs a session in a thread of this process, or, where that is quicker, in the event loop itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from gradwire_protocol.errors import Unavailable
from gradwire_protocol.frames import Chunk, Frame, Reply

from .durable.spec import JournalPolicy, SessionSpec
from .foresight import BURST_S, Foresight
from .hosts import Counting
from .jobs import Answer, Buffers, FrameJob, Job, settle
from .refusals import to_problem
from .runner import How, Runner
from .session_thread import SessionThread
from .turnstile import SHARED, Turnstile
from .vigil import Vigil

T = TypeVar("T")

CLOSE_PATIENCE_S: Final = 2.0
LOOK_PATIENCE_S: Final = 0.25
"""How long a look at a session waits for what runs, before it is told what can be seen from outside."""
MOST_LOOKS: Final = 16
"""Different looks that may wait for the session at a time."""

log = structlog.get_logger("gradwire.host")


class InlineHost:
    """Runs the session in a thread of this process: embedded servers, and several sessions that trust each other.

    A giant op keeps its own session busy, and neither the event loop nor, for longer than the turnstile's patience,
    another session. A frame that will be short (:mod:`.foresight`) runs in the event loop's thread instead, while the
    session's own has nothing to do and no other session wants to compute: one of the two threads owns the session at
    a time (:attr:`SessionThread.shared`).

    Args:
        spin_s: how long the event loop waits awake for a frame that usually comes as soon.
    """

    def __init__(
        self,
        name: str,
        metrics: Counting,
        policy: JournalPolicy | None = None,
        turnstile: Turnstile = SHARED,
        spin_s: float = 0.0,
    ) -> None:
        self.metrics = metrics
        self._turnstile = turnstile
        self._thread = SessionThread(name, policy, turnstile)
        self._loop = asyncio.get_running_loop()
        self._draining = False
        self._closed = False
        self._frames: dict[FrameJob, None] = {}
        """What waits or runs, in order."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._looks: dict[Hashable, asyncio.Future[Any]] = {}
        self._foresight = Foresight()
        self._vigil = Vigil(self._loop, spin_s, lambda: turnstile.running > 0)
        self._burst_s = 0.0
        self._bursting = False
        self._seen: tuple[float, dict[str, Any]] = (time.monotonic(), {"saved_bytes": 0, "pooled_bytes": 0})
        """When the session was last looked at in full, and what was seen of its memory."""

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        await self._thread.open(spec, folder, how, image)

    @property
    def pending(self) -> int:
        return len(self._frames)

    def _put(self, job: Job | FrameJob) -> None:
        if self._closed:
            raise self._thread.gone()
        self._thread.give(job)

    async def _call(self, run: Callable[[Runner], T], lasting: bool = False) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(Job(run, lambda result, failure: settle(future, result, failure), lasting))
        return await future

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer, cancelled: bool = False) -> None:
        if self._draining:
            raise Unavailable("the server is stopping: it takes no more frames")
        if self._closed:
            raise self._thread.gone()
        job = FrameJob(frame, buffers, human, answer, self.metrics.knows(frame.hash), self._answered)
        if cancelled:
            job.clock.cancel()
        self._vigil.came()
        self._frames[job] = None
        self._idle.clear()
        if not self._thread.shared or human or not self._ran_here(job):
            self._put(job)

    def _answered(self, job: FrameJob, result: Any, failure: BaseException | None) -> None:
        del self._frames[job]
        if not self._frames:
            self._idle.set()
        if failure is None:
            reply, out, told = result
            job.answer(reply, out)  # first: whoever waits goes on meanwhile
            if self._thread.shared:
                self._foresight.ran(job.frame, job.reach, job.nodes, job.worked, told.took, job.here)
            self.metrics.applied(job.frame.hash, job.whole, reply, told)
        else:
            job.answer(Reply(seq=job.frame.seq, refused=to_problem(self._thread.explained(failure))), [])
        if not self._frames:
            self._vigil.answered()

    async def cancel(self, client: int | None, first: int, last: int) -> int:
        found, due = 0, dict[int, int]()
        runner = self._thread.runner
        for job in self._frames:
            whose = job.frame.client
            if runner is not None and whose in runner.session.clients:
                due.setdefault(whose, runner.session.clients[whose].expected)
            number = job.frame.seq or due.get(whose, 0)
            due[whose] = number + 1
            if client in (None, whose) and first <= number <= last:
                job.clock.cancel()
                found += 1
        return found

    # The event loop's own runs

    def _ran_here(self, job: FrameJob) -> bool:
        """Do the job in this thread, if the session's own has nothing to do, it will not take long, the event loop has
        had time for others lately, and nobody else computes.
        """
        runner = self._thread.runner
        if runner is None or self._burst_s > BURST_S or not self._thread.idle:
            return False
        job.look(runner)
        if not self._foresight.short(job.frame, job.reach, job.nodes):
            return False
        turn = self._turnstile.enter_alone(self._thread.name)
        if turn is None:
            return False
        if not self._bursting:
            self._bursting = True
            self._loop.call_soon(self._burst_over)
        job.here = True
        began = time.perf_counter()
        try:
            outcome = self._thread.do_here(runner, job)
        finally:
            self._turnstile.leave(turn)
        self._burst_s += time.perf_counter() - began
        outcome.done(outcome.result, outcome.failure)
        return True

    def _burst_over(self) -> None:
        """The event loop has looked after the others."""
        self._bursting, self._burst_s = False, 0.0

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        future: asyncio.Future[tuple[Reply, Buffers]] = self._loop.create_future()

        def answer(reply: Reply, out: Buffers) -> None:
            if not future.done():
                future.set_result((reply, out))

        self.submit(frame, buffers, human, answer)
        return await future

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        self._put(
            Job(lambda runner: runner.add_chunk(client, chunk, data), lambda _, failure: answer(failure), lasting=True)
        )

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        return await self._call(lambda runner: runner.join(client, instance, epoch), lasting=True)

    async def expected(self, client: int) -> int:
        return await self._call(lambda runner: runner.session.expected(client))

    async def _look(self, what: Hashable, run: Callable[[Runner], T]) -> T | None:
        """Look at the session between two ops; ``None`` when those keep it too long. Many who look at the same thing
        look once; beyond :data:`MOST_LOOKS` of different things, it is ``None`` at once.

        A look that has begun is waited for: a count of a large graph takes its time, and what was seen before it is
        not the answer.
        """
        future = self._looks.get(what)
        if future is None or future.done():
            if len(self._looks) >= MOST_LOOKS:
                return None
            future = self._looks[what] = self._loop.create_future()

            def over(ended: asyncio.Future[Any]) -> None:
                if self._looks.get(what) is ended:
                    del self._looks[what]
                if not ended.cancelled():
                    ended.exception()  # nobody may be left to ask how it ended

            future.add_done_callback(over)
            looked = future
            self._put(Job(run, lambda result, failure: settle(looked, result, failure), looks=True))
        while True:
            done, _ = await asyncio.wait((future,), timeout=LOOK_PATIENCE_S)
            if done:
                found: T = future.result()
                return found
            if self._thread.occupied:
                return None

    async def describe(self) -> dict[str, Any]:
        found = await self._look("describe", Runner.describe)
        if found is not None:
            self._seen = time.monotonic(), found["memory"]
            return found
        at, memory = self._seen
        seen = self._running().glance()
        age = round(time.monotonic() - at, 3)
        return seen | {"memory": memory | seen["memory"], "busy": True, "age_s": age}

    async def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None
    ) -> list[dict[str, Any]]:
        what = ("tensors", after, most, None if among is None else tuple(among))
        found = await self._look(what, lambda runner: runner.tensors(after, most, among))
        if found is not None:
            return found
        return await asyncio.to_thread(self._running().tensors, after, most, among, peek=True)

    def _running(self) -> Runner:
        runner = self._thread.runner
        if runner is None:
            raise self._thread.gone()
        return runner

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        if not reset_peak:
            contents = await self.describe()
            memory: dict[str, Any] = contents["memory"]
            return memory | {name: contents[name] for name in ("busy", "age_s") if name in contents}

        def look(runner: Runner) -> dict[str, Any]:
            found = runner.memory()
            runner.reset_peak()
            return found

        return await self._call(look)

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        return await self._call(lambda runner: runner.graph(ids, most))

    async def export(self) -> bytes:
        return await self._call(Runner.export)

    def drain(self) -> None:
        self._draining = True

    async def idle(self) -> None:
        await self._idle.wait()

    async def close(self, keep: bool = False) -> bool:
        if not self._closed:
            self._closed = True
            if not keep:
                for job in self._frames:
                    job.clock.cancel()
            self._thread.end(keep)
        try:
            await asyncio.wait_for(self._thread.finished.wait(), CLOSE_PATIENCE_S)
        except TimeoutError:
            log.info("a session ends when its running op does", session=self._thread.name)
            return False
        return True
