"""The thread that a session lives in: it does what it is given in order, in groups that go to disk together."""

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

from gradwire_engine.backends import available_devices, expect_any_float
from gradwire_protocol.errors import GradwireError, InternalError, SessionGone, Unavailable

from .durable.spec import JournalPolicy, SessionSpec
from .jobs import FrameDone, FrameJob, Job, settle
from .runner import How, Runner, open_runner
from .threads import SHARED as THREADS
from .tuning import give_back_memory
from .turnstile import Turnstile

GROUP_S: Final[Mapping[str, float]] = {"none": 0.0, "applied": 0.0005, "durable": 0.005}
"""How long an answer may wait, so that what was applied meanwhile goes to disk with it: about what that takes."""

GROUP_JOBS: Final = 64
GROUP_BYTES: Final = 8 << 20

NOTES_KEPT: Final = 256
"""What the metrics shall be told of commits and snapshots, until a frame is answered that takes it along."""

log = structlog.get_logger("gradwire.host")


class Outcome(NamedTuple):
    """What came of a job, for the event loop to tell."""

    done: Callable[[Any, BaseException | None], None]
    lasting: bool
    result: Any
    failure: BaseException | None


class SessionThread:
    """Runs jobs for an event loop, which calls everything here but what says otherwise.

    Attributes:
        runner: the session's; ``None`` before it is open and after its end.
        shared: the event loop may do jobs as well (:meth:`do_here`), while the thread is :attr:`idle`. Sessions with a
            journal, which may wait for the disk, and processes with a GPU, whose streams belong to threads, are not.
        occupied: the thread does something else than looking.
        finished: it has ended.
    """

    def __init__(self, name: str, policy: JournalPolicy | None, turnstile: Turnstile) -> None:
        self.name = name
        self.runner: Runner | None = None
        self.shared = False
        self.occupied = False
        self.finished = asyncio.Event()
        self._policy = policy
        self._turnstile = turnstile
        self._jobs: queue.SimpleQueue[Job | FrameJob | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._hold_s = 0.0
        self._ending = False
        self._keep = False
        self._notes: list[tuple[str, float]] = []
        self._context = Context()
        """What the engine finds in context variables, in whichever thread; a context is entered by one at a time."""
        self._given = 0
        """Jobs given to the thread; written by the event loop."""
        self.settled = 0
        """Those that it has done with, so that the session is nobody's if they are all. Written by the thread."""
        self._told: deque[Outcome] = deque()
        """What the thread has done, and the event loop not told yet."""
        self._telling = False

    # The event loop's side

    async def open(self, spec: SessionSpec, folder: Path | None, how: How, image: bytes | memoryview) -> None:
        """Start the thread and the session in it (CuPy's current device belongs to a thread).

        Raises:
            GradwireError: what the session could not be opened for.
        """
        opened: asyncio.Future[None] = self._loop.create_future()
        self._hold_s = GROUP_S[spec.durability]

        def begin() -> Runner:
            return open_runner(spec, folder, how, image, self._policy)

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

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do, and all that it did was told."""
        # In this order: what the thread has settled is either told, or waits to be, which comes first.
        return self._given == self.settled and not self._told

    def give(self, job: Job | FrameJob) -> None:
        """Have a job done after those before it."""
        self._given += 1
        self._jobs.put(job)

    def do_here(self, runner: Runner, job: Job | FrameJob) -> Outcome:
        """Do a job in the event loop's thread. Whoever calls has a turn for it, and tells."""
        return self._context.run(self._do, runner, job)

    def end(self, keep: bool) -> None:
        """Answer what waits with :meth:`gone`, and close the session; ``keep`` leaves it on disk."""
        self._keep = keep
        self._ending = True
        self._jobs.put(None)

    def gone(self) -> GradwireError:
        """What those are told who come too late. For any thread."""
        if self._keep:
            return Unavailable("the session is being put away: it can be resumed")
        return SessionGone("the session was deleted")

    def explained(self, failure: BaseException) -> GradwireError:
        """An error of the session as it is told; a defect is logged. For any thread."""
        if isinstance(failure, GradwireError):
            return failure
        log.error("the engine failed on a frame", session=self.name, exc_info=failure)
        return InternalError(f"the engine failed: {type(failure).__name__}; the server's log has the details")

    # The thread

    def _work(self, begin: Callable[[], Runner], opened: asyncio.Future[None], how: How) -> None:
        self._context.run(bind_contextvars, session=self.name)  # what the engine logs
        self._context.run(expect_any_float)
        began = time.perf_counter()
        try:
            with self._turnstile.turn():
                runner = self._context.run(begin)
            self.shared = not runner.journaled and len(available_devices()) == 1
        except BaseException as error:
            self._post(settle, opened, None, error)
            return
        if how == "recover":
            self._note("recovery_seconds", time.perf_counter() - began)
        self.runner = runner
        self._post(settle, opened, None, None)
        going_on = True
        while going_on and (job := self._jobs.get()) is not None:
            outcomes, going_on = self._context.run(self._group, runner, job)
            # When the event loop hears of it, the session may be its own.
            self._tell(outcomes)
            # Else the last frame's buffers would live until the next job.
            del job, outcomes
            if going_on:
                self._tidy(runner)
        self.runner = None
        try:
            runner.close(self._keep)
        except Exception as error:
            log.error("closing a session failed", session=self.name, exc_info=error)
        del runner
        give_back_memory()
        self._post(self.finished.set)

    def _group(self, runner: Runner, job: Job | FrameJob) -> tuple[list[Outcome], bool]:
        """Do this job and those that wait behind it, and write down what they changed. Returns what is to be told, and
        whether it goes on after that.
        """
        held: list[Outcome] = []
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
        self.occupied = True
        try:
            runner.commit()
            self._note("commit_seconds", time.perf_counter() - began)
            self._note("journal_bytes_total", runner.committed_bytes - before)
        except Exception as error:
            failure = self.explained(error)
            held = [o._replace(failure=failure) if o.lasting and o.failure is None else o for o in held]
        finally:
            self.occupied = False
        now = time.perf_counter_ns()
        for each in held:
            if type(each.result) is FrameDone:
                each.result.told.notes, self._notes = self._notes, []
                if each.result.reply.timing is not None:
                    each.result.reply.timing.committed = now
        return held, going_on

    def _do(self, runner: Runner, job: Job | FrameJob) -> Outcome:
        if self._ending:
            return Outcome(job.done, False, None, self.gone())
        self.occupied = not job.looks
        try:
            return Outcome(job.done, job.lasting, job.run(runner), None)
        except BaseException as error:
            return Outcome(job.done, False, None, error)
        finally:
            self.occupied = False

    def _note(self, name: str, value: float) -> None:
        if len(self._notes) < NOTES_KEPT:
            self._notes.append((name, value))

    def _tidy(self, runner: Runner) -> None:
        began = time.perf_counter()
        self.occupied = True
        try:
            if runner.compact():
                self._note("snapshot_seconds", time.perf_counter() - began)
        except Exception as error:
            # The journal still has everything; what cannot be written will be noticed by the next commit.
            log.error("a journal could not be compacted", session=self.name, exc_info=error)
        finally:
            self.occupied = False

    def _tell(self, outcomes: Sequence[Outcome]) -> None:
        """Let the event loop tell. It is woken once for all that has come together until it does."""
        self._told.extend(outcomes)
        self.settled += len(outcomes)
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

    def _post(self, function: Callable[..., Any], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The event loop was closed while an op ran: nobody waits for its result any more.
            log.debug("result dropped", session=self.name)
