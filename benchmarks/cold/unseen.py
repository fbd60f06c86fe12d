"""Frames that were never seen: a thousand mixed ops in a new order each round, forward and backward."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import numpy as np
import torch

import gradwire

from ..report import Plan, Row, Target
from ..servers import Server, session
from ..timing import interleave, seconds

OPS: Final = 1_000

Op = Callable[[Any, Any, Any], Any]
MIXED: Final[tuple[Op, ...]] = (
    lambda torch, x, y: x + y,
    lambda torch, x, y: x * y,
    lambda torch, x, y: x - y * 0.5,
    lambda torch, x, y: torch.tanh(x),
    lambda torch, x, y: torch.sigmoid(y),
    lambda torch, x, y: x @ y * 0.1,
    lambda torch, x, y: (x + y).t(),
    lambda torch, x, y: torch.relu(x) + y,
    lambda torch, x, y: x - x.mean(),
    lambda torch, x, y: torch.cat([x[:4], y[4:]]),
    lambda torch, x, y: torch.softmax(x, 1),
    lambda torch, x, y: x / (1 + y.abs()),
)
"""Between one and three ops each."""


def program(torch: Any, order: list[int]) -> float:
    """Forward and backward through these ops; reads one element of the gradient."""
    x = torch.tensor(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), requires_grad=True)
    before, here = x, x * 0.9
    for chosen in order:
        before, here = here, MIXED[chosen](torch, here, before)
    here.sum().backward()
    return float(x.grad[0, 0])


def rows(plan: Plan, server: Server) -> Iterator[Row]:
    """One row: microseconds an op, counted in lines of the program."""
    numbers = count()
    lines = plan.of(OPS, 20)

    def timed(torch: Any) -> Callable[[], float]:
        def measure() -> float:
            order = random.Random(next(numbers)).choices(range(len(MIXED)), k=lines)
            return seconds(lambda: program(torch, order)) / lines * 1e6

        return measure

    with session(server):
        order = random.Random(-1).choices(range(len(MIXED)), k=lines)
        ours, theirs = program(gradwire, order), program(torch, order)
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-6)
        found = interleave({"ours": timed(gradwire), "theirs": timed(torch)}, plan.rounds)
    case = f"{lines:,} mixed lines, never seen"
    yield Row("cold", case, "us/line", found["ours"], found["theirs"], Target(2.0, of="ratio"))
