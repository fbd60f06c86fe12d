"""Ten thousand training steps, after which nothing more is held than after a thousand.

Countable things (the server's tensors, graph nodes and bytes, the client's pending releases) must be equal at every
check, else the benchmark fails. The memory of both processes is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import gradwire
from gradwire import nn

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures

STEPS: Final = 10_000
LOOKS: Final = 10
GROWTH: Final = 1.03
"""What the memory of a process may differ by, from allocator to allocator, when nothing is left behind."""


def run(plan: Plan) -> Iterator[Row]:
    """A perceptron under Adam, its loss read now and then."""
    every = plan.of(STEPS, 200) // LOOKS
    with Server() as server, session(server) as opened:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
        optimizer = gradwire.optim.Adam(model.parameters(), lr=1e-3)
        x, target = gradwire.randn(4, 8), gradwire.randint(0, 3, (4,))
        held: list[dict[str, Any]] = []
        steps: list[float] = []
        far: list[float] = []
        near: list[float] = []
        for look in range(LOOKS):
            started = time.perf_counter()
            for _ in range(every):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), target)
                loss.backward()
                optimizer.step()
            loss.item()
            steps.append((time.perf_counter() - started) / every * 1e3)
            held.append(held_by(opened))
            if held[look] != held[0]:
                raise AssertionError(f"after {(look + 1) * every} steps, {held[look]} is held; before, {held[0]}")
            far.append(server.rss())
            near.append(own_rss())
    note = f"held at each of {LOOKS} looks: " + ", ".join(f"{value:,} {name}" for name, value in held[0].items())
    span = f"{every * LOOKS:,} steps / after {every:,}"
    limit = Target(GROWTH)
    yield Row("soak", "training step", "ms", Figures(tuple(steps)), None, None, note)
    yield Row("soak", f"server's memory after {span}", "x", Figures((far[-1] / far[0],)), None, limit, megabytes(far))
    yield Row(
        "soak", f"client's memory after {span}", "x", Figures((near[-1] / near[0],)), None, limit, megabytes(near)
    )


def held_by(opened: gradwire.Session) -> dict[str, int]:
    """Counts of what the server holds for a session, and of the client's pending releases."""
    contents = opened.describe()["contents"]
    memory = opened.memory()
    return {
        "tensors": contents["tensors"], "graph nodes": contents["graph_nodes"], "live bytes": memory["live_bytes"],
        "bytes kept for backward": memory["saved_bytes"], "tensors to release": len(opened.builder.dropped),
    }  # fmt: skip


def own_rss() -> int:
    """This process's current memory in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) << 10
    raise LookupError("the system does not tell VmRSS of this process")


def megabytes(found: list[float]) -> str:
    """The figures of all checks, as text."""
    return "at the looks: " + ", ".join(f"{value / 1e6:.1f}" for value in found) + " MB"
