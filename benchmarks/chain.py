"""Everyday code: a chain of small ops, then backward, then one value read.

Near the server, microseconds per op decide. 20 ms away, round trips decide: a client that waited for each of the 22 ops
would need almost half a second per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from .distances import ROUND_TRIPS
from .report import Plan, Row, Target
from .servers import Server
from .values import reads

NAME: Final = "chain"
SIZE: Final = 64
LINKS: Final = 10


def build(torch: Any) -> Callable[[], Any]:
    """A step: ten times matmul and relu, mean, backward, one gradient read. The same code under both libraries."""
    random = np.random.default_rng(0)
    x = torch.tensor(random.standard_normal((SIZE, SIZE)).astype(np.float32), requires_grad=True)
    w = torch.tensor((random.standard_normal((SIZE, SIZE)) / 6).astype(np.float32), requires_grad=True)

    def step() -> Any:
        x.grad = w.grad = None
        h = x
        for _ in range(LINKS):
            h = torch.relu(h @ w)
        h.mean().backward()
        return x.grad.numpy()

    return step


def run(plan: Plan) -> Iterator[Row]:
    """On loopback, and with the server 20 and 50 ms away."""
    with Server() as server:
        target = Target(1.2, of="ratio")
        yield from reads(NAME, "loopback, read every step", server, build, plan, target, beyond=ROUND_TRIPS)
