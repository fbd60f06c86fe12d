"""The thread of a session: it runs jobs in order and commits them in groups."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog
from structlog.contextvars import bind_contextvars

from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.backends import available_devices, expect_any_float
from gradwire_engine.runtime.groups import Suspended
from gradwire_protocol.errors import GradwireError, InternalError, SessionGone, Unavailable

from ..durable.shared.epochs import Place
from ..durable.shared.home import Home
from ..durable.shared.ownership import OwnershipLost
from ..settings.session_spec import JournalPolicy, SessionSpec
from ..settings.tuning import give_back_memory
from .compute_semaphore import ComputeSemaphore, ComputeTurn
from .jobs import MOVING, FrameDone, FrameJob, Job, settle
from .opening import open_runner
from .runner import How, Runner
from .threads import SHARED as THREADS

GROUP_S: Final[Mapping[str, float]] = {"none": 0.0, "applied": 0.0005, "durable": 0.005}
"""How long a group collects jobs before its commit: about the duration of a commit."""

GROUP_JOBS: Final = 64
GROUP_BYTES: Final = 8 << 20

NOTES_KEPT: Final = 256
"""Measurements of commits and snapshots kept until the next frame's statistics carry them."""

HEAVY_BYTES: Final = 1 << 20
"""What a session holds whose frames are worth a wait of a second, in a new process, for kernels that are being loaded:
a step of training by NumPy, beside a thread that loads them, takes longer."""

log = structlog.get_logger("gradwire.host")


class Outcome(NamedTuple):
    """The outcome of a job, to be delivered by the event loop."""

    done: Callable[[Any, BaseException | None], None]
    mutates: bool
    result: Any
    failure: BaseException | None


