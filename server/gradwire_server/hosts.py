"""Where a session runs. A host owns the engine's session and does one thing at a time, in the order of arrival."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import structlog

from gradwire_engine.backends import expect_any_float
from gradwire_engine.memory import Limits
from gradwire_engine.session import Session as EngineSession
from gradwire_protocol.errors import GradwireError, InternalError, SessionGone, Unavailable
from gradwire_protocol.frames import Chunk, Frame, Reply

from . import problems
from .metrics import Metrics
from .tuning import give_back_memory

T = TypeVar("T")
Buffers = list[memoryview]
Answer = Callable[[Reply, Buffers], None]
Open = Callable[[], EngineSession]

CLOSE_PATIENCE_S: Final = 2.0

log = structlog.get_logger("gradwire.host")


def warm_up() -> None:
    """Load everything that the first session would load."""
    EngineSession().close()


class Host(Protocol):
    """What the rest of the server knows of the place where a session runs.

    Calls take effect in the order in which they were made. All of them raise :class:`SessionGone` after ``close``.
    """

    @property
    def pending(self) -> int:
        """How many frames wait or run."""

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer) -> None:
        """Apply a frame; ``answer`` is called in the event loop, with a refusal rather than an exception.

        Raises:
            Unavailable: when the server is draining.
        """

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        """Take a piece of an upload; ``answer`` gets ``None``, or the error."""

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        """Apply a frame and wait for its reply."""

    async def join(self, client: int) -> tuple[int, int]:
        """Register a new client (0), or resume one: its number, and the number of its next frame.

        Raises:
            MalformedFrame: for a client that the session never had.
        """

    async def describe(self) -> dict[str, Any]:
        """Counts and sizes of what the session holds."""

    async def tensors(self) -> list[dict[str, Any]]:
        """One row per live tensor."""

    async def memory(self, reset_peak: bool = False) -> dict[str, int]:
        """What the session's tensors occupy; the peak is reset after it was looked at."""

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the autograd graph behind these tensors, or all.

        Raises:
            UnknownTensor: for an id that is not there.
            LimitExceeded: for a graph of more nodes than ``most``.
        """

    def drain(self) -> None:
        """Refuse further frames; those submitted before run to their end."""

    async def idle(self) -> None:
        """Wait until no frame waits or runs."""

    async def close(self) -> None:
        """Release everything. What waits is answered with SessionGone; what runs is not waited for long."""


class _Job:
    """One thing for the worker to do. ``done`` is called in the event loop with the result or the error."""

    __slots__ = ("done", "run")

    def __init__(self, run: Callable[[EngineSession], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.run = run
        self.done = done


def _settle(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    """Give a future its outcome, unless whoever waited has left."""
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)


class InlineHost:
    """Runs the session in a thread of this process: embedded servers, and several sessions that trust each other.

    A giant op keeps its own session busy, and neither the event loop nor, for longer than the switch interval,
    another session.
    """

    def __init__(self, name: str, metrics: Metrics) -> None:
        self.name = name
        self.metrics = metrics
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._draining = False
        self._closed = False
        self._finished = asyncio.Event()
        self._pending = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def open(self, limits: Limits, device: str, default_dtype: str, seed: int | None) -> None:
        """Start the thread and the engine's session in it (CuPy's current device belongs to a thread).

        Raises:
            DeviceError: when the server has no such device.
        """
        opened: asyncio.Future[None] = self._loop.create_future()

        def session() -> EngineSession:
            return EngineSession(limits=limits, device=device, default_dtype=default_dtype, seed=seed)

        # A daemon: a process that is told to stop does not wait for an op that runs for hours.
        threading.Thread(target=self._work, args=(session, opened), name=self.name, daemon=True).start()
        try:
            await opened
        except BaseException:
            self._jobs.put(None)  # nobody will use it, nor close it
            raise

    # The worker's thread

    def _work(self, open_session: Open, opened: asyncio.Future[None]) -> None:
        expect_any_float()
        try:
            engine = open_session()
        except BaseException as error:
            self._post(_settle, opened, None, error)
            return
        self._post(_settle, opened, None, None)
        while (job := self._jobs.get()) is not None:
            if self._closed:
                self._post(job.done, None, SessionGone("the session was deleted"))
                continue
            try:
                result, failure = job.run(engine), None
            except BaseException as error:
                result, failure = None, error
            self._post(job.done, result, failure)
            # Else the last reply's buffers would live until the next job.
            del job, result, failure
        try:
            engine.close()
        except Exception as error:
            log.error("closing a session failed", session=self.name, exc_info=error)
        del engine
        give_back_memory()
        self._post(self._finished.set)

    def _post(self, function: Callable[..., Any], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The event loop was closed while an op ran: nobody waits for its result any more.
            log.debug("result dropped", session=self.name)

    # The event loop's side

    @property
    def pending(self) -> int:
        return self._pending

    def _put(self, job: _Job) -> None:
        if self._closed:
            raise SessionGone("the session was deleted")
        self._jobs.put(job)

    async def _call(self, run: Callable[[EngineSession], T]) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(_Job(run, lambda result, failure: _settle(future, result, failure)))
        return await future

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer) -> None:
        if self._draining:
            raise Unavailable("the server is stopping: it takes no more frames")

        since = time.perf_counter()

        # Neither function may know its job: that would be a cycle, and a frame's buffers would live until the
        # garbage collector comes by, which is tuned to come seldom.
        def run(engine: EngineSession) -> tuple[Reply, Buffers, float, float]:
            started = time.perf_counter()
            reply, out = engine.apply(frame, buffers, human=human)
            return reply, out, started - since, time.perf_counter() - started

        def done(result: Any, failure: BaseException | None) -> None:
            self._pending -= 1
            if not self._pending:
                self._idle.set()
            if failure is None:
                reply, out, waited, took = result
                self._count(reply, waited, took)
                answer(reply, out)
            else:
                answer(Reply(seq=frame.seq, refused=problems.to_problem(self._explain(failure))), [])

        self._put(_Job(run, done))
        self._pending += 1
        self._idle.clear()

    def _explain(self, failure: BaseException) -> GradwireError:
        if isinstance(failure, GradwireError):
            return failure
        log.error("the engine failed on a frame", session=self.name, exc_info=failure)
        return InternalError(f"the engine failed: {type(failure).__name__}; the server's log has the details")

    def _count(self, reply: Reply, waited: float, took: float) -> None:
        metrics = self.metrics
        (metrics.frames_applied if reply.refused is None else metrics.frames_refused).inc()
        metrics.results.inc(reply.made)
        metrics.wait_seconds.observe(waited)
        metrics.frame_seconds.observe(took)
        for problem in reply.errors:
            metrics.errors.labels(problem.code).inc()
        if reply.refused is not None:
            metrics.errors.labels(reply.refused.code).inc()

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        future: asyncio.Future[tuple[Reply, Buffers]] = self._loop.create_future()

        def answer(reply: Reply, out: Buffers) -> None:
            if not future.done():
                future.set_result((reply, out))

        self.submit(frame, buffers, human, answer)
        return await future

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        self._put(
            _Job(
                lambda engine: engine.add_chunk(client, chunk.transfer, chunk.offset, chunk.total, data),
                lambda _, failure: answer(failure),
            )
        )

    async def join(self, client: int) -> tuple[int, int]:
        def run(engine: EngineSession) -> tuple[int, int]:
            number = client or engine.new_client()
            return number, engine.expected(number)

        return await self._call(run)

    async def describe(self) -> dict[str, Any]:
        return await self._call(lambda engine: engine.describe())

    async def tensors(self) -> list[dict[str, Any]]:
        return await self._call(lambda engine: engine.tensors())

    async def memory(self, reset_peak: bool = False) -> dict[str, int]:
        def look(engine: EngineSession) -> dict[str, int]:
            found = engine.memory()
            if reset_peak:
                engine.reset_peak_memory()
            return found

        return await self._call(look)

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        return await self._call(lambda engine: engine.graph(ids, most))

    def drain(self) -> None:
        self._draining = True

    async def idle(self) -> None:
        await self._idle.wait()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        try:
            await asyncio.wait_for(self._finished.wait(), CLOSE_PATIENCE_S)
        except TimeoutError:
            log.info("a session ends when its running op does", session=self.name)
