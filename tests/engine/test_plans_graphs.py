"""Plans over emulated GPU kernels, with runs of launches as graphs."""

from __future__ import annotations

import gc

import pytest

from gradwire_engine.runtime.cuda import graphs
from gradwire_engine.session.plan_cache import Plans
from tests.cuda_emulation import AVAILABLE
from tests.cuda_emulation.capturing import CapturingBackend
from tests.engine.recordings import little_to_collect, record
from tests.engine.test_plans import OFTEN, normalized, perceptron, seeded
from tests.engine.test_plans_device import applied, same

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="there is no g++")


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    with little_to_collect():
        yield


@pytest.fixture(autouse=True)
def addresses_of_numpy(monkeypatch):
    """NumPy's memory is aligned now so, now so; kernels of the emulation do not care."""
    monkeypatch.setattr(graphs, "ALIGNMENT", 1)


@pytest.mark.parametrize("program", [perceptron, normalized], ids=lambda each: each.__name__)
def test_graphs_give_the_bits_of_the_tape(program):
    plans = same(record(seeded(program)), CapturingBackend, hits=OFTEN - 3)
    (outcomes,) = plans.describe()["graphs"].values()
    assert outcomes["captured"] >= 1
    assert set(outcomes) <= {"first sight", "captured", "graph", "guard", "all results are held"}


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