class SessionThread:
    """Runs jobs for an event loop. Methods are for the event loop's thread unless they say otherwise.

    Attributes:
        runner: the session's runner; ``None`` before it is open and after its end.
        shared: the event loop may run jobs, too (:meth:`run_in_loop`), while the thread is :attr:`idle`. False for
            sessions with a journal, which may block on the disk, and on GPU machines, whose streams belong to threads.
        busy: the thread runs a job other than a query.
        finished: the thread has ended.
    """

    def __init__(
        self, name: str, policy: JournalPolicy | None, semaphore: ComputeSemaphore, home: Home | None = None
    ) -> None:
        self.name = name
        self._home = home
        self.runner: Runner | None = None
        self.shared = False
        self.busy = False
        self.finished = asyncio.Event()
        self._policy = policy
        self._semaphore = semaphore
        self._jobs: queue.SimpleQueue[Job | FrameJob | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._group_s = 0.0
        self._ending = False
        self._keep = False
        self._notes: list[tuple[str, float]] = []
        self._context = Context()
        """The engine's context variables, the same in both threads. Only one thread enters it at a time."""
        self._submitted = 0
        """The number of submitted jobs. Written by the event loop."""
        self.completed = 0
        """The number of completed jobs. Written by the thread."""
        self._outcomes: deque[Outcome] = deque()
        """Outcomes that the event loop has not delivered yet."""
        self._delivery_scheduled = False
        self._turn = ComputeTurn(0.0)

    # The event loop's side

    async def open(self, spec: SessionSpec, folder: Path | None, how: How, image: bytes | memoryview) -> None:
        """Start the thread and open the session in it, because CuPy's current device is per thread.

        Raises:
            GradwireError: when the session cannot be opened.
        """
        opened: asyncio.Future[None] = self._loop.create_future()
        self._group_s = GROUP_S[spec.durability]

        def prepare() -> Callable[[], Runner]:
            """Wait for the session's files; they are opened in a turn to compute."""
            home = None if spec.durability == "none" else self._home
            place = Place(folder, None) if home is None else home.open(new=how != "recover")
            return lambda: open_runner(spec, place.folder, how, image, self._policy, place.disk, home)

        def run_session() -> None:
            with THREADS.fixed(spec.durability != "none" and folder is not None):
                self._work(prepare, opened, how)

        # A daemon, so that the process can exit while an op runs for hours.
        threading.Thread(target=run_session, name=self.name, daemon=True).start()
        try:
            await opened
        except BaseException:
            self._keep = how == "recover"
            self._jobs.put(None)  # no one will close it
            raise

    @property
    def idle(self) -> bool:
        """Whether all jobs are completed and all outcomes delivered."""
        # The thread appends an outcome before it counts the job as completed, so check in the reverse order.
        return self._submitted == self.completed and not self._outcomes

    def give(self, job: Job | FrameJob) -> None:
        """Queue a job."""
        self._submitted += 1
        self._jobs.put(job)

    def run_in_loop(self, runner: Runner, job: Job | FrameJob) -> Outcome:
        """Run a job in the event loop's thread. The caller holds a compute turn and delivers the outcome."""
        return self._context.run(self._do, runner, job)

    def end(self, keep: bool) -> None:
        """Fail the queued jobs with :meth:`closed_error` and close the session; ``keep`` leaves it on disk."""
        self._keep = keep
        self._ending = True
        if keep and (runner := self.runner) is not None:
            runner.groups.suspend(runner.session)
        self._jobs.put(None)

    def closed_error(self) -> GradwireError:
        """The error for jobs of a closed session. Thread-safe."""
        if self._keep:
            return Unavailable("the session is being unloaded; try again", reason=MOVING)
        return SessionGone("the session was deleted")

    def to_gradwire_error(self, failure: BaseException) -> GradwireError:
        """The error for the client. Logs an unexpected one. Thread-safe."""
        if isinstance(failure, GradwireError):
            return failure
        log.error("the engine failed on a frame", session=self.name, exc_info=failure)
        return InternalError(f"the engine failed: {type(failure).__name__}; the server's log has details")

    # The thread

    def _work(self, prepare: Callable[[], Callable[[], Runner]], opened: asyncio.Future[None], how: How) -> None:
        self._context.run(bind_contextvars, session=self.name)  # for the engine's log lines
        self._context.run(expect_any_float)
        began = time.perf_counter()
        try:
            runner = self._open(prepare)
            journaled = runner.journaled
            # A collective must not wait in the event loop.
            self.shared = not journaled and not runner.session.engine.groups and len(available_devices()) == 1
        except BaseException as error:
            self._post(settle, opened, None, error)
            return
        if how == "recover":
            self._note("recovery_seconds", time.perf_counter() - began)
        runner.groups.pause, runner.groups.resume = self._pause, self._resume
        self.runner = runner
        self._post(settle, opened, None, None)
        running = True
        while running and (job := self._jobs.get()) is not None:
            if toolchain.loading() and type(job) is FrameJob and runner.session.engine.account.live >= HEAVY_BYTES:
                toolchain.await_loading()
            outcomes, running = self._context.run(self._group, runner, job)
            # After this call, the event loop may own the session.
            self._deliver(outcomes)
            # Free the last frame's buffers before the next job arrives.
            del job, outcomes
            if running and journaled:
                self._compact(runner)
        self.runner = None
        try:
            runner.close(self._keep)
        except Exception as error:
            log.error("closing a session failed", session=self.name, exc_info=error)
        del runner
        give_back_memory()
        self._post(self.finished.set)

    def _open(self, prepare: Callable[[], Callable[[], Runner]]) -> Runner:
        begin = self._context.run(prepare)
        try:
            with self._semaphore.turn():
                runner = self._context.run(begin)
            try:
                self._context.run(runner.publish_epoch)
            except BaseException:
                runner.discard()
                raise
        except BaseException:
            if self._home is not None:
                self._home.abandon()
            raise
        return runner

    def _group(self, runner: Runner, job: Job | FrameJob) -> tuple[list[Outcome], bool]:
        """Run this job and the queued ones behind it, then commit. Returns the outcomes and whether to continue."""
        group: list[Outcome] = []
        running = True
        self._turn = self._semaphore.enter(self.name)
        try:
            until = time.perf_counter() + self._group_s
            while True:
                outcome = self._do(runner, job)
                if not group and not runner.dirty:
                    return [outcome], True
                group.append(outcome)
                del outcome
                if runner.session.engine.groups:
                    break  # the next frame may wait for ranks that wait for this reply
                full = len(group) >= GROUP_JOBS or runner.waiting_bytes >= GROUP_BYTES
                if full or time.perf_counter() >= until:
                    break
                try:
                    following = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    running = False
                    break
                job = following
        finally:
            # Before the commit, which waits for the disk and does not compute.
            self._semaphore.leave(self._turn)
        began, before = time.perf_counter(), runner.committed_bytes
        self.busy = True
        try:
            runner.commit()
            if runner.committed_bytes != before:
                self._note("commit_seconds", time.perf_counter() - began)
                self._note("journal_bytes_total", runner.committed_bytes - before)
        except Exception as error:
            failure = self.to_gradwire_error(error)
            # Without the ownership, even the answer to a query may be old.
            every = isinstance(error, OwnershipLost)
            group = [o._replace(failure=failure) if (every or o.mutates) and o.failure is None else o for o in group]
        finally:
            self.busy = False
        now = time.perf_counter_ns()
        for each in group:
            if type(each.result) is FrameDone:
                each.result.stats.notes, self._notes = self._notes, []
                if each.result.reply.timing is not None:
                    each.result.reply.timing.committed = now
        return group, running

    def _pause(self) -> bool:
        """A collective is about to wait for other ranks: this session does not compute."""
        self._semaphore.leave(self._turn)
        return True

    def _resume(self) -> None:
        self._turn = self._semaphore.enter(self.name)

    def _do(self, runner: Runner, job: Job | FrameJob) -> Outcome:
        if self._ending:
            return Outcome(job.done, False, None, self.closed_error())
        self.busy = not job.query
        try:
            return Outcome(job.done, job.mutates, job.run(runner), None)
        except Suspended:
            runner.given_up = True
            return Outcome(job.done, False, None, self.closed_error())
        except BaseException as error:
            return Outcome(job.done, False, None, error)
        finally:
            self.busy = False

    def _note(self, name: str, value: float) -> None:
        if len(self._notes) < NOTES_KEPT:
            self._notes.append((name, value))

    def _compact(self, runner: Runner) -> None:
        began = time.perf_counter()
        self.busy = True
        try:
            if runner.compact():
                self._note("snapshot_seconds", time.perf_counter() - began)
            if self._home is not None and runner.journaled:
                self._home.tidy()
        except OwnershipLost as error:
            # The next group's commit tells the clients.
            log.warning("a journal is not compacted", session=self.name, reason=str(error))
        except Exception as error:
            # The journal is still complete; the next commit reports a disk that fails.
            log.error("compacting a journal failed", session=self.name, exc_info=error)
        finally:
            self.busy = False

    def _deliver(self, outcomes: Sequence[Outcome]) -> None:
        """Have the event loop deliver outcomes. One wake-up covers all outcomes until it runs."""
        self._outcomes.extend(outcomes)
        self.completed += len(outcomes)
        if not self._delivery_scheduled:
            self._delivery_scheduled = True
            self._post(self._deliver_all)

    def _deliver_all(self) -> None:
        self._delivery_scheduled = False  # first, because outcomes that the thread adds from now on may be missed
        while self._outcomes:
            outcome = self._outcomes.popleft()
            try:
                outcome.done(outcome.result, outcome.failure)
            except Exception as error:
                # A failing callback must not keep the following outcomes from delivery.
                log.error("delivering a result failed", session=self.name, exc_info=error)

    def _post(self, function: Callable[..., Any], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The event loop was closed while an op ran.
            log.debug("result dropped", session=self.name)
