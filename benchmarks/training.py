"""A training step on both sides: the same code, the same weights, the same batches.

On loopback the loss is read every ten steps, as training loops do, or every step, if a row says so. At a distance
(``distances.py``) it is read every step, or never. A model can be built by a process that has one of the two libraries
alone (``fresh.py``), so they are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures, interleave, seconds

READ_EVERY: Final = 10
BATCHES: Final = 10
CADENCES: Final = {"every ten steps": READ_EVERY, "every step": 1}


@dataclass(frozen=True)
class Training:
    """A model under training.

    Attributes:
        step: runs the step with this number and returns the loss as an unread tensor.
    """

    model: Any
    step: Callable[[int], Any]

    def ten(self, read_every: int = READ_EVERY) -> float:
        """Run ten steps and read the loss after each group of this many. Returns the last loss."""
        loss, found = None, 0.0
        for number in range(READ_EVERY):
            loss = self.step(number)
            if number % read_every == read_every - 1:
                found = float(loss.item())
        return found


Build = Callable[[Any], Training]


def contest(name: str, build: Build, plan: Plan, one_thread: float, two_threads: float | None = None) -> Iterator[Row]:
    """Train with torch, and with gradwire over loopback and at a distance.

    Args:
        one_thread, two_threads: targets for our time relative to torch's, with this many threads on both sides and the
            loss read every ten steps. Without the second, two threads are not measured.
    """
    from . import distances

    with Server(1) as server:
        found = _on_loopback(name, build, plan, server, 1, CADENCES)
        for cadence, target in zip(CADENCES, (Target(one_thread, of="ratio"), None), strict=True):
            yield Row(name, f"loopback, 1 thread, loss read {cadence}", "ms", *found[cadence], target)
        read, unread = (lambda torch: _read_every_step(build(torch))), (lambda torch: _unread(build(torch)))
        yield from distances.reading(name, server, read, plan, distances.ROUND_TRIPS)
        yield from distances.unread(name, server, unread, plan)
    if two_threads is not None and not plan.quick:
        with Server(2) as server:
            [(ours, theirs)] = _on_loopback(name, build, plan, server, 2, {"every ten steps": READ_EVERY}).values()
        label = "loopback, 2 threads, loss read every ten steps"
        yield Row(name, label, "ms", ours, theirs, Target(two_threads, of="ratio"))


def _on_loopback(
    name: str, build: Build, plan: Plan, server: Server, threads: int, cadences: dict[str, int]
) -> dict[str, tuple[Figures, Figures]]:
    """Milliseconds per step by cadence, ours and torch's."""
    import torch

    import gradwire

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    with session(server):
        local, remote = build(torch), build(gradwire)
        weights = {key: gradwire.tensor(value.numpy()) for key, value in local.model.state_dict().items()}
        remote.model.load_state_dict(weights)
        agree(name, local, remote)
        sides = {
            (cadence, side): timed(training, every)
            for cadence, every in cadences.items()
            for side, training in (("ours", remote), ("theirs", local))
        }
        found = interleave(sides, plan.rounds)
    torch.set_num_threads(1)
    return {cadence: (found[cadence, "ours"], found[cadence, "theirs"]) for cadence in cadences}


def agree(name: str, local: Training, remote: Training) -> None:
    """Check that both sides compute the same, else the comparison is meaningless.

    Raises:
        AssertionError: with the losses.
    """
    theirs, ours = local.ten(), remote.ten()
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, err_msg=f"{name}: the loss after ten steps differs")


def timed(training: Training, read_every: int = READ_EVERY) -> Callable[[], float]:
    """A function that measures ten steps, in milliseconds per step."""
    for _ in range(3):  # from the third time on, structure and plan are known
        training.ten(read_every)

    def measure() -> float:
        training.step(0).item()  # the other side has filled the caches
        return seconds(lambda: training.ten(read_every)) / READ_EVERY * 1e3

    return measure


def _unread(training: Training) -> Callable[[], Any]:
    numbers = count()
    return lambda: training.step(next(numbers) % BATCHES)


def _read_every_step(training: Training) -> Callable[[], Any]:
    step = _unread(training)
    return lambda: step().item()
