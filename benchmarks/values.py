"""Steps that end with a read: side by side on loopback, then at a distance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import gradwire

from . import distances
from .report import Plan, Row, Target
from .servers import Server, session
from .timing import interleave, seconds

Build = Callable[[Any], Callable[[], Any]]
"""Makes the step under this ``torch``; the step returns what it read."""


def reads(
    name: str, case: str, server: Server, build: Build, plan: Plan, target: Target, steps: int = 20,
    beyond: Target | None = None,
) -> Iterator[Row]:  # fmt: skip
    """A row against torch on loopback, then rows for each distance.

    Args:
        steps: steps per measurement.
        beyond: the target at a distance, in round trips without the server's time.
    """
    torch.set_num_threads(1)
    local = build(torch)
    with session(server):
        remote = build(gradwire)
        np.testing.assert_allclose(remote(), local(), rtol=1e-3, atol=1e-6, err_msg=f"{name}: the values differ")
        sides = {"ours": _timed(remote, plan.of(steps, 2)), "theirs": _timed(local, plan.of(steps, 2))}
        near = interleave(sides, plan.rounds)
    yield Row(name, case, "ms", near["ours"], near["theirs"], target)
    yield from distances.reading(name, server, build, plan, beyond)


def _timed(step: Callable[[], Any], steps: int) -> Callable[[], float]:
    """A function that measures this many steps, in milliseconds per step, after an uncounted one."""
    for _ in range(distances.WARM):
        step()

    def measure() -> float:
        step()

        def several() -> None:
            for _ in range(steps):
                step()

        return seconds(several) / steps * 1e3

    return measure
