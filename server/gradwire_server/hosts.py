"""Where a session runs. A host owns the session's runner and does one thing at a time, in the order of arrival."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import structlog
from structlog.contextvars import bind_contextvars

from gradwire_engine.backends import available_devices, expect_any_float
from gradwire_engine.session import Session as EngineSession
from gradwire_protocol.errors import GradwireError, InternalError, SessionGone, Unavailable
from gradwire_protocol.frames import Chunk, Frame, Reply

from .durable.spec import JournalPolicy, SessionSpec
from .foresight import BURST_S, Foresight
from .jobs import FrameDone, FrameJob, Job
from .metrics import Applied
from .refusals import to_problem
from .runner import How, Runner, open_runner
from .threads import SHARED as THREADS
from .tuning import give_back_memory
from .turnstile import SHARED, Turnstile

T = TypeVar("T")
Buffers = list[memoryview]
Answer = Callable[[Reply, Buffers], None]

CLOSE_PATIENCE_S: Final = 2.0
LOOK_PATIENCE_S: Final = 0.25
"""How long a look at a session waits for what runs, before it is told what can be seen from outside."""

GROUP_S: Final[Mapping[str, float]] = {"none": 0.0, "applied": 0.0005, "durable": 0.005}
"""How long an answer may wait, so that what was applied meanwhile goes to disk with it: about what that takes."""

GROUP_JOBS: Final = 64
GROUP_BYTES: Final = 8 << 20

NOTES_KEPT: Final = 256
"""What the metrics shall be told of commits and snapshots, until a frame is answered that takes it along."""

log = structlog.get_logger("gradwire.host")


def warm_up() -> None:
    """Load everything that the first session would load."""
    EngineSession().close()


class Host(Protocol):
    """What the rest of the server knows of the place where a session runs.

    Calls take effect in the order in which they were made. All of them raise :class:`SessionGone` after ``close``.
    Whatever changes the session is answered when it is as safe as the session's durability promises; one that could
    not be written down is answered with :class:`Unavailable`, and may be sent again.
    """

    @property
    def pending(self) -> int:
        """How many frames wait or run."""

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        """Begin a session, or go on with one; ``image`` is the file to adopt.

        Raises:
            DeviceError: when the server has no such device.
            JournalDamaged: when what the folder holds cannot be trusted.
        """

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer) -> None:
        """Apply a frame; ``answer`` is called in the event loop, with a refusal rather than an exception.

        Raises:
            Unavailable: when the server is draining.
        """

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview, answer: Callable[[Any], None]) -> None:
        """Take a piece of an upload; ``answer`` gets ``None``, or the error."""

    async def apply(self, frame: Frame, buffers: Buffers, human: bool = False) -> tuple[Reply, Buffers]:
        """Apply a frame and wait for its reply."""

    async def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        """Register a new client (0), or resume one: its number, the number of its next frame, its epoch.

        Raises:
            MalformedFrame: for a client that the session never had.
            Superseded: for a program whose place was taken by another one.
        """

    async def expected(self, client: int) -> int:
        """The number of the next frame of a client.

        Raises:
            MalformedFrame: for a client that the session never had.
        """

    async def describe(self) -> dict[str, Any]:
        """Counts and sizes of what the session holds. While a long op runs, ``busy`` is true and what takes a walk
        through the session's tensors is of ``age_s`` seconds ago.
        """

    async def tensors(self) -> list[dict[str, Any]]:
        """One row per live tensor."""

    async def memory(self, reset_peak: bool = False) -> dict[str, Any]:
        """What the session's tensors occupy; the peak is reset after it was looked at. As for :meth:`describe`, it may
        be ``busy``, but not when the peak is to be reset.
        """

    async def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the autograd graph behind these tensors, or all.

        Raises:
            UnknownTensor: for an id that is not there.
            LimitExceeded: for a graph of more nodes than ``most``.
        """

    async def export(self) -> bytes | memoryview:
        """The session's tensors and names as one file, to be adopted by another session."""

    def drain(self) -> None:
        """Refuse further frames; those submitted before run to their end."""

    async def idle(self) -> None:
        """Wait until no frame waits or runs."""

    async def close(self, keep: bool = False) -> bool:
        """Release everything. What waits is answered with SessionGone; what runs is not waited for long. Returns
        whether all is released; called again, waits again.

        ``keep`` leaves the session on disk, to be opened again; what waits is then answered with Unavailable.
        """


