"""Plans on a real GPU: the same answers and session as on the tape, to the last bit.

This part also needs the client, which records the programs, and pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from gradwire_engine.runtime.backends import Backends, CupyBackend, DevicePool
from gradwire_engine.session.plan_cache import Plans
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import take

if TYPE_CHECKING:
    from tests.engine.recordings import Recording

NEEDED = ("gradwire", "pytest", "httpx")
LIMIT = 4 << 30
MOST_STEPS = 20
"""Steps of one round, and with them of a recording."""


def missing() -> str:
    """What is not there of what recording needs; empty where all is."""
    return ", ".join(name for name in NEEDED if find_spec(name) is None)


def session_on(device: str, plans: Plans | None) -> Session:
    """A session whose tensors all lie on this device, so that what was recorded for a CPU computes there."""
    from tests.engine.recordings import SEED

    backends = Backends()
    if device != "cpu":
        backend = CupyBackend(int(device.partition(":")[2]), DevicePool(LIMIT))
        backend.device = "cpu"
        backends = Backends(cpu=backend)
    session = Session(seed=SEED, backends=backends)
    session.plans = plans
    return session


def checks(device: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(label, check) of all programs."""
    from tests.engine.test_plans import PROGRAMS

    for program in PROGRAMS:
        yield f"plans: {program.__name__}", lambda program=program: _same(device, program)


def _same(device: str, program: Any) -> None:
    from tests.engine.recordings import record
    from tests.engine.test_plans import OFTEN, seeded

    made, plans = record(seeded(program)), Plans()
    tape, planned = session_on(device, None), session_on(device, plans)
    assert made.replayed(planned) == made.replayed(tape), "an answer differs"
    expected, found = take(tape), take(planned)
    assert found.facts == expected.facts, "the sessions differ"
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array, err_msg=name)
    assert plans.statistics.hits >= OFTEN - 3, f"plans did not run: {plans.describe()}"
    print(f"  {program.__name__}: {plans.describe()['graphs']}")


def steps(device: str, program: Callable[[Callable[[], None]], None]) -> tuple[Callable[[], None], Plans]:
    """The steps of a program as work, one at each call, and the plans that run them.

    Args:
        program: is given a function to call after each step; a step ends with a read.
    """
    from tests.engine.recordings import recording

    with recording() as (made, _):
        marks: list[int] = []
        program(lambda: marks.append(len(made.messages)))
    plans = Plans()
    session = session_on(device, plans)
    at = _applied(session, made, 0, marks[0])
    left = iter(marks[1:])

    def step() -> None:
        nonlocal at
        at = _applied(session, made, at, next(left))

    return step, plans


def _applied(session: Session, made: Recording, begin: int, end: int) -> int:
    for message in made.messages[begin:end]:
        made.apply_to(session, message)
    return end


def mlp(stepped: Callable[[], None]) -> None:
    """The classifier of the benchmarks, as a program of the client."""
    import gradwire as torch

    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    x, y = torch.randn(128, 784), torch.arange(128) % 10
    _train(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.nn.functional.cross_entropy, x, y, stepped)


def gpt(stepped: Callable[[], None]) -> None:
    """A block of a transformer, as a program of the client."""
    import gradwire as torch

    block = torch.nn.TransformerEncoderLayer(
        128, 4, 512, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    x = torch.randn(8, 64, 128)
    optimizer = torch.optim.AdamW(block.parameters(), lr=1e-3)
    _train(block, optimizer, lambda out, _: (out * out).mean(), x, None, stepped)


def _train(model: Any, optimizer: Any, loss_of: Any, x: Any, y: Any, stepped: Callable[[], None]) -> None:
    for _ in range(8 * MOST_STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()
        stepped()


def theirs(torch: Any, device: str, name: str) -> Callable[[], None]:
    """The same steps by PyTorch."""
    if name == "mlp":
        model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(128, 784, device=device), torch.arange(128, device=device) % 10
        loss_of = torch.nn.functional.cross_entropy
    else:
        model = torch.nn.TransformerEncoderLayer(
            128, 4, 512, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        ).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x, y = torch.randn(8, 64, 128, device=device), None

        def loss_of(out: Any, _: Any) -> Any:
            return (out * out).mean()

    def step() -> None:
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()

    return step
