"""The profile of a step shows where its time goes, on both sides."""

from __future__ import annotations

import threading
import time

from benchmarks.profile import main
from benchmarks.sampling import Alarm, Sampler


def test_a_step_is_taken_apart_and_sampled(capsys) -> None:
    main("chain", seconds=0.3)
    told = capsys.readouterr().out
    for part in (
        "recording and sending",
        "the frame is applied",
        "server: by kernel",
        "client: by room",
        "matmul: 64x64, 64x64",
    ):
        assert part in told


def busy(until: threading.Event) -> None:
    while not until.is_set():
        sum(range(100))


def idle(until: threading.Event) -> None:
    until.wait()


def test_a_sampler_sees_threads_that_work_and_none_that_wait() -> None:
    over = threading.Event()
    threads = [threading.Thread(target=work, args=(over,)) for work in (busy, idle)]
    sampler = Sampler()
    sampler.start()
    for thread in threads:
        thread.start()
    until = time.monotonic() + 120
    while not any("busy" in place for stack in list(sampler.stacks) for place in stack) and time.monotonic() < until:
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    assert sampler.stop() > 0
    functions = {place[1] for stack in sampler.stacks for place in stack}
    assert "busy" in functions
    assert "idle" not in functions


def test_an_alarm_sees_the_main_thread() -> None:
    alarm = Alarm()
    alarm.start()
    until = time.monotonic() + 120
    while not alarm.stacks and time.monotonic() < until:
        sum(range(1000))
    assert alarm.stop() > 0
    assert any(place[1] == "test_an_alarm_sees_the_main_thread" for stack in alarm.stacks for place in stack)
