"""Jobs of a session: frames and other calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from gradwire_engine.runtime.deadline import Clock
from gradwire_protocol.frames import Frame, Reply

from ..observability.metrics import Applied
from .duration_predictor import input_size_of, key_of
from .frame_profile import FrameProfile
from .runner import Runner

Buffers = list[memoryview]
Answer = Callable[[Reply, Buffers], None]

MOVING: Final = "moving"
"""The reason of a refusal because a session is unloaded, here or for another server: it is there again soon."""


class Job:
    """A call on the session. The event loop calls ``done`` with the result or the error.

    Attributes:
        mutates: it changes the session, so its result is published only after a commit.
        query: it is a query itself, so other queries wait for it without a timeout.
    """

    __slots__ = ("done", "mutates", "query", "run")

    def __init__(
        self,
        run: Callable[[Runner], Any],
        done: Callable[[Any, BaseException | None], None],
        mutates: bool = False,
        query: bool = False,
    ) -> None:
        self.run = run
        self.done = done
        self.mutates = mutates
        self.query = query


class FrameDone(NamedTuple):
    """The result of a frame and its statistics."""

    reply: Reply
    out: Buffers
    stats: Applied


class FrameJob:
    """A frame to apply.

    Attributes:
        received: its time of arrival in nanoseconds.
        known: the metrics know the op families of its structure.
        whole: it carries its structure.
        key, input_size, nodes: inputs of :mod:`.duration_predictor`; empty and -1 until measured.
        cpu_s: CPU seconds that it took.
        in_loop: it runs in the event loop.
        clock: cancels it before or during its run.
        profile: takes its times.
    """

    __slots__ = (
        "_buffers", "_finished", "answer", "clock", "cpu_s", "frame", "human", "in_loop", "input_size", "key", "known",
        "nodes", "profile", "received", "whole",
    )  # fmt: skip

    mutates = True
    query = False

    def __init__(
        self,
        frame: Frame,
        buffers: Buffers,
        human: bool,
        answer: Answer,
        known: bool,
        finished: Callable[[FrameJob, Any, BaseException | None], None],
        profile: FrameProfile | None = None,
    ) -> None:
        self.frame = frame
        self._buffers: Buffers = buffers
        self.human = human
        self.answer = answer
        self.known = known
        self.whole = bool(frame.structure)
        self.received = time.perf_counter_ns()
        self.key = b""
        self.input_size = -1
        self.nodes = 0
        self.cpu_s = 0.0
        self.in_loop = False
        self.clock = Clock()
        self._finished = finished
        self.profile = profile

    def measure(self, runner: Runner) -> None:
        """Measure the inputs of the duration predictor. For the thread that owns the session."""
        session = runner.session
        self.key, self.nodes = key_of(self.frame), session.engine.account.nodes
        self.input_size = input_size_of(self.frame, sum(map(len, self._buffers)), session)

    def run(self, runner: Runner) -> FrameDone:
        """Apply the frame."""
        if self.input_size < 0:
            self.measure(runner)
        started, working = time.perf_counter_ns(), time.thread_time()
        # Free the buffers before the reply is published; the session does not keep them.
        buffers, self._buffers = self._buffers, []
        profile = self.profile
        asked = None if profile is None else profile.ask(self.frame)
        reply, out = runner.apply(self.frame, buffers, human=self.human, clock=self.clock)
        if profile is not None and asked is not None:
            profile.take(self.frame, asked, runner.session.ran, reply)
        self.cpu_s = time.thread_time() - working
        took = time.perf_counter_ns() - started
        if reply.timing is not None and not reply.timing.received:
            reply.timing.received = self.received
        waited = (started - self.received) * 1e-9
        session = runner.session
        return FrameDone(reply, out, Applied.of(session.ran, self.known, waited, took * 1e-9, session.planned))

    def done(self, result: FrameDone | None, failure: BaseException | None) -> None:
        """Report the outcome."""
        self._finished(self, result, failure)


def settle(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    """Complete a future with a job's outcome, unless it was cancelled."""
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
