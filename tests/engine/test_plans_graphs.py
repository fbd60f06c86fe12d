"""Plans over emulated GPU kernels, with runs of launches as graphs."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

import gradwire as torch
from gradwire_engine.autograd.registry import row
from gradwire_engine.session.plan_cache import Plans
from tests.cuda_emulation import AVAILABLE
from tests.cuda_emulation.capturing import CapturingBackend
from tests.engine.recordings import little_to_collect, record
from tests.engine.test_plans import OFTEN, PROGRAMS, normalized, perceptron, random_program, seeded
from tests.engine.test_plans_device import applied, same

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="there is no g++")


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    with little_to_collect():
        yield


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_graphs_give_the_bits_of_the_tape(program):
    plans = same(record(seeded(program)), CapturingBackend, hits=0)
    outcomes = Counter[str]()
    for each in plans.describe()["graphs"].values():
        outcomes.update(each)
    told = {reason for reason in outcomes if not reason.startswith("not to be captured")}
    assert told <= {"first sight", "captured", "graph", "guard", "what it writes to has moved", "a result is an input"}
    if program in (perceptron, normalized):
        assert outcomes["graph"] >= OFTEN - 6


@pytest.mark.filterwarnings("ignore:backward.create_graph=True")
@pytest.mark.parametrize("seed", range(12))
def test_graphs_of_a_random_program_give_the_bits_of_the_tape(seed):
    same(record(random_program(seed)), CapturingBackend, hits=0)


def test_a_run_is_parted_at_what_cannot_be_captured(monkeypatch):
    """A kernel in the middle of a step waits, and a number differs in each step."""
    kernel = row("cumsum").kernel

    def waits(xp, x, *arguments):
        float(x.sum())
        return kernel(xp, x, *arguments)

    monkeypatch.setattr(row("cumsum"), "kernel", waits)

    def program():
        x, w = torch.randn(5, 4), torch.randn(4, requires_grad=True)
        for turn in range(4 * OFTEN):
            y = (x * w).tanh()
            y = torch.cumsum(y * 2.0 + 1.0, 0) * (1.0 + turn)
            y.cos().sin().sum().backward()
            w.grad.sum().item()
            w.grad = None

    plans = Plans()
    made = record(program)
    assert applied(made, CapturingBackend, plans)[0] == applied(made, CapturingBackend, None)[0]
    (outcomes,) = plans.describe()["graphs"].values()
    assert plans.refused == {"cumsum"}
    assert outcomes["graph"] >= 2 * OFTEN, outcomes


def test_graphs_go_with_their_plan():
    plans = Plans()
    _, session = applied(record(seeded(perceptron)), CapturingBackend, plans)
    found = session.engine.backends["cpu"].graphs
    assert found.held > 0
    session.ids.clear()
    plans.entries.clear()
    gc.collect()
    assert found.held == 0


def test_memory_is_made_room_in_by_letting_go_of_graphs():
    plans = Plans()
    made = record(seeded(perceptron))
    _, session = applied(made, CapturingBackend, plans)
    found = session.engine.backends["cpu"].graphs
    session.ids.clear()
    gc.collect()
    found.trim()
    assert found.held == 0
