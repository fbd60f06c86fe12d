"""Time travel on a run of 500 steps of a small perceptron, in which a NaN is planted at step 317.

A checkpoint, a fork, a rewind, a look at a past frame, and the search for the NaN: by the server's replay, by halves
and frame by frame. Each has two rows: the wall time, and the CPU time of client and server together.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np

import gradwire

from .report import Plan, Row
from .servers import Server, session
from .timing import Figures

STEPS: Final = 500
PLANTED: Final = 317
REPEATED: Final = 3
SIZES: Final = (64, 128, 10)
BATCH: Final = 32

Measure = Callable[[str, Callable[[], Any]], Any]


def run(plan: Plan) -> Iterator[Row]:
    """The run, then every way back, a median of three."""
    steps, planted = plan.of(STEPS, 30), plan.of(PLANTED, 19)
    taken: dict[str, list[tuple[float, float]]] = {}
    found: dict[str, Any] = {}
    for _ in range(plan.of(REPEATED, 1)):
        with ExitStack() as stack:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="gradwire-travel-"))
            server = stack.enter_context(Server(1, durability="applied", data_dir=Path(scratch)))
            opened = stack.enter_context(session(server))

            def measure(case: str, action: Callable[[], Any], server: Server = server) -> Any:
                before, began = _cpu_s(server), time.perf_counter()
                result = action()
                wall = time.perf_counter() - began
                taken.setdefault(case, []).append((wall, _cpu_s(server) - before))
                return result

            found = _travel(opened, measure, steps, planted)
    for case, times in taken.items():
        note = found.get(case, "")
        yield Row("time_travel", case, "ms", Figures(tuple(wall * 1e3 for wall, _ in times)), note=note)
        yield Row("time_travel", f"{case}, CPU", "ms", Figures(tuple(cpu * 1e3 for _, cpu in times)))


def _travel(opened: Any, measure: Measure, steps: int, planted: int) -> dict[str, str]:
    """Everything once. Returns what each search has found."""
    step, weight = _training(planted)
    step(0)
    opened.rewind(opened.checkpoint("warm"))  # imports and first calls are no part of the figures
    first = measure("checkpoint", lambda: opened.checkpoint("begin")).frame
    measure(f"{steps} steps, each read", lambda: [step(number) for number in range(steps)])
    made = opened.history()["frame"]
    fork = measure("fork", opened.fork)
    fork.close()
    with measure(f"look at frame {(first + made) // 2:,}", lambda: opened.at((first + made) // 2)) as past:
        past[weight].sum().item()
    replayed = measure("first NaN by the server's replay", opened.find_value)
    halves = measure("first NaN by halves", lambda: gradwire.find_first(_broken, session=opened, monotone=True))
    every = measure("first NaN frame by frame", lambda: gradwire.find_first(_broken, session=opened))
    measure("rewind", lambda: opened.rewind("begin"))
    if not replayed or halves != every or replayed["frame"] != every:
        raise RuntimeError(f"the searches disagree: {replayed}, {halves}, {every}")
    step_number, line = replayed["frame"] - first - 1, os.path.relpath(replayed["line"])
    where = f"step {step_number}, frame {every}: {replayed['op']} at {line}"
    return {
        "first NaN by the server's replay": where, "first NaN by halves": f"frame {halves}",
        "first NaN frame by frame": f"frame {every}",
    }  # fmt: skip


def _broken(past: Any) -> Any:
    return past["loss"].isnan().any()


def _training(planted: int) -> tuple[Callable[[int], float], Any]:
    """A step of training that reads its loss, and the first weight."""
    random = np.random.default_rng(0)
    images = gradwire.tensor(random.standard_normal((BATCH, SIZES[0])).astype(np.float32))
    labels = gradwire.tensor(random.integers(0, SIZES[2], BATCH))
    nn = gradwire.nn
    model = nn.Sequential(nn.Linear(SIZES[0], SIZES[1]), nn.ReLU(), nn.Linear(SIZES[1], SIZES[2]))
    optimizer = gradwire.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    def step(number: int) -> float:
        optimizer.zero_grad()
        out = model(images)
        if number == planted:
            out = out * float("nan")
        loss = criterion(out, labels)
        loss.set_name("loss")
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step, next(model.parameters())


def _cpu_s(server: Server) -> float:
    """CPU seconds of this process and the server so far."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")