class Counting(Protocol):
    """What a host needs of the metrics; a worker has a stand-in that passes it on."""

    def knows(self, key: bytes) -> bool:
        """Whether the families of the structure with this hash were told."""

    def applied(self, key: bytes, whole: bool, reply: Reply, told: Applied) -> None:
        """Count a frame that was answered."""


class _Outcome(NamedTuple):
    done: Callable[[Any, BaseException | None], None]
    lasting: bool
    result: Any
    failure: BaseException | None


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

    A giant op keeps its own session busy, and neither the event loop nor, for longer than the turnstile's patience,
    another session. A frame that will be short (:mod:`.foresight`) runs in the event loop's thread instead, while the
    session's own has nothing to do and no other session wants to compute: one of the two threads owns the session at
    a time. Sessions with a journal, which may wait for the disk, and processes with a GPU, whose streams belong to
    threads, never do that.
    """

    def __init__(
        self, name: str, metrics: Counting, policy: JournalPolicy | None = None, turnstile: Turnstile = SHARED
    ) -> None:
        self._turnstile = turnstile
        self.name = name
        self.metrics = metrics
        self.policy = policy
        self._jobs: queue.SimpleQueue[Job | FrameJob | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._runner: Runner | None = None
        self._hold_s = 0.0
        self._draining = False
        self._closed = False
        self._keep = False
        self._finished = asyncio.Event()
        self._pending = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._notes: list[tuple[str, float]] = []
        self._looks: dict[str, asyncio.Future[Any]] = {}
        self._occupied = False
        """Whether the thread does something else than looking; written there, read here."""
        self._context = Context()
        """What the engine finds in context variables, in whichever thread; a context is entered by one at a time."""
        self._foresight = Foresight()
        self._may_run_here = False
        self._given = 0
        """Jobs given to the thread; written by the event loop."""
        self._settled = 0
        """Those that it has done with, so that the session is nobody's if they are all. Written by the thread."""
        self._postponed: deque[Job | FrameJob] = deque()
        """What came after the event loop had run enough frames for once, in the order of arrival."""
        self._burst_s = 0.0
        self._bursting = False
        self._told: deque[_Outcome] = deque()
        """What the thread has done, and the event loop not told yet."""
        self._telling = False
        self._seen: tuple[float, dict[str, Any]] = (time.monotonic(), {"saved_bytes": 0, "pooled_bytes": 0})
        """When the session was last looked at in full, and what was seen of its memory."""

    async def open(
        self, spec: SessionSpec, folder: Path | None = None, how: How = "new", image: bytes | memoryview = b""
    ) -> None:
        """Start the thread and the session in it (CuPy's current device belongs to a thread)."""
        opened: asyncio.Future[None] = self._loop.create_future()
        self._hold_s = GROUP_S[spec.durability]

        def begin() -> Runner:
            return open_runner(spec, folder, how, image, self.policy)

        def live() -> None:
            with THREADS.exact(spec.durability != "none" and folder is not None):
                self._work(begin, opened, how)

        # A daemon: a process that is told to stop does not wait for an op that runs for hours.
        threading.Thread(target=live, name=self.name, daemon=True).start()
        try:
            await opened
        except BaseException:
            self._jobs.put(None)  # nobody will use it, nor close it
            raise

    # The worker's thread

    def _work(self, begin: Callable[[], Runner], opened: asyncio.Future[None], how: How) -> None:
        self._context.run(bind_contextvars, session=self.name)  # what the engine logs
        self._context.run(expect_any_float)
        began = time.perf_counter()
        try:
            with self._turnstile.turn():
                runner = self._context.run(begin)
            self._may_run_here = not runner.journaled and len(available_devices()) == 1
        except BaseException as error:
            self._post(_settle, opened, None, error)
            return
        if how == "recover":
            self._note("recovery_seconds", time.perf_counter() - began)
        self._runner = runner
        self._post(_settle, opened, None, None)
        going_on = True
        while going_on and (job := self._jobs.get()) is not None:
            outcomes, going_on = self._context.run(self._group, runner, job)
            # When the event loop hears of it, the session may be its own.
            self._tell(outcomes)
            # Else the last frame's buffers would live until the next job.
            del job, outcomes
            if going_on:
                self._tidy(runner)
        self._runner = None
        try:
            runner.close(self._keep)
        except Exception as error:
            log.error("closing a session failed", session=self.name, exc_info=error)
        del runner
        give_back_memory()
        self._post(self._finished.set)

    def _group(self, runner: Runner, job: Job | FrameJob) -> tuple[list[_Outcome], bool]:
        """Do this job and those that wait behind it, and write down what they changed. Returns what is to be told, and
        whether it goes on after that.
        """
        held: list[_Outcome] = []
        going_on = True
        turn = self._turnstile.enter(self.name)
        try:
            until = time.perf_counter() + self._hold_s
            while True:
                outcome = self._do(runner, job)
                if not held and not runner.dirty:
                    return [outcome], True
                held.append(outcome)
                del outcome
                full = len(held) >= GROUP_JOBS or runner.waiting_bytes >= GROUP_BYTES
                if full or time.perf_counter() >= until:
                    break
                try:
                    following = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    going_on = False
                    break
                job = following
        finally:
            # Before the commit: who waits for the disk computes nothing.
            self._turnstile.leave(turn)
        began, before = time.perf_counter(), runner.committed_bytes
        self._occupied = True
        try:
            runner.commit()
            self._note("commit_seconds", time.perf_counter() - began)
            self._note("journal_bytes_total", runner.committed_bytes - before)
        except Exception as error:
            failure = self._explain(error)
            held = [o._replace(failure=failure) if o.lasting and o.failure is None else o for o in held]
        finally:
            self._occupied = False
        now = time.perf_counter_ns()
        for each in held:
            if type(each.result) is FrameDone:
                each.result.told.notes, self._notes = self._notes, []
                if each.result.reply.timing is not None:
                    each.result.reply.timing.committed = now
        return held, going_on

    def _do(self, runner: Runner, job: Job | FrameJob) -> _Outcome:
        if self._closed:
            return _Outcome(job.done, False, None, self._gone())
        self._occupied = not job.looks
        try:
            return _Outcome(job.done, job.lasting, job.run(runner), None)
        except BaseException as error:
            return _Outcome(job.done, False, None, error)
        finally:
            self._occupied = False

    def _note(self, name: str, value: float) -> None:
        if len(self._notes) < NOTES_KEPT:
            self._notes.append((name, value))

    def _tidy(self, runner: Runner) -> None:
        began = time.perf_counter()
        self._occupied = True
        try:
            if runner.compact():
                self._note("snapshot_seconds", time.perf_counter() - began)
        except Exception as error:
            # The journal still has everything; what cannot be written will be noticed by the next commit.
            log.error("a journal could not be compacted", session=self.name, exc_info=error)
        finally:
            self._occupied = False

    def _tell(self, outcomes: Sequence[_Outcome]) -> None:
        """Let the event loop tell. It is woken once for all that has come together until it does."""
        self._told.extend(outcomes)
        self._settled += len(outcomes)
        if not self._telling:
            self._telling = True
            self._post(self._tell_all)

    def _tell_all(self) -> None:
        self._telling = False  # first: what the thread does from now on may be too late for this time
        while self._told:
            outcome = self._told.popleft()
            try:
                outcome.done(outcome.result, outcome.failure)
            except Exception as error:
                # Whoever asked is at fault, and not those that are told after.
                log.error("an answer was not taken", session=self.name, exc_info=error)
        if self._postponed and not self._bursting:
            self._go_on()

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

    def _gone(self) -> GradwireError:
        if self._keep:
            return Unavailable("the session is being put away: it can be resumed")
        return SessionGone("the session was deleted")

    def _put(self, job: Job | FrameJob) -> None:
        if self._closed:
            raise self._gone()
        if self._postponed:
            self._postponed.append(job)
        else:
            self._give(job)

    def _give(self, job: Job | FrameJob) -> None:
        self._given += 1
        self._jobs.put(job)

    async def _call(self, run: Callable[[Runner], T], lasting: bool = False) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(Job(run, lambda result, failure: _settle(future, result, failure), lasting))
        return await future

    def submit(self, frame: Frame, buffers: Buffers, human: bool, answer: Answer) -> None:
        if self._draining:
            raise Unavailable("the server is stopping: it takes no more frames")

        if self._closed:
            raise self._gone()
        job = FrameJob(frame, buffers, human, answer, self.metrics.knows(frame.hash), self._answered)
        self._pending += 1
        self._idle.clear()
        if self._postponed or not self._may_run_here or human:
            self._put(job)
        elif not self._idle_thread():
            # Behind a short one, so many that nobody waits for come most quickly to an end in one thread.
            (self._postponed.append if self._foresight.was_short(frame) else self._give)(job)
        elif not self._is_short(job):
            self._give(job)
        elif self._burst_s > BURST_S:
            self._postponed.append(job)
        elif not self._ran_here(job):
            self._give(job)

    def _answered(self, job: FrameJob, result: Any, failure: BaseException | None) -> None:
        self._pending -= 1
        if not self._pending:
            self._idle.set()
        if failure is None:
            reply, out, told = result
            if self._may_run_here:
                self._foresight.ran(job.frame, job.reach, job.nodes, job.worked, told.took, job.here)
            self.metrics.applied(job.frame.hash, job.whole, reply, told)
            job.answer(reply, out)
        else:
            job.answer(Reply(seq=job.frame.seq, refused=to_problem(self._explain(failure))), [])

    # The event loop's own runs

    def _idle_thread(self) -> bool:
        # In this order: what the thread has settled is either told, or waits to be, which comes first.
        return self._given == self._settled and not self._told

    def _is_short(self, job: FrameJob) -> bool:
        """Whether the session's thread has nothing to do, and the frame will not take long."""
        runner = self._runner
        if runner is None or job.human or not self._idle_thread():
            return False
        job.look(runner)
        return self._foresight.short(job.frame, job.reach, job.nodes)

    def _ran_here(self, job: FrameJob) -> bool:
        """Do the job in this thread, unless somebody else computes."""
        turn, runner = self._turnstile.enter_alone(self.name), self._runner
        if turn is None or runner is None:
            return False
        if not self._bursting:
            self._bursting = True
            self._loop.call_soon(self._go_on)
        job.here = True
        began = time.perf_counter()
        try:
            outcome = self._context.run(self._do, runner, job)
        finally:
            self._turnstile.leave(turn)
        self._burst_s += time.perf_counter() - began
        outcome.done(outcome.result, outcome.failure)
        return True

    def _go_on(self) -> None:
        """The event loop has looked after the others: a new burst."""
        self._bursting, self._burst_s = False, 0.0
        while self._postponed:
            job = self._postponed[0]
            if type(job) is FrameJob and self._is_short(job):
                if self._burst_s > BURST_S:
                    return
                self._postponed.popleft()
                if not self._ran_here(job):
                    self._give(job)
            else:
                self._give(self._postponed.popleft())

    def _explain(self, failure: BaseException) -> GradwireError:
        if isinstance(failure, GradwireError):
            return failure
        log.error("the engine failed on a frame", session=self.name, exc_info=failure)
        return InternalError(f"the engine failed: {type(failure).__name__}; the server's log has the details")

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

    async def _look(self, what: str, run: Callable[[Runner], T]) -> T | None:
        """Look at the session between two ops; ``None`` when those keep it too long. Many who look, look once.

        A look that has begun is waited for: a count of a large graph takes its time, and what was seen before it is
        not the answer.
        """
        future = self._looks.get(what)
        if future is None or future.done():
            future = self._looks[what] = self._loop.create_future()
            # Nobody may be left to ask how it ended.
            future.add_done_callback(lambda over: over.cancelled() or over.exception())
            looked = future
            self._put(Job(run, lambda result, failure: _settle(looked, result, failure), looks=True))
        while True:
            done, _ = await asyncio.wait((future,), timeout=LOOK_PATIENCE_S)
            if done:
                found: T = future.result()
                return found
            if self._occupied:
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

    async def tensors(self) -> list[dict[str, Any]]:
        found = await self._look("tensors", Runner.tensors)
        return found if found is not None else self._running().tensors(peek=True)

    def _running(self) -> Runner:
        runner = self._runner
        if runner is None:
            raise self._gone()
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
            self._keep = keep
            self._closed = True
            while self._postponed:
                self._give(self._postponed.popleft())
            self._jobs.put(None)
        try:
            await asyncio.wait_for(self._finished.wait(), CLOSE_PATIENCE_S)
        except TimeoutError:
            log.info("a session ends when its running op does", session=self.name)
            return False
        return True
