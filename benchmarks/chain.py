"""The shape of everyday code: a chain of small ops written one by one, then backward, then one value read.

Near the server it is a question of microseconds per op. 20 ms away it is one of round trips: a client that waited for
each of the 22 ops would need almost half a second a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch

import gradwire

from .report import Plan, Row, Target
from .servers import DelayedRoute, Server, session
from .timing import Figures, interleave, seconds

RTT_MS: Final = 20.0
SIZE: Final = 64
LINKS: Final = 10


def build(torch: Any) -> Callable[[], Any]:
    """A step: ten times matmul and relu, mean, backward, read one gradient. The same code under both."""
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
    """On loopback, and with the server 20 ms away."""
    torch.set_num_threads(1)
    local = build(torch)
    with Server(threads=1) as server:
        with session(server):
            remote = build(gradwire)
            np.testing.assert_allclose(remote(), local(), rtol=1e-3, atol=1e-6)
            near = interleave(
                {"ours": _timed(remote, plan.of(20, 2)), "theirs": _timed(local, plan.of(20, 2))}, plan.rounds
            )
        yield Row("chain", "step on loopback", "ms", near["ours"], near["theirs"], Target(4.0))
        with DelayedRoute(server, RTT_MS) as route, session(route) as far:
            remote = build(gradwire)
            remote()
            empty = Figures(tuple(seconds(far.synchronize) * 1e3 for _ in range(plan.of(15, 2))))
            steps, trips = plan.of(5, 2), []

            def counted() -> float:
                before = far.stats()["round_trips"]
                took = _timed(remote, steps)()
                trips.append((far.stats()["round_trips"] - before) / (steps + 1))
                return took

            away = interleave({"ours": counted, "theirs": _timed(local, steps)}, plan.rounds)
        label = f"step, server {RTT_MS:g} ms away"
        note = f"an empty round trip there takes {empty.median:.2f} ms"
        yield Row("chain", label, "ms", away["ours"], away["theirs"], Target(24.0), note)
        yield Row("chain", "round trips a step", "", Figures(tuple(trips)), None, Target(1.1))


def _timed(step: Callable[[], Any], steps: int) -> Callable[[], float]:
    """Milliseconds a step, after one that is not counted."""

    def measure() -> float:
        step()

        def several() -> None:
            for _ in range(steps):
                step()

        return seconds(several) / steps * 1e3

    return measure
