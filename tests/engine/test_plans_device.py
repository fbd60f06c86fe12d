"""Plans on other arrays than NumPy's: the stand-in for CuPy, and GPU kernels emulated on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

import gradwire as torch
from gradwire_engine.runtime.backends import Backends
from gradwire_engine.session.plan_cache import Plans
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import take
from tests.cuda_emulation import AVAILABLE, EmulatedBackend, Kernel
from tests.engine import recordings
from tests.engine.recordings import SEED, Recording, little_to_collect, record
from tests.engine.test_plans import OFTEN, PROGRAMS, attention, random_program, repeated, seeded
from tests.strict_backend import StrictBackend


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    with little_to_collect():
        yield


def applied(made: Recording, backend, plans: Plans | None) -> tuple[list[bytes], Session]:
    """The answers of a session with these plans on this backend, and the session."""
    session = Session(seed=SEED, backends=Backends(cpu=backend()))
    session.plans = plans
    return made.replayed(session), session


def same(made: Recording, backend, hits: int) -> Plans:
    """Plans and tape give the same answers on this backend, and leave the same session, to the last bit."""
    tape, plain = applied(made, backend, None)
    plans = Plans()
    by_plans, session = applied(made, backend, plans)
    assert by_plans == tape
    expected, found = take(plain), take(session)
    assert found.facts == expected.facts
    assert all(np.array_equal(found.arrays[name], array) for name, array in expected.arrays.items())
    assert plans.statistics.hits >= hits, plans.describe()
    return plans


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_loop_on_a_device_runs_by_plans_as_it_does_on_the_tape(program):
    plans = same(record(seeded(program)), StrictBackend, hits=OFTEN - 3)
    unplannable = {reason for reason in plans.statistics.reasons if reason.startswith("unplannable")}
    assert unplannable <= {"unplannable: op manual_seed"}


@pytest.mark.filterwarnings("ignore:backward.create_graph=True")
@pytest.mark.parametrize("seed", range(8))
def test_a_random_program_on_a_device_runs_by_plans_as_it_does_on_the_tape(seed):
    same(record(random_program(seed)), StrictBackend, hits=0)


@pytest.mark.skipif(not AVAILABLE, reason="there is no g++")
def test_what_a_plan_replays_are_the_gpu_s_own_kernels():
    made = record(seeded(attention))
    before = Kernel.launches
    same(made, EmulatedBackend, hits=OFTEN - 3)
    assert Kernel.launches > before


# Two devices


class Device(StrictBackend):
    device = "cuda:0"


def two_devices() -> Session:
    """A session with NumPy and, as ``cuda:0``, strict arrays."""
    backends = Backends()
    backends["cuda:0"] = Device()
    return Session(seed=SEED, backends=backends)


def on_two_devices(monkeypatch, program, hits: int) -> dict[str, int]:
    """Reasons why frames of this program, which may use ``cuda:0``, were not run by plans; answers are the same."""
    monkeypatch.setattr(recordings, "new_session", two_devices)

    def run() -> None:
        torch.current_session().link.devices = ["cpu", "cuda:0"]
        program()

    made = record(run)
    plain, planned = two_devices(), two_devices()
    plain.plans, planned.plans = None, Plans()
    assert made.replayed(planned) == made.replayed(plain)
    found = planned.plans.describe()
    assert found["hits"] >= hits, found
    return found["reasons"]


def test_a_number_in_host_memory_is_brought_along(monkeypatch):
    def program() -> None:
        x, weight = torch.randn(8, 4, device="cuda:0"), torch.randn(3, 4, device="cuda:0", requires_grad=True)
        scale = torch.tensor(0.5)
        optimizer = torch.optim.SGD([weight], lr=0.1)

        def step(number: int) -> None:
            scale.fill_(number)
            scale.item()
            optimizer.zero_grad()
            loss = ((x @ weight.t()) * scale).tanh().t().reshape(-1)[3:].square().mean()
            loss.backward()
            optimizer.step()
            loss.item()

        repeated(step)()
        weight.cpu().tolist()

    on_two_devices(monkeypatch, program, hits=OFTEN - 2)


def test_a_frame_that_computes_on_two_devices_stays_on_the_tape(monkeypatch):
    def program() -> None:
        here, there = torch.randn(4), torch.randn(4, device="cuda:0")

        def step(_: int) -> None:
            mine, other = here * 2, there * 3
            other.tolist()
            mine.tolist()

        repeated(step)()

    reasons = on_two_devices(monkeypatch, program, hits=0)
    assert any("two devices" in reason for reason in reasons), reasons


def test_the_precision_of_products_is_guarded():
    """A plan that was made with one precision does not hold for the other."""

    def program() -> None:
        x = torch.randn(4, 4)
        for _ in range(4):
            (x @ x).tolist()
        torch.set_float32_matmul_precision("high")
        for _ in range(4):
            (x @ x).tolist()
        torch.set_float32_matmul_precision("highest")

    plans = same(record(program), StrictBackend, hits=3)
    assert plans.statistics.reasons["guard: default dtype or kernels"] >= 1
