"""A small convolutional network: two 3x3 convolutions on 28x28 images, batches of 64, SGD with momentum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .report import Plan, Row
from .training import BATCHES, Training, contest

BATCH: Final = 64


def build(torch: Any) -> Training:
    """The model and its step, under torch or gradwire."""
    nn = torch.nn
    random = np.random.default_rng(0)
    images = torch.tensor(random.standard_normal((BATCHES * BATCH, 1, 28, 28)).astype(np.float32))
    labels = torch.tensor(random.integers(0, 10, BATCHES * BATCH))
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

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
    yield from contest("cnn", build, plan, one_thread=0.9, two_threads=1.0)
