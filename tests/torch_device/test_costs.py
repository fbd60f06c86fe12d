"""What a training step on the device costs in messages: round trips, frames, and what its compiled model replays."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

import gradwire as gw
from gradwire_torch.compiling import gradwire as backend

from .side_by_side import DEVICE

WARM = 4


class Training:
    """A small model with a convolution, a normalization and attention's parts, and its step on batches of a data set.

    Args:
        compiled: whether gradwire's back end compiles the model.
    """

    def __init__(self, optimizer: str, compiled: bool = False) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Conv1d(3, 8, 3, padding=1), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Flatten(),
            torch.nn.LayerNorm(40), torch.nn.Linear(40, 4),
        ).to(DEVICE)  # fmt: skip
        self.called = torch.compile(self.model, backend=backend) if compiled else self.model
        self.optimizer = getattr(torch.optim, optimizer)(self.model.parameters(), lr=0.01)
        self.inputs = torch.randn(40, 3, 5).to(DEVICE)
        self.labels = torch.randint(0, 4, (40,)).to(DEVICE)

    def step(self, number: int) -> Any:
        """The loss, unread."""
        rows = slice(number % 5 * 8, number % 5 * 8 + 8)
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.called(self.inputs[rows]), self.labels[rows])
        loss.backward()
        self.optimizer.step()
        return loss


def counted(training: Training, read: bool, steps: int = 10) -> dict[str, int]:
    """What the session counts in so many steps, after those in which all is new."""
    session = gw.current_session()
    for number in range(WARM):
        training.step(number).item()
    before = session.stats()
    for number in range(steps):
        loss = training.step(number)
        if read:
            loss.item()
    after = session.stats()
    return {name: after[name] - before[name] for name in ("round_trips", "ops", "structure_new")}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_a_step_that_reads_its_loss_is_one_round_trip(optimizer: str, compiled: bool) -> None:
    assert counted(Training(optimizer, compiled), read=True)["round_trips"] == 10


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_a_step_that_reads_nothing_waits_for_nothing(optimizer: str, compiled: bool) -> None:
    assert counted(Training(optimizer, compiled), read=False)["round_trips"] == 0


def test_a_compiled_model_is_one_graph_and_is_replayed() -> None:
    torch._dynamo.reset()
    counters.clear()
    training = Training("SGD", compiled=True)
    losses = [training.step(number).item() for number in range(WARM)]
    assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]
    plain = Training("SGD")
    assert losses == pytest.approx([plain.step(number).item() for number in range(WARM)], rel=1e-4)


def test_graphs_are_replayed_for_other_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradwire_torch import compiling

    torch._dynamo.reset()
    graphs: list[Any] = []
    made = compiling._CompiledGraph.__init__
    monkeypatch.setattr(
        compiling._CompiledGraph, "__init__", lambda self, graph: (graphs.append(self), made(self, graph))[1]
    )
    training = Training("SGD", compiled=True)
    for number in range(8):
        training.step(number)
    assert len(graphs) == 2
    for graph in graphs:
        told = graph.program.stats()
        assert told["replayed"] >= 5 and told["ran"] <= 3, told
