"""Ranges on several threads: each is computed once, failures reach the caller, and nothing deadlocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from gradwire_engine.kernels.cpu import threads
from gradwire_engine.kernels.cpu.kernels.waiting import changed

SECOND_NS = 1_000_000_000
FOREVER_NS = 60 * SECOND_NS


@pytest.fixture(autouse=True, params=[0, 500_000], ids=["asleep", "awake"])
def several(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three threads, which sleep at once or look for more for a while."""
    monkeypatch.setattr(threads, "AWAKE_NS", request.param)
    monkeypatch.setattr(threads, "_crew", threads._Crew())
    threads.use_threads(3)
    yield
    threads.use_threads(0)


def add_one(out: Any, start: int, stop: int) -> None:
    out[start:stop] += 1


def split(kernel: Any, count: int, *arguments: Any) -> None:
    threads.split(kernel, count, 1, *arguments, worth=1)


@pytest.mark.parametrize("count", [1, 2, 11, 12, 13, 1000])
def test_each_range_is_done_once(count: int) -> None:
    out = np.zeros(count, np.int64)
    for _ in range(50):
        split(add_one, count, out)
    assert out.tolist() == [50] * count


def test_several_callers_share_the_threads() -> None:
    outs = [np.zeros(64, np.int64) for _ in range(4)]

    def call(out: Any) -> None:
        for _ in range(100):
            split(add_one, 64, out)

    callers = [threading.Thread(target=call, args=(out,)) for out in outs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive()
    assert all(out.tolist() == [100] * 64 for out in outs)


def test_the_caller_begins_with_the_first_range_and_others_with_the_last() -> None:
    taken: dict[int, list[int]] = {}
    all_here = threading.Barrier(3)

    def note(start: int, stop: int) -> None:
        mine = taken.setdefault(threading.get_ident(), [])
        mine.append(start)
        if len(mine) == 1:
            all_here.wait(240)

    split(note, 12)
    mine = taken.pop(threading.get_ident())
    others = list(taken.values())
    assert mine[0] == 0
    assert sorted(each[0] for each in others) == [10, 11]
    assert sorted(sum(others, mine)) == list(range(12))


@pytest.mark.parametrize("at", [0, 5, 11])
def test_a_range_that_fails_is_told_and_the_threads_go_on(at: int) -> None:
    def fail(start: int, stop: int) -> None:
        if start <= at < stop:
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        split(fail, 12)
    out = np.zeros(100, np.int64)
    split(add_one, 100, out)
    assert out.sum() == 100


def test_a_change_is_seen_while_it_is_waited_for() -> None:
    board, done = np.zeros(1, np.int64), np.zeros(1, np.int64)
    seen: list[bool] = []
    waiting = threading.Thread(target=lambda: seen.append(changed(board, 0, FOREVER_NS, 0, done)))
    waiting.start()
    until = time.monotonic() + 120
    while not done[0]:  # it is told from where the interpreter is free
        assert time.monotonic() < until
    board[0] = 1
    waiting.join(240)
    assert seen == [True]


def test_what_does_not_change_is_not_waited_for_longer_than_that() -> None:
    assert changed(np.ones(1, np.int64), 0, 0)
    assert not changed(np.zeros(1, np.int64), 0, 1000)
