"""The host that runs a session in a thread of this process, and short frames in the event loop."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from gradwire_engine.runtime import nccl
from gradwire_engine.runtime.backends import Backends, expect_any_float
from gradwire_protocol.errors import TooManyRequests, Unavailable
from gradwire_protocol.frames import Chunk, Frame, Reply

from ..durable.history import Source
from ..durable.recording import record
from ..durable.records import GroupNote
from ..durable.shared.home import Home
from ..errors.error_mapping import to_problem
from ..groups import listener
from ..settings.session_spec import JournalPolicy, SessionSpec
from .busy_poll import BusyPoll
from .compute_semaphore import SHARED, ComputeSemaphore
from .duration_predictor import BURST_S, DurationPredictor
from .frame_profile import FrameProfile
from .hosts import Counting
from .jobs import Answer, Buffers, FrameJob, Job, settle
from .runner import How, Runner
from .session_thread import SessionThread
from .threads import SHARED as THREADS
from .time_travel import search

T = TypeVar("T")

CLOSE_PATIENCE_S: Final = 2.0
QUERY_PATIENCE_S: Final = 0.25
"""How long a query waits for a running job before it is answered with older values."""
MAX_QUERIES: Final = 16
"""The maximum number of different queries that wait at a time."""

log = structlog.get_logger("gradwire.host")


class InlineHost:
    """Runs the session in a thread of this process: for embedded servers, and for sessions that trust each other.

    A long op blocks its own session, but not the event loop, and other sessions only for the semaphore's patience. A
    frame predicted to be short (:mod:`.duration_predictor`) runs in the event loop's thread if the session's thread is
    idle and no other session computes. Only one of the two threads owns the session at a time
    (:attr:`SessionThread.shared`).

    Args:
        spin_s: how long the event loop polls for the next frame.
        home: the session's place in shared storage.
    """

    def __init__(
        self,
        name: str,
        metrics: Counting,
        policy: JournalPolicy | None = None,
        semaphore: ComputeSemaphore = SHARED,
        spin_s: float = 0.0,
        home: Home | None = None,
    ) -> None:
        self.metrics = metrics
        self._semaphore = semaphore
        self._thread = SessionThread(name, policy, semaphore, home)
        self._loop = asyncio.get_running_loop()
        self._draining = False
        self._closed = False
        self._frames: dict[FrameJob, None] = {}
        """Queued and running frames, in order."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._queries: dict[Hashable, asyncio.Future[Any]] = {}
        self._predictor = DurationPredictor()
        self._searching = asyncio.Lock()
        self._busy_poll = BusyPoll(self._loop, spin_s, lambda: semaphore.running > 0)
        self._burst_s = 0.0
        self._bursting = False
        self._profile: FrameProfile | None = None
        self._last_memory: tuple[float, dict[str, Any]] = (time.monotonic(), {"saved_bytes": 0, "pooled_bytes": 0})
        """The time and the result of the last complete query of the session's memory."""

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        await self._thread.open(spec, folder, how, image)

    @property
    def pending(self) -> int:
        return len(self._frames)

    def _put(self, job: Job) -> None:
        if self._closed:
            raise self._thread.closed_error()
        self._thread.give(job)

    async def _call(self, run: Callable[[Runner], T], mutates: bool = False) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(Job(run, lambda result, failure: settle(future, result, failure), mutates))
        return await future

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer, cancelled: bool = False) -> None:
        if self._draining:
            raise Unavailable("the server is stopping and accepts no more frames")
        if self._closed:
            raise self._thread.closed_error()
        job = FrameJob(frame, buffers, human, answer, self.metrics.knows(frame.hash), self._answered, self._profile)
        if cancelled:
            job.clock.cancel()
        self._busy_poll.stop_waiting()
        self._frames[job] = None
        self._idle.clear()
        if not self._thread.shared or human or not self._try_in_loop(job):
            self._thread.give(job)

    def _answered(self, job: FrameJob, result: Any, failure: BaseException | None) -> None:
        del self._frames[job]
        if not self._frames:
            self._idle.set()
        if failure is None:
            reply, out, stats = result
            if self.metrics.counts_first:
                self.metrics.applied(job.frame.hash, job.whole, reply, stats)
            job.answer(reply, out)  # before the rest, because the client waits for it
            if self._thread.shared:
                self._predictor.record(job.key, job.input_size, job.nodes, job.cpu_s, stats.took, job.in_loop)
            if not self.metrics.counts_first:
                self.metrics.applied(job.frame.hash, job.whole, reply, stats)
        else:
            job.answer(Reply(seq=job.frame.seq, refused=to_problem(self._thread.to_gradwire_error(failure))), [])
        if not self._frames:
            self._busy_poll.start_waiting()

    async def cancel(self, client: int | None, first: int, last: int) -> int:
        found, expected = 0, dict[int, int]()
        runner = self._thread.runner
        for job in self._frames:
            client_id = job.frame.client
            if runner is not None and client_id in runner.session.clients:
                expected.setdefault(client_id, runner.session.clients[client_id].expected)
            number = job.frame.seq or expected.get(client_id, 0)
            expected[client_id] = number + 1
            if client in (None, client_id) and first <= number <= last:
                job.clock.cancel()
                found += 1
        return found

    # Frames in the event loop

    def _try_in_loop(self, job: FrameJob) -> bool:
        """Run the job in the event loop, if the session's thread is idle, the frame is predicted to be short, the
        loop's time limit is not used up, and no other session computes. Returns whether it ran.
        """
        runner = self._thread.runner
        if runner is None or self._burst_s > BURST_S or not self._thread.idle:
            return False
        job.measure(runner)
        if not self._predictor.is_short(job.key, job.input_size, job.nodes):
            return False
        turn = self._semaphore.enter_alone(self._thread.name)
        if turn is None:
            return False
        if not self._bursting:
            self._bursting = True
            self._loop.call_soon(self._burst_over)
        job.in_loop = True
        began = time.perf_counter()
        try:
            outcome = self._thread.run_in_loop(runner, job)
        finally:
            self._semaphore.leave(turn)
        self._burst_s += time.perf_counter() - began
        outcome.done(outcome.result, outcome.failure)
        return True

    def _burst_over(self) -> None:
        """The event loop has completed an iteration."""
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
            Job(lambda runner: runner.add_chunk(client, chunk, data), lambda _, failure: answer(failure), mutates=True)
        )

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        return await self._call(lambda runner: runner.join(client, instance, epoch), mutates=True)

    async def expected(self, client: int) -> int:
        return await self._call(lambda runner: runner.session.expected(client))

    async def _query(self, what: Hashable, run: Callable[[Runner], T]) -> T | None:
        """Query the session between two jobs; ``None`` if a running job takes too long or :data:`MAX_QUERIES` other
        queries wait. Concurrent identical queries share one result.

        There is no timeout for a query that runs already: counting a large graph may take long.
        """
        future = self._queries.get(what)
        if future is None or future.done():
            if len(self._queries) >= MAX_QUERIES:
                return None
            future = self._queries[what] = self._loop.create_future()

            def over(ended: asyncio.Future[Any]) -> None:
                if self._queries.get(what) is ended:
                    del self._queries[what]
                if not ended.cancelled():
                    ended.exception()  # marks it as retrieved; all callers may be gone

            future.add_done_callback(over)
            query = future
            self._put(Job(run, lambda result, failure: settle(query, result, failure), query=True))
        while True:
            done, _ = await asyncio.wait((future,), timeout=QUERY_PATIENCE_S)
            if done:
                found: T = future.result()
                return found
            if self._thread.busy:
                return None

    async def describe(self) -> dict[str, Any]:
        found = await self._query("describe", Runner.describe)
        if found is not None:
            self._last_memory = time.monotonic(), found["memory"]
            return found
        at, memory = self._last_memory
        seen = self._running().glance()
        age = round(time.monotonic() - at, 3)
        return seen | {"memory": memory | seen["memory"], "busy": True, "age_s": age}

    async def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None
    ) -> list[dict[str, Any]]:
        what = ("tensors", after, most, None if among is None else tuple(among))
        found = await self._query(what, lambda runner: runner.tensors(after, most, among))
        if found is not None:
            return found
        return await asyncio.to_thread(self._running().tensors, after, most, among, peek=True)

    async def names(
        self, after: str = "", most: int | None = None, among: list[str] | None = None
    ) -> list[dict[str, Any]]:
        what = ("names", after, most, None if among is None else tuple(among))
        found = await self._query(what, lambda runner: runner.names(after, most, among))
        if found is not None:
            return found
        return await asyncio.to_thread(self._running().names, after, most, among, peek=True)

    def _running(self) -> Runner:
        runner = self._thread.runner
        if runner is None:
            raise self._thread.closed_error()
        return runner

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        if not reset_peak:
            contents = await self.describe()
            memory: dict[str, Any] = contents["memory"]
            return memory | {name: contents[name] for name in ("busy", "age_s") if name in contents}

        def measure(runner: Runner) -> dict[str, Any]:
            found = runner.memory()
            runner.reset_peak()
            return found

        return await self._call(measure)

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        return await self._call(lambda runner: runner.graph(ids, most))

    async def profile(self, seconds: float) -> dict[str, Any]:
        if self._profile is not None:
            raise TooManyRequests("a profile of this session is being recorded; try again after it", limit=1)
        self._profile = profile = FrameProfile()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._profile = None
        # As a job, because the frame that runs now may belong to the profile.
        return await self._call(lambda _: profile.describe())

    async def export(self) -> bytes:
        return await self._call(Runner.export)

    async def image(self) -> bytes:
        def give(runner: Runner) -> bytes:
            image = runner.image()
            runner.groups.detach()
            return image

        return await self._call(give)

    async def travel(self, what: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self._call(lambda runner: runner.travel(what, arguments), mutates=True)

    async def search(self, wanted: str, name: str) -> dict[str, Any] | None:
        place = await self.travel("place", {})
        async with self._searching:
            ended = threading.Event()
            try:
                return await asyncio.to_thread(self._search, Path(place["folder"]), wanted, name, ended)
            finally:
                ended.set()  # the caller may be gone

    async def recorded(self) -> bytes:
        place = await self.travel("place", {})
        async with self._searching:
            return await asyncio.to_thread(self._record, Path(place["folder"]))

    def _record(self, folder: Path) -> bytes:
        expect_any_float()
        with THREADS.fixed(True), self._semaphore.turn():
            return record(Source.of(folder), Backends())

    def _search(self, folder: Path, wanted: str, name: str, ended: threading.Event) -> dict[str, Any] | None:
        expect_any_float()
        with THREADS.fixed(True), self._semaphore.turn():
            found = search(Source.of(folder), wanted, name, Backends(), ended.is_set)
        return None if found is None else found.described()

    # Groups

    async def prepare_group(self, name: str) -> dict[str, Any]:
        runner = self._running()
        # What goes from GPU to GPU is not kept, so a session with a journal could not be recovered.
        nccl_version = 0 if runner.journaled else await asyncio.to_thread(nccl.version)
        return {
            "address": listener.SHARED.address, "worker": f"{socket.gethostname()}:{os.getpid()}",
            "token": runner.groups.token(runner.session, name), "nccl": nccl_version,
        }  # fmt: skip

    async def open_group(self, opening: dict[str, Any]) -> None:
        opened = GroupNote(
            opening["name"], opening["rank"], opening["world_size"], opening["token"], opening["timeout_s"],
            [(session, worker) for session, worker in opening["members"]],
        )  # fmt: skip
        addresses = [(host, port) for host, port in opening["addresses"]]
        self._thread.shared = False  # a collective must not wait in the event loop
        await self._call(
            lambda runner: runner.open_group(
                opened, opening["secret"], addresses, opening["resumes"], opening.get("nccl", False)
            ),
            mutates=True,
        )

    async def attach_group(self, name: str, secret: str, addresses: Sequence[tuple[str, int]]) -> bool:
        # Not in the session's thread: it may wait in a collective already.
        runner = self._running()
        self._thread.shared = False
        return runner.groups.connect(runner.session, name, secret, [(host, port) for host, port in addresses])

    async def group_moved(self, name: str, rank: int, address: tuple[str, int]) -> None:
        self._running().groups.moved(name, rank, (address[0], address[1]))

    async def group_lost(self, name: str, rank: int, reason: str) -> None:
        self._running().groups.lost(name, rank, reason)

    async def close_group(self, name: str) -> None:
        await self._call(lambda runner: runner.close_group(name), mutates=True)

    async def groups(self) -> list[dict[str, Any]]:
        return self._running().groups.describe()

    async def needed(self) -> bool:
        runner = self._running()
        return runner.groups.needed(runner.session)

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
            log.info("session closes after its running op", session=self._thread.name)
            return False
        return True
