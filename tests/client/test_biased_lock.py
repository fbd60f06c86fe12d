"""The biased lock: a thread waits for the owner while it lives, and code that interrupts a record works.

Such code runs in the recording thread itself: a signal handler, or a destructor called by the garbage collector.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import gradwire as gw
from gradwire._core.context import biased_lock
from gradwire._core.context.biased_lock import NOBODY, BiasedLock
from gradwire._core.session import frame_builder


class Meddling(dict[int, int]):
    """The frame's table of external ids, where something else is recorded at every other look."""

    def __init__(self, meddle: Callable[[], Any]) -> None:
        self.meddle, self.inside, self.looked = meddle, False, 0
        self.made: list[Any] = []

    def get(self, number: int, default: Any = None) -> Any:
        self.looked += not self.inside
        if not self.inside and self.looked % 2:
            self.inside = True
            with gw.enable_grad():
                self.made.append(self.meddle())
            self.inside = False
        return super().get(number, default)


def test_a_busy_thread_is_waited_for_as_long_as_it_lives() -> None:
    lock = BiasedLock()
    began, ends = threading.Event(), threading.Event()

    def work() -> None:
        with lock:
            lock.hold()
        lock.busy = True
        began.set()
        ends.wait(30)
        lock.busy = False

    thread = threading.Thread(target=work)
    thread.start()
    began.wait(30)
    threading.Timer(1.5, ends.set).start()
    with lock:
        lock.hold()
        assert ends.is_set() and not lock.broken
    thread.join(30)


def test_a_thread_that_ended_while_busy_is_not_waited_for() -> None:
    lock = BiasedLock()

    def work() -> None:
        with lock:
            lock.hold()
        lock.busy = True

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    with lock:
        lock.hold()
    assert lock.broken and not lock.busy and lock.ready == NOBODY


def arithmetic(x: Any, w: Any) -> Any:
    return ((w * 2 + x).relu() @ w).sum()


def lists(x: Any, w: Any) -> Any:
    return gw.cat([x, w, x * 2]).sum() + gw.stack([w, x]).sum()


def uploads(x: Any, w: Any) -> Any:
    return (gw.tensor([[1.0, 2.0], [3.0, 4.0]]) * w).sum() + gw.full((2,), 3.0).sum()


def gradients(x: Any, w: Any) -> Any:
    leaf = w.detach().requires_grad_()
    leaf.grad = None
    (leaf * x).sum().backward()
    return leaf.grad.sum()


def writes(x: Any, w: Any) -> Any:
    h = w.clone()
    h.add_(x)
    h[0] *= 3
    return h.sum()


def modes(x: Any, w: Any) -> Any:
    with gw.no_grad():
        h = w * 3
    return h.sum() + (w * x).sum()


PROGRAMS = [arithmetic, lists, uploads, gradients, writes, modes]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("meddling", PROGRAMS)
def test_what_comes_in_between_is_recorded_too(alone: Any, program: Any, meddling: Any) -> None:
    x, w = gw.tensor([[1.0, 2.0], [3.0, 4.0]]), gw.tensor([[5.0, 6.0], [7.0, 8.0]])
    right, beside = program(x, w).item(), meddling(w, x).item()
    for _ in range(3):
        table = alone.builder.external = Meddling(lambda: meddling(w, x))
        found = program(x, w)
        made = table.made[:]
        assert found.item() == right
        assert made and [each.item() for each in made] == [beside] * len(made)


def test_a_slow_destructor_in_another_thread_disturbs_no_record(alone: Any) -> None:
    class Slow:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            time.sleep(0.3)

    x, found = gw.ones(4), {}

    def work(number: int) -> None:
        h = x * number
        for step in range(200):
            h = (h + 1) * 1
            if step == 100:
                Slow()
        found[number] = h.tolist()

    before = gc.get_threshold()
    gc.set_threshold(20, 2, 2)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        gc.set_threshold(*before)
    assert found == {n: [200.0 + n] * 4 for n in range(3)}


@pytest.mark.parametrize("enabled", [True, False])
def test_a_thread_goes_without_the_lock_only_if_threads_run_one_at_a_time(monkeypatch: Any, enabled: bool) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: enabled, raising=False)
    spec = importlib.util.spec_from_file_location("biased_lock_anew", biased_lock.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.ONE_THREAD_AT_A_TIME is enabled


def test_without_the_interpreters_lock_every_record_is_made_with_the_sessions(alone: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(frame_builder, "ONE_THREAD_AT_A_TIME", False)
    builder = alone.builder
    x, found, unlocked, append = gw.ones(4), {}, [], builder.append

    def noting(*args: Any) -> int:
        if not builder.lock._is_owned():
            unlocked.append(args)
        assert builder.lock.ready == builder.lock.joins == NOBODY
        return append(*args)

    monkeypatch.setattr(builder, "append", noting)

    def work(number: int) -> None:
        h, leaf = x * number, gw.ones(4, requires_grad=True)
        for step in range(100):
            h = (h + 1) * 1
            if step % 10 == 0:
                leaf.grad = None
                (leaf * 2).sum().backward()
        found[number] = h.tolist(), leaf.grad.tolist()

    recorded = builder.recorded
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {n: ([100.0 + n] * 4, [2.0] * 4) for n in range(4)}
    assert not unlocked and builder.recorded - recorded > 800
