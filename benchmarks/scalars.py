"""A loop of a thousand ops on single numbers, then backward.

No array is large enough to matter, so this is the fixed cost of an op, forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from .report import Plan, Row, Target
from .servers import Server
from .values import reads

NAME: Final = "scalars"
TURNS: Final = 250
"""Of four ops each: a tensor times a tensor, plus a number, a function, minus a tensor."""


def build(torch: Any) -> Callable[[], Any]:
    """The loop, backward, and one gradient read."""
    x = torch.tensor(0.5, requires_grad=True)
    w = torch.tensor(0.9, requires_grad=True)

    def step() -> Any:
        x.grad = w.grad = None
        y = x
        for _ in range(TURNS):
            y = torch.sin(y * w + 0.3) - x
        y.backward()
        return w.grad.item()

    return step


def run(plan: Plan) -> Iterator[Row]:
    """On loopback, and with the server 20 and 50 ms away."""
    with Server() as server:
        case = "loopback, 1,000 ops, backward, a gradient read"
        yield from reads(NAME, case, server, build, plan, Target(1.0, of="ratio"), steps=5)
