"""The event loop polls for messages that usually come soon, and only for those."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gradwire_protocol import awake
from gradwire_server.hosting import busy_poll
from gradwire_server.hosting.busy_poll import BusyPoll
from gradwire_server.hosting.compute_semaphore import ComputeSemaphore
from gradwire_server.hosting.inline_host import InlineHost
from gradwire_server.observability.metrics import Metrics
from tests.server.story import spec
from tests.server.test_duration_predictor import frame


class Loop:
    """An event loop by hand: what shall be called, and a clock.

    Attributes:
        now: seconds.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[Callable[[], None]] = []

    def call_soon(self, function: Callable[[], None]) -> None:
        self.due.append(function)

    def turn(self) -> None:
        due, self.due = self.due, []
        for function in due:
            function()


class Scene:
    """A busy poll of 1 s, whose client usually takes ``usual`` seconds."""

    def __init__(self, usual: float | None = 0.5, limit_s: float = 1.0) -> None:
        self.loop = Loop()
        self.busy = False
        loop: Any = self.loop
        self.poll = BusyPoll(loop, limit_s, lambda: self.busy, clock=lambda: self.loop.now)
        if usual is not None:
            self.hear(usual)
            self.loop.turn()

    def hear(self, after: float) -> None:
        """A message comes so long after the answer to the one before it."""
        self.poll.start_waiting()
        self.loop.now += after
        self.poll.stop_waiting()

    @property
    def awake(self) -> bool:
        return bool(self.loop.due)


@pytest.fixture(autouse=True)
def several_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_poll, "usable_cores", lambda: 2)


def test_it_looks_for_what_usually_comes_soon() -> None:
    scene = Scene()
    scene.poll.start_waiting()
    for _ in range(3):
        assert scene.awake
        scene.loop.turn()
    scene.loop.now += 1.0
    scene.loop.turn()
    assert not scene.awake


@pytest.mark.parametrize("usual", [None, 1.0])
def test_it_sleeps_for_what_takes_longer_or_nobody_knows(usual: float | None) -> None:
    scene = Scene(usual)
    scene.poll.start_waiting()
    assert not scene.awake


def test_it_looks_no_more_when_the_message_is_there() -> None:
    scene = Scene()
    scene.poll.start_waiting()
    scene.poll.stop_waiting()
    scene.loop.turn()
    assert not scene.awake


def test_it_looks_once_however_often_it_was_answered() -> None:
    scene = Scene()
    for _ in range(3):
        scene.hear(0.1)
    scene.poll.start_waiting()
    assert len(scene.loop.due) == 1


def test_whoever_computes_in_another_thread_has_the_interpreter() -> None:
    scene = Scene()
    scene.poll.start_waiting()
    scene.busy = True
    scene.loop.turn()
    assert not scene.awake


async def test_a_host_that_has_answered_everything_waits_awake_until_the_next_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(awake, "TAKEN_S", 60.0)
    host = InlineHost("s_awake", Metrics(), None, ComputeSemaphore(2), spin_s=60.0)
    await host.open(spec("none"), None)
    await host.join(0)
    try:
        for seq in range(1, 4):
            answered = asyncio.Event()
            host.submit(frame(seq), [], False, lambda reply, out, told=answered: told.set())
            assert not host._busy_poll.waiting, "somebody waits for an answer"
            await asyncio.wait_for(answered.wait(), 120)
            await asyncio.sleep(0)
            assert host._busy_poll.waiting
        assert host._busy_poll.polling
    finally:
        host._busy_poll.stop_waiting()
        await host.close()
