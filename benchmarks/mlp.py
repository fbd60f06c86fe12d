"""A perceptron for images of digits: 784-256-10, batches of 128, plain SGD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .report import Plan, Row
from .training import BATCHES, Training, contest

BATCH: Final = 128


def build(torch: Any) -> Training:
    """The model and its step, under torch or gradwire."""
    random = np.random.default_rng(0)
    images = torch.tensor(random.standard_normal((BATCHES * BATCH, 784)).astype(np.float32))
    labels = torch.tensor(random.integers(0, 10, BATCHES * BATCH))
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = torch.nn.CrossEntropyLoss()

    def step(number: int) -> Any:
        at = number % BATCHES * BATCH
        optimizer.zero_grad()
        loss = criterion(model(images[at : at + BATCH]), labels[at : at + BATCH])
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


def run(plan: Plan) -> Iterator[Row]:
    """Against torch."""
    yield from contest("mlp", build, plan, one_thread=0.85, two_threads=1.0)
