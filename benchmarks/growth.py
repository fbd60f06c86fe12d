"""Time per step against its number of ops, from ten to a hundred thousand: growth must be linear.

A step is a chain of small ops, backward, and one gradient read. The exponent is that of the power law that fits the
times best (least squares of the logarithms); 1 is linear. Below a thousand ops a step's fixed costs show, so there is
also the exponent from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch

import gradwire

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures, interleave, seconds

SIZES: Final = (10, 100, 1_000, 10_000, 100_000)
FROM: Final = 1_000
LINEAR: Final = Target(1.05)
ROUNDS: Final = 3
MEASURED_OPS: Final = 2_000
"""A measurement repeats a short step until it has so many."""


def build(torch: Any, ops: int) -> Callable[[], Any]:
    """A step of this many ops: half products, half functions."""
    x = torch.tensor([[0.5, 0.2], [0.1, 0.4]], requires_grad=True)
    w = torch.tensor([[0.9, 0.1], [0.2, 0.8]], requires_grad=True)

    def step() -> Any:
        x.grad = w.grad = None
        h = x
        for _ in range(ops // 2):
            h = torch.tanh(h * w)
        h.sum().backward()
        return w.grad.numpy()

    return step


def run(plan: Plan) -> Iterator[Row]:
    """A row per size, then the exponents."""
    torch.set_num_threads(1)
    sizes = plan.of(len(SIZES), 3)
    ours: list[Figures] = []
    theirs: list[Figures] = []
    with Server() as server, session(server):
        for ops in SIZES[:sizes]:
            found = interleave(
                {"ours": _timed(build(gradwire, ops), ops), "theirs": _timed(build(torch, ops), ops)},
                max(1, min(plan.rounds, ROUNDS)),
            )
            ours.append(found["ours"])
            theirs.append(found["theirs"])
            yield Row("growth", f"step of {ops:,} ops", "us/op", *(f.scaled(1e3 / ops) for f in (ours[-1], theirs[-1])))
    for least in (SIZES[0], FROM):
        begin = SIZES.index(least)
        if sizes - begin > 1:
            exponents = [_exponents(SIZES[begin:sizes], side[begin:]) for side in (ours, theirs)]
            case = f"exponent from {least:,} to {SIZES[sizes - 1]:,} ops"
            yield Row("growth", case, "", *exponents, LINEAR, difference=True)


def _exponents(sizes: tuple[int, ...], times: list[Figures]) -> Figures:
    """One exponent per round."""
    logs = np.log(sizes)
    return Figures(
        tuple(float(np.polyfit(logs, np.log(found), 1)[0]) for found in zip(*(t.values for t in times), strict=True))
    )


def _timed(step: Callable[[], Any], ops: int) -> Callable[[], float]:
    """A function that measures a step in milliseconds."""
    repeats = max(1, MEASURED_OPS // ops)
    for _ in range(3):
        step()

    def several() -> None:
        for _ in range(repeats):
            step()

    return lambda: seconds(several) / repeats * 1e3
