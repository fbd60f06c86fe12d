"""What one op costs the program that calls it: bind, apply the (memoised) rule, write the record, make the proxy.

Nothing is sent meanwhile. torch's figure is its whole eager op on the same tiny tensors, which is what a user compares
with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

import gradwire

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import interleave, seconds

OPS: Final = 1000
"""Between two synchronisations: fewer than a frame holds, so that none is cut while the clock runs."""

LIMIT_US: Final = 8.0


def cases(torch: Any) -> dict[str, Callable[[], None]]:
    """Loops of one op each. The previous result is dropped with every turn, as in a program."""
    x = torch.ones(2, 2)
    y = torch.ones(2, 2)
    w = torch.ones(2, 2, requires_grad=True)

    def product() -> None:
        for _ in range(OPS):
            x * y

    def recorded() -> None:
        for _ in range(OPS):
            w * y

    def number() -> None:
        for _ in range(OPS):
            w + 1.5

    def matrix() -> None:
        for _ in range(OPS):
            w @ y

    def function() -> None:
        for _ in range(OPS):
            torch.relu(w)

    return {
        "mul, no gradient": product, "mul, with history": recorded, "add of a number": number, "matmul": matrix,
        "relu": function,
    }  # fmt: skip


def run(plan: Plan) -> Iterator[Row]:
    """One row an op."""
    torch.set_num_threads(1)
    theirs = cases(torch)
    with Server() as server, session(server) as opened:
        ours = cases(gradwire)
        opened.synchronize()
        for name in ours:

            def remote(loop: Callable[[], None] = ours[name]) -> float:
                took = seconds(loop)
                opened.synchronize()
                return took / OPS * 1e6

            def local(loop: Callable[[], None] = theirs[name]) -> float:
                return seconds(loop) / OPS * 1e6

            remote()
            local()
            found = interleave({"ours": remote, "theirs": local}, plan.rounds)
            yield Row("record", name, "us/op", found["ours"], found["theirs"], Target(LIMIT_US))
