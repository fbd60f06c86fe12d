"""A Hessian-vector product of the perceptron, by backward through backward, and the curvature that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .report import Plan, Row
from .training import BATCHES, Training, contest

BATCH: Final = 128


def build(torch: Any) -> Training:
    """The model and its step, under torch or gradwire. The step returns the curvature as its loss."""
    random = np.random.default_rng(0)
    images = torch.tensor(random.standard_normal((BATCHES * BATCH, 784)).astype(np.float32))
    labels = torch.tensor(random.integers(0, 10, BATCHES * BATCH))
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    criterion = torch.nn.CrossEntropyLoss()
    parameters = list(model.parameters())
    direction = [torch.tensor(random.standard_normal(tuple(p.shape)).astype(np.float32)) for p in parameters]

    def step(number: int) -> Any:
        at = number % BATCHES * BATCH
        loss = criterion(model(images[at : at + BATCH]), labels[at : at + BATCH])
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        slope = sum((g * v).sum() for g, v in zip(gradients, direction, strict=True))
        product = torch.autograd.grad(slope, parameters)
        return sum((h * v).sum() for h, v in zip(product, direction, strict=True))

    return Training(model, step)


def run(plan: Plan) -> Iterator[Row]:
    """Against torch."""
    yield from contest("hvp", build, plan, one_thread=1.2)
