"""Ranges on several threads: each part is computed once, failures reach the caller, and nothing deadlocks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from gradwire_engine.kernels.cpu import ranges, threads
from gradwire_engine.kernels.cpu.kernels.serving import dismiss, new_board, serve
from gradwire_engine.kernels.cpu.native import Count, Flag, Int1, IntOut1, native


@pytest.fixture(autouse=True, params=[0, 500_000], ids=["asleep", "awake"])
def several(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three threads, of which the others sleep at once or look for more for a while."""
    monkeypatch.setattr(threads, "AWAKE_NS", request.param)
    crew = threads._Crew(threads.BoardFunctions(new_board, serve, dismiss))
    monkeypatch.setattr(threads, "_crew", crew)
    threads.use_threads(3)
    yield
    threads.use_threads(0)
    dismiss(crew.board)


@native()
def add_one(out: IntOut1, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        out[i] += 1


@native()
def meet(arrived: IntOut1, parts: Count, taken: IntOut1, start: Count, stop: Count) -> None:
    """Notes in which order the parts were begun; each waits a while for others, so that several threads take part."""
    for i in range(start, stop):
        taken[i] = arrived[0]
        arrived[0] += 1
        x = 1.0
        for _ in range(3_000_000):
            x = x * 0.999999 + 1e-9
        if x < 0:
            taken[i] = -1


@native()
def allocate(sizes: Int1, fails: Flag, out: IntOut1, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        room = np.empty(sizes[i] if fails else 1, np.int64)
        room[0] = i
        out[i] = room[0]


def split(kernel: Any, count: int, *arguments: Any) -> None:
    threads.split(kernel, count, threads.WORTH, *arguments)


@pytest.mark.parametrize("count", [1, 2, 11, 12, 13, 1000])
def test_each_range_is_done_once(count: int) -> None:
    out = np.zeros(count, np.int64)
    for _ in range(50):
        split(add_one, count, out)
    assert out.tolist() == [50] * count


def test_what_is_too_little_is_not_cut() -> None:
    ranges = []
    threads.split(lambda start, stop: ranges.append((start, stop)), 1000, 10)
    assert ranges == [(0, 1000)]


def test_several_callers_share_the_threads() -> None:
    """More callers than the board has slots: who finds none works alone."""
    outs = [np.zeros(64, np.int64) for _ in range(ranges.SLOTS + 3)]

    def call(out: Any) -> None:
        for _ in range(100):
            split(add_one, 64, out)

    callers = [threading.Thread(target=call, args=(out,)) for out in outs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(240)
        assert not caller.is_alive()
    assert all(out.tolist() == [100] * 64 for out in outs)


def test_the_caller_begins_with_the_first_part() -> None:
    arrived, taken = np.zeros(1, np.int64), np.full(12, -1, np.int64)
    split(meet, 12, arrived, 12, taken)
    assert (taken >= 0).all()
    assert taken[0] <= 2


def test_a_part_without_memory_is_told_and_the_threads_go_on() -> None:
    sizes = np.ones(12, np.int64)
    sizes[7] = 1 << 58
    out = np.zeros(12, np.int64)
    with pytest.raises(MemoryError):
        split(allocate, 12, sizes, True, out)
    split(allocate, 12, sizes, False, out)
    assert out.tolist() == list(range(12))


def test_no_thread_beside_the_caller_is_needed() -> None:
    board = new_board()  # which nobody serves
    out = np.zeros(100, np.int64)
    assert not add_one.by_threads(board, 100, 7, 3, True, out)
    assert out.tolist() == [1] * 100


def test_a_thread_that_sleeps_is_woken() -> None:
    out = np.zeros(64, np.int64)
    for _ in range(3):
        split(add_one, 64, out)
        time.sleep(0.01)
    assert out.tolist() == [3] * 64


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    out = np.zeros(64, np.int64)
    split(add_one, 64, out)
    child = os.fork()
    if not child:
        split(add_one, 64, out)
        os._exit(0 if out.tolist() == [2] * 64 else 1)
    assert os.waitpid(child, 0)[1] == 0
