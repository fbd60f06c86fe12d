"""A hundred thousand steps with batches of varying sizes: caches of known steps stay bounded.

Every size is another structure for the client's cache, the server's cache and its plans, and there are more sizes than
any of them keeps. The memory of both processes is measured ten times, and countable things are counted.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

import gradwire
from gradwire import nn

from .report import Plan, Row, Target
from .servers import Server, session
from .soak import held_by, megabytes, own_rss
from .timing import Figures

STEPS: Final = 100_000
LOOKS: Final = 10
LARGEST: Final = 3_000
"""Sizes are drawn evenly up to this one."""
GROWTH: Final = 1.05


@contextmanager
def _keeping_no_uploads() -> Iterator[None]:
    """Repeated sizes have the same rows. The server would keep 64 MB of them, which is not measured here."""
    before = os.environ.get("GRADWIRE_KEPT_UPLOADS")
    os.environ["GRADWIRE_KEPT_UPLOADS"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["GRADWIRE_KEPT_UPLOADS"]
        else:
            os.environ["GRADWIRE_KEPT_UPLOADS"] = before


def run(plan: Plan) -> Iterator[Row]:
    """A small perceptron under SGD; the loss is read at each check."""
    every = plan.of(STEPS, 200) // LOOKS
    drawn = random.Random(0)
    data = np.random.default_rng(0).standard_normal((LARGEST, 8), dtype=np.float32)
    with Server() as server, _keeping_no_uploads(), session(server) as opened:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
        optimizer = gradwire.optim.SGD(model.parameters(), lr=1e-3)
        rows, labels = gradwire.tensor(data), gradwire.randint(0, 3, (LARGEST,))
        held: list[dict[str, Any]] = []
        steps: list[float] = []
        far: list[float] = []
        near: list[float] = []
        for look in range(LOOKS):
            began = time.perf_counter()
            for number in range(every):
                size = drawn.randint(1, LARGEST)
                # Every other batch is new data, so its shape is in the frame; the others are views of existing data.
                x = gradwire.tensor(data[:size]) if number % 2 else rows[:size]
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), labels[:size])
                loss.backward()
                optimizer.step()
            loss.item()
            steps.append((time.perf_counter() - began) / every * 1e3)
            held.append(held_by(opened))
            if held[look]["tensors"] != held[0]["tensors"]:
                raise AssertionError(f"after {(look + 1) * every} steps, {held[look]} is held; before, {held[0]}")
            far.append(server.rss())
            near.append(own_rss())
    span = f"{every * LOOKS:,} steps of varying shapes / after {every:,}"
    limit = Target(GROWTH)
    note = f"batches of 1 to {LARGEST:,} rows; held at the last look: "
    note += ", ".join(f"{value:,} {name}" for name, value in held[-1].items())
    yield Row("varied", "training step", "ms", Figures(tuple(steps)), None, None, note)
    yield Row("varied", f"server's memory after {span}", "x", Figures((far[-1] / far[0],)), None, limit, megabytes(far))
    yield Row(
        "varied", f"client's memory after {span}", "x", Figures((near[-1] / near[0],)), None, limit, megabytes(near)
    )
