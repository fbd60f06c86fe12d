"""Which frames are captured, and which are not since they would be in vain."""

from __future__ import annotations

from collections.abc import Callable

import gradwire as torch
from gradwire_engine.session import plan_cache as cache
from gradwire_engine.session.plan_cache import Plans
from tests.engine.recordings import new_session, record


def plans_of(program: Callable[[], None]) -> Plans:
    """The plans of a session that has answered a program."""
    session = new_session()
    session.plans = plans = Plans()
    record(program).replayed(session)
    return plans


def test_numbers_that_never_repeat_are_not_captured_for_ever():
    def program() -> None:
        x = torch.rand(3, requires_grad=True)
        for number in range(60):
            x.grad = None
            (x ** (2.5 + number)).sum().backward()
            x.grad.tolist()

    plans = plans_of(program)
    assert plans.statistics.captured <= 12


def test_a_graph_of_earlier_frames_that_never_repeats_is_not_captured():
    """The last frame of an episode has the same records each time, and goes through a graph of its own."""

    def program() -> None:
        x = torch.randn(3, requires_grad=True)
        for number in range(24):
            y = x
            for bit in range(5):
                y = y.tanh() if number >> bit & 1 else y.sin()
            y.tolist()
            x.grad = None
            y.sum().backward()
            x.grad.tolist()

    plans = plans_of(program)
    deep = [entry for entry in plans.entries.values() if entry.deep]
    assert deep
    assert not any(entry.plans for entry in deep)
    assert plans.statistics.reasons["first sight of the graph behind it"] >= 20


def test_what_comes_again_after_many_others_is_captured_at_the_third_time() -> None:
    """A program that runs twice as a whole does not pay for plans that nothing runs by."""
    sizes = range(2, cache.SOON + 8)

    def program(times: int):
        def run() -> None:
            for _ in range(times):
                for size in sizes:
                    (torch.ones(size) * 2).sum().item()

        return run

    counts = []
    for times in (2, 3, 4):
        plans = plans_of(program(times))
        counts.append((plans.statistics.captured, plans.statistics.hits))
    assert counts == [(0, 0), (len(sizes), 0), (len(sizes), len(sizes))]
