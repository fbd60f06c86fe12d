"""What a host gives its session to do: a frame, or anything else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from gradwire_engine.deadline import Clock
from gradwire_protocol.frames import Frame, Reply

from .foresight import reach_of
from .metrics import Applied
from .runner import Runner

Buffers = list[memoryview]
Answer = Callable[[Reply, Buffers], None]


class Job:
    """One thing to do. ``done`` is called in the event loop with the result or the error.

    Attributes:
        lasting: it changes the session, and may be told only once it is written down.
        looks: it is itself what somebody would ask the session, and waited for however long it takes.
    """

    __slots__ = ("done", "lasting", "looks", "run")

    def __init__(
        self,
        run: Callable[[Runner], Any],
        done: Callable[[Any, BaseException | None], None],
        lasting: bool = False,
        looks: bool = False,
    ) -> None:
        self.run = run
        self.done = done
        self.lasting = lasting
        self.looks = looks


class FrameDone(NamedTuple):
    """A frame's outcome, and what the metrics make of it."""

    reply: Reply
    out: Buffers
    told: Applied


class FrameJob:
    """A frame to be applied.

    Attributes:
        received: when it came, in nanoseconds.
        known: the families of its structure's ops need not be told.
        whole: it brought its structure.
        reach, nodes: how much it begins with (:mod:`.foresight`); -1 where nobody has looked.
        worked: seconds of the processor that applying it took.
        here: it is run in the event loop's thread.
        clock: cancels it, before its turn or while it runs.
    """

    __slots__ = (
        "_buffers", "_finished", "answer", "clock", "frame", "here", "human", "known", "nodes", "reach", "received",
        "whole", "worked",
    )  # fmt: skip

    lasting = True
    looks = False

    def __init__(
        self,
        frame: Frame,
        buffers: Buffers,
        human: bool,
        answer: Answer,
        known: bool,
        finished: Callable[[FrameJob, Any, BaseException | None], None],
    ) -> None:
        self.frame = frame
        self._buffers: Buffers = buffers
        self.human = human
        self.answer = answer
        self.known = known
        self.whole = bool(frame.structure)
        self.received = time.perf_counter_ns()
        self.reach = -1
        self.nodes = 0
        self.worked = 0.0
        self.here = False
        self.clock = Clock()
        self._finished = finished

    def look(self, runner: Runner) -> None:
        """Find out how much it begins with. For the thread that has the session."""
        session = runner.session
        brings = sum(buffer.nbytes for buffer in self._buffers)
        self.reach, self.nodes = reach_of(self.frame, brings, session), session.engine.account.nodes

    def run(self, runner: Runner) -> FrameDone:
        """Apply it."""
        if self.reach < 0:
            self.look(runner)
        started, working = time.perf_counter_ns(), time.thread_time()
        # The session keeps nothing of these, and they must not live until the answer is told.
        buffers, self._buffers = self._buffers, []
        reply, out = runner.apply(self.frame, buffers, human=self.human, clock=self.clock)
        self.worked = time.thread_time() - working
        took = time.perf_counter_ns() - started
        if reply.timing is not None and not reply.timing.received:
            reply.timing.received = self.received
        waited = (started - self.received) * 1e-9
        return FrameDone(reply, out, Applied.of(runner.ran, self.known, waited, took * 1e-9, runner.planned))

    def done(self, result: FrameDone | None, failure: BaseException | None) -> None:
        """Tell what came of it."""
        self._finished(self, result, failure)


def settle(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    """Give a future what came of a job, unless whoever waited has left."""
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
