"""The client's cost of one op: bind, apply the (memoised) rule, write the record, create the proxy.

Nothing is sent meanwhile. torch's figure is its whole eager op on the same tiny tensors, as users compare. Repeated ops
are measured as a loop of one op and as a known sequence of many. First ops are measured as a sequence of lines that
never ran before, in a new order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

import gradwire

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import interleave, seconds

if TYPE_CHECKING:
    from gradwire._core.session.session import Session

OPS: Final = 1000
"""Between two synchronisations: fewer than a frame holds, so that none is cut while the clock runs."""

REPEATED_US: Final = 2.0
FIRST_US: Final = 6.0

LINES: Final = (
    "h = x * y", "h = w * y", "h = w + x", "h = w @ y", "h = relu(w)", "h = w - 1.5", "h = tanh(h)", "h = h.t()",
    "h = w / x", "h = h.reshape(2, 2)", "h = -h", "h = h.sum(0, keepdim=True) * y",
)  # fmt: skip
"""A sequence is drawn from these. The last one is two ops."""


def cases(torch: Any) -> dict[str, Callable[[], None]]:
    """Loops of one op each. Every iteration drops the previous result, as in a program."""
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


def sequence(torch: Any, seed: int) -> tuple[Callable[[], None], int]:
    """A function of about a thousand random lines (by seed), and its number of ops."""
    drawn = np.random.default_rng(seed).integers(0, len(LINES), OPS)
    body = "\n    ".join(LINES[i] for i in drawn)
    tensors = {"x": torch.ones(2, 2), "y": torch.ones(2, 2), "w": torch.ones(2, 2, requires_grad=True)}
    scope = {**tensors, "relu": torch.relu, "tanh": torch.tanh}
    exec(compile(f"def run():\n    h = w\n    {body}\n", f"<sequence {seed}>", "exec"), scope)  # noqa: S102
    return scope["run"], OPS + int((drawn == len(LINES) - 1).sum())


def run(plan: Plan) -> Iterator[Row]:
    """One row per op, then sequences."""
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
            yield Row("record", f"repeated: {name}", "us/op", found["ours"], found["theirs"], Target(REPEATED_US))
        yield from _sequences(opened, plan)


def _sequences(opened: Session, plan: Plan) -> Iterator[Row]:
    """A thousand mixed ops: recorded for the first time, and again. Each round has a new sequence."""
    seeds = count()
    _sequence_us(gradwire, opened, 0, seeds)  # ops and shapes are known from here on; only the sequence is new
    for label, warm, limit in (("first", 0, FIRST_US), ("repeated", 4, REPEATED_US)):
        sides = {
            "ours": partial(_sequence_us, gradwire, opened, warm, seeds),
            "theirs": partial(_sequence_us, torch, None, warm, seeds),
        }
        found = interleave(sides, plan.rounds)
        yield Row(
            "record",
            f"{label}: a sequence of {OPS:,} mixed ops",
            "us/op",
            found["ours"],
            found["theirs"],
            Target(limit),
        )


def _sequence_us(torch: Any, opened: Session | None, warm: int, seeds: Iterator[int]) -> float:
    """Microseconds per op of one run of a new sequence, after this many uncounted runs."""
    run, ops = sequence(torch, next(seeds))
    took = 0.0
    for _ in range(warm + 1):
        took = seconds(run)
        if opened is not None:
            opened.synchronize()
    return took / ops * 1e6
