"""A training step on both sides: the same code, the same weights, the same batches, the loss read every ten steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

import gradwire

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import interleave, seconds

READ_EVERY: Final = 10
BATCHES: Final = 10


@dataclass(frozen=True)
class Training:
    """A model under training.

    Attributes:
        step: run the step of this number; returns the loss, as a tensor that nobody has looked at yet.
    """

    model: Any
    step: Callable[[int], Any]

    def ten(self) -> float:
        """Ten steps, and the loss after them."""
        loss: Any = None
        for number in range(READ_EVERY):
            loss = self.step(number)
        return float(loss.item())


Build = Callable[[Any], Training]


def contest(name: str, build: Build, plan: Plan, target: Target | None = None) -> Iterator[Row]:
    """Train with torch here and with gradwire over loopback, with one thread each and with two."""
    for threads in (1,) if plan.quick else (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        with Server(threads) as server, session(server):
            local, remote = build(torch), build(gradwire)
            weights = {key: gradwire.tensor(value.numpy()) for key, value in local.model.state_dict().items()}
            remote.model.load_state_dict(weights)
            agree(name, local, remote)
            found = interleave({"ours": _timed(remote), "theirs": _timed(local)}, plan.rounds)
        label = f"step, {threads} thread{'s' if threads > 1 else ''}"
        yield Row(name, label, "ms", found["ours"], found["theirs"], target)


def agree(name: str, local: Training, remote: Training) -> None:
    """Check that both sides compute the same thing: figures of two different models would be worth nothing.

    Raises:
        AssertionError: with the losses.
    """
    theirs, ours = local.ten(), remote.ten()
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, err_msg=f"{name}: the loss after ten steps differs")


def _timed(training: Training) -> Callable[[], float]:
    def measure() -> float:
        training.step(0).item()  # the caches are the other side's
        return seconds(training.ten) / READ_EVERY * 1e3

    return measure
