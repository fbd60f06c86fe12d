"""Numeric libraries share the processors among computing sessions; sessions with a journal stay exact."""

from __future__ import annotations

from typing import Any

import pytest

from gradwire_server.hosting.compute_semaphore import ALONE_S, RECENT_S, ComputeSemaphore
from gradwire_server.hosting.threads import Threads, default_threads
from gradwire_server.settings.settings import Settings
from gradwire_server.workers import worker_sessions
from gradwire_server.workers.pool import BUSY_CALLS, Worker
from gradwire_server.workers.wire import HostCall
from gradwire_server.workers.worker_sessions import WorkerSessions


class Blas:
    """A library that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def set_num_threads(self, num_threads: int) -> None:
        self.told.append(num_threads)


class Machine:
    """Threads of a process with this many, and what its libraries and kernels take."""

    def __init__(self, most: int) -> None:
        self.blas = Blas()
        self.kernels: list[int] = []
        self.threads = Threads(lambda: [self.blas], self.kernels.append)
        self.threads.configure(most)

    @property
    def taken(self) -> tuple[int, int]:
        return self.blas.told[-1], self.kernels[-1]


def test_sessions_that_compute_at_once_share_the_threads() -> None:
    machine = Machine(8)
    assert machine.taken == (8, 8)
    for busy, share in ((2, 4), (3, 2), (8, 1), (20, 1), (1, 8)):
        machine.threads.set_busy_sessions(busy)
        assert machine.taken == (share, share)


def test_processes_that_compute_at_once_share_them_too() -> None:
    machine = Machine(8)
    machine.threads.set_processes(2)
    assert machine.taken == (4, 4)
    machine.threads.set_busy_sessions(2)
    assert machine.taken == (2, 2)
    machine.threads.set_processes(1)
    assert machine.taken == (4, 4)


def test_products_of_a_session_with_a_journal_take_the_same_number_whoever_computes() -> None:
    machine = Machine(8)
    machine.threads.set_busy_sessions(2)
    with machine.threads.fixed(True):
        assert machine.taken == (8, 4), "kernels give the same bits on any number"
        machine.threads.set_busy_sessions(4)
        assert machine.taken == (8, 2)
        with machine.threads.fixed(True):
            pass
        assert machine.taken == (8, 2), "one of two is open still"
    assert machine.taken == (2, 2)


def test_a_session_without_a_journal_needs_nothing_exact() -> None:
    machine = Machine(8)
    with machine.threads.fixed(False):
        machine.threads.set_busy_sessions(2)
        assert machine.taken == (4, 4)


def test_a_worker_keeps_threads_for_its_neighbours_where_the_number_may_not_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "6")
    blas = Blas()
    threads = Threads(lambda: [blas], lambda most: None)
    threads.configure(0, among=2)
    assert blas.told == [], "the libraries' own default is left alone"
    with threads.fixed(True):
        assert blas.told == [3]
    assert blas.told == [3, 6]


def test_a_number_that_is_set_is_taken_by_workers_as_well() -> None:
    blas = Blas()
    threads = Threads(lambda: [blas], lambda most: None)
    threads.configure(5, among=2)
    with threads.fixed(True):
        assert blas.told == [5]


def test_the_default_is_what_the_environment_tells_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert default_threads() >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert default_threads() == 3
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "many")
    assert default_threads() == 3


# Workers


async def test_a_worker_is_told_once_how_many_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    worker = Worker(Settings(api_keys=("k",)), lambda worker, death: None)
    monkeypatch.setattr(worker._wire, "send", lambda message, buffers=(): sent.append(message))
    for workers in (1, 2, 2, 1):
        worker.set_busy_workers(workers)
    assert [message.workers for message in sent] == [2, 1]
    told: list[int] = []
    monkeypatch.setattr(worker_sessions.THREADS, "set_processes", told.append)
    for message in sent:
        WorkerSessions(lambda most: None).on_message(message, [])
    assert told == [2, 1]


async def test_a_worker_that_is_given_little_does_not_count_as_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(Settings(api_keys=("k",)), lambda worker, death: None)
    monkeypatch.setattr(worker._wire, "send", lambda message, buffers=(): None)
    for calls, busy in ((0, False), (BUSY_CALLS, False), (BUSY_CALLS + 1, True), (0, False)):
        for _ in range(calls):
            worker.call(lambda call: HostCall(call, "s", "describe", []), lambda message, buffers: None)
        assert worker.was_busy() is busy


# Who computes at once


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_turnstile_tells_how_many_have_come_lately() -> None:
    clock, told = Clock(), list[int]()
    semaphore = ComputeSemaphore(4, clock=clock, on_busy=told.append)

    def come(*names: str) -> None:
        for name in names:
            semaphore.leave(semaphore.enter(name))

    come("a", "a", "a")
    assert told == []
    come("b")
    assert told == [2]
    come("c", "a", "b", "c")
    assert told == [2, 3]
    clock.now += RECENT_S / 2
    come("a", "b")
    clock.now += RECENT_S * 0.75
    come("b")
    assert told == [2, 3, 2]
    clock.now += RECENT_S * 2
    come("b")
    assert told == [2, 3, 2, 1]


def test_one_who_came_long_ago_is_no_company() -> None:
    clock, told = Clock(), list[int]()
    semaphore = ComputeSemaphore(4, clock=clock, on_busy=told.append)
    semaphore.leave(semaphore.enter("a"))
    clock.now += 2 * RECENT_S
    semaphore.leave(semaphore.enter("b"))
    assert told == []


def test_only_who_is_alone_for_a_while_gets_a_turn_at_once() -> None:
    clock = Clock()
    semaphore = ComputeSemaphore(4, clock=clock)
    assert semaphore.enter_alone("a") is None, "nobody knows yet whether it is"
    clock.now += ALONE_S
    mine = semaphore.enter_alone("a")
    assert mine is not None
    assert semaphore.running == 1
    semaphore.leave(mine)
    semaphore.leave(semaphore.enter("b"))
    assert semaphore.enter_alone("a") is None
    clock.now += ALONE_S
    theirs = semaphore.enter("a")
    assert semaphore.enter_alone("a") is None, "somebody computes"
    semaphore.leave(theirs)
    assert semaphore.enter_alone("a") is not None
