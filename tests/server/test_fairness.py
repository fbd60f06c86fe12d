"""As many sessions as cores compute at once; waiting sessions run in order and are never blocked for long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gradwire_protocol.frames import Frame, Reply
from gradwire_server.hosting.compute_semaphore import ComputeSemaphore, ComputeTurn
from gradwire_server.hosting.inline_host import InlineHost
from gradwire_server.http.shortcut_frames import ShortcutFrame
from gradwire_server.observability.metrics import Metrics
from tests.server.story import CLIENT, spec

WITHIN_S = 120
NEVER_S = 1e9


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.001)


class Crowd:
    """Threads that come to a semaphore one after another, and stay until they are told to leave."""

    def __init__(self, semaphore: ComputeSemaphore) -> None:
        self.semaphore = semaphore
        self.passed: list[str] = []
        self._stay: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []

    def come(self, name: str) -> None:
        """Send a thread; returns when it has passed or waits."""
        self._stay[name] = threading.Event()
        thread = threading.Thread(target=self._visit, args=(name,), daemon=True)
        self._threads.append(thread)
        thread.start()
        until(lambda: len(self.passed) + self.semaphore.waiting == len(self._threads))

    def _visit(self, name: str) -> None:
        with self.semaphore.turn():
            self.passed.append(name)
            assert self._stay[name].wait(WITHIN_S)

    def go(self, *names: str) -> None:
        for name in names:
            self._stay[name].set()

    def end(self) -> None:
        self.go(*self._stay)
        for thread in self._threads:
            thread.join(WITHIN_S)


# The semaphore


def test_who_waits_comes_in_order_of_arrival() -> None:
    crowd = Crowd(ComputeSemaphore(2, NEVER_S))
    for name in "abcdef":
        crowd.come(name)
    assert crowd.passed == ["a", "b"]
    for number, name in enumerate("bacd", 3):
        crowd.go(name)
        until(lambda: len(crowd.passed) == number)  # noqa: B023
        assert crowd.semaphore.running == 2
    assert "".join(crowd.passed[2:]) == "cdef"
    crowd.end()
    assert (crowd.semaphore.running, crowd.semaphore.waiting) == (0, 0)


def test_whoever_takes_long_is_no_longer_counted() -> None:
    now = [0.0]
    crowd = Crowd(ComputeSemaphore(2, NEVER_S, lambda: now[0]))
    for name in "abcde":
        crowd.come(name)
    now[0] = NEVER_S - 1
    assert crowd.semaphore.expire_turns(), "three of them wait still"
    assert crowd.passed == ["a", "b"]
    now[0] = NEVER_S
    assert crowd.semaphore.expire_turns(), "one waits still"
    until(lambda: len(crowd.passed) == 4)
    assert sorted(crowd.passed[2:]) == ["c", "d"]
    crowd.go("c")
    until(lambda: crowd.passed[4:] == ["e"])
    crowd.go("a", "b")  # they had no place any more that they could give to somebody
    crowd.come("f")
    assert crowd.passed[5:] == []
    crowd.go("d")
    until(lambda: crowd.passed[5:] == ["f"])
    crowd.end()
    assert (crowd.semaphore.running, crowd.semaphore.waiting) == (0, 0)


def test_time_is_watched_without_anybody_asking() -> None:
    crowd = Crowd(ComputeSemaphore(1, 0.001))
    for name in "abc":
        crowd.come(name)
    until(lambda: len(crowd.passed) == 3)
    assert crowd.passed[0] == "a" and sorted(crowd.passed) == ["a", "b", "c"], "c may run before b"
    crowd.end()


def test_a_turn_is_given_back_after_an_error() -> None:
    semaphore = ComputeSemaphore(1, NEVER_S)
    with pytest.raises(ZeroDivisionError), semaphore.turn():
        raise ZeroDivisionError
    assert semaphore.running == 0


# Hosts


def frame(seq: int) -> Frame:
    builder = ShortcutFrame(CLIENT, (CLIENT << 32) + 10 * seq)
    builder.record("randn", (4,))
    made = builder.build(False).frame
    made.seq = seq
    return made


@asynccontextmanager
async def hosts(count: int, semaphore: ComputeSemaphore) -> AsyncIterator[list[InlineHost]]:
    made = [InlineHost(f"s_{i}", Metrics(), None, semaphore) for i in range(count)]
    try:
        for host in made:
            await host.open(spec("none"))
            await host.join(0)
        yield made
    finally:
        for host in made:
            await host.close()


async def answered(host: InlineHost, seq: int) -> Reply:
    reply, _ = await asyncio.wait_for(host.apply(frame(seq), []), WITHIN_S)
    return reply


class Giant:
    """Makes every frame of a host take until it is let go."""

    def __init__(self, host: InlineHost, monkeypatch: Any) -> None:
        runner = host._thread.runner
        assert runner is not None
        self.reached = threading.Event()
        self.over = threading.Event()
        apply = runner.apply

        def held(*arguments: Any, **more: Any) -> Any:
            self.reached.set()
            assert self.over.wait(WITHIN_S)
            return apply(*arguments, **more)

        monkeypatch.setattr(runner, "apply", held)


async def test_neighbours_are_answered_while_giant_ops_run(monkeypatch: Any) -> None:
    async with hosts(5, ComputeSemaphore(2)) as made:
        giants = [Giant(host, monkeypatch) for host in made[:2]]
        waiting = [asyncio.ensure_future(answered(host, 1)) for host in made[:2]]
        for giant in giants:
            assert await asyncio.to_thread(giant.reached.wait, WITHIN_S)
        for seq in range(1, 21):
            replies = await asyncio.gather(*(answered(host, seq) for host in made[2:]))
            assert [reply.seq for reply in replies] == [seq] * 3
        assert not any(each.done() for each in waiting)
        for giant in giants:
            giant.over.set()
        assert [reply.seq for reply in await asyncio.gather(*waiting)] == [1, 1]


async def test_a_host_computes_only_in_its_turn() -> None:
    semaphore = ComputeSemaphore(1, NEVER_S)
    async with hosts(1, semaphore) as (host,):
        with semaphore.turn():
            waiting = asyncio.ensure_future(answered(host, 1))
            await asyncio.to_thread(until, lambda: semaphore.waiting == 1)
            assert not waiting.done()
        assert (await waiting).seq == 1
        await asyncio.to_thread(until, lambda: semaphore.running == 0)  # it is answered in its turn


async def test_a_host_gives_its_turn_back_when_the_engine_fails(monkeypatch: Any) -> None:
    semaphore = ComputeSemaphore(1, NEVER_S)
    async with hosts(2, semaphore) as (host, other):

        def fail(*arguments: Any, **more: Any) -> Any:
            raise RuntimeError("broken on purpose")

        assert host._thread.runner is not None
        monkeypatch.setattr(host._thread.runner, "apply", fail)
        refused = (await answered(host, 1)).refused
        assert refused is not None
        assert refused.code == "internal"
        assert (await answered(other, 1)).refused is None


async def test_a_closed_session_leaves_no_turn_behind() -> None:
    semaphore = ComputeSemaphore(1, NEVER_S)
    async with hosts(2, semaphore) as (host, other):
        with semaphore.turn():
            waiting = asyncio.ensure_future(answered(host, 1))
            await asyncio.to_thread(until, lambda: semaphore.waiting == 1)
            closing = asyncio.ensure_future(host.close())
            await asyncio.sleep(0)
        assert (await waiting).refused is not None
        assert await closing
        assert (await answered(other, 1)).refused is None
        await asyncio.to_thread(until, lambda: (semaphore.running, semaphore.waiting) == (0, 0))


def test_a_turn_that_was_never_counted_frees_no_place() -> None:
    semaphore = ComputeSemaphore(1, NEVER_S)
    mine = semaphore.enter()
    semaphore.leave(ComputeTurn(0.0))
    assert semaphore.running == 1
    semaphore.leave(mine)
    assert semaphore.running == 0
