"""``python3 -m tests.gpu.profile [MODEL...]``: where a training step's time goes on a GPU, for the benchmark's models.

A step's frames are recorded by the client and applied by a session in this process, so that PyTorch's profiler sees the
kernels of both. It prints the plan's outcomes, a step's time, its kernels by time, and the host's functions by time.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from benchmarks.models import MODELS
from benchmarks.training import BATCHES
from torch.profiler import ProfilerActivity, profile

from gradwire_engine.plans import emitting, graph_segments
from tests.gpu import plans

WARM, TIMED, SEEN = 8, 5, 2
SHOWN = 22


def program(name: str) -> Callable[[Callable[[], None]], None]:
    """The model's steps as a program of the client, each ending with a read."""

    def run(stepped: Callable[[], None]) -> None:
        import gradwire

        training = MODELS[name](gradwire)
        for number in range(1 + WARM + TIMED + 2 * SEEN):
            training.step(number % BATCHES).item()
            stepped()

    return run


def kernels(work: Callable[[], Any], steps: int, device: str) -> str:
    """The device's activities in a few steps, by time: microseconds and launches of a step."""
    torch.zeros(1, device=device)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(steps):
            work()
        torch.cuda.synchronize()
    rows = sorted(seen.key_averages(), key=lambda r: -r.self_device_time_total)
    rows = [r for r in rows if r.self_device_time_total]
    total, count = sum(r.self_device_time_total for r in rows) / steps, sum(r.count for r in rows) / steps
    lines = [f"device: {total:.0f} us and {count:.0f} launches a step"]
    lines += [
        f"  {r.self_device_time_total / steps:8.1f} us {r.count / steps:6.1f} x {r.key[:95]}" for r in rows[:SHOWN]
    ]
    return "\n".join(lines)


def host(work: Callable[[], Any], steps: int) -> str:
    """The host's functions in a few steps, by their own time."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(steps):
        work()
    profiler.disable()
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(SHOWN)
    return "\n".join(line for line in text.getvalue().splitlines() if line.strip())


def watch_segments() -> Counter[str]:
    """Count, from now on, what plans hold: their segments, and by name the instructions that are in none."""
    found, plain = Counter[str](), graph_segments.stretches

    def watched(program: Any, code: list[Any], *rest: Any) -> Any:
        made = plain(program, code, *rest)
        inside = {i for begin, segment in made.items() for i in range(begin, segment.end)}
        for i, each in enumerate(code):
            if i not in inside:
                found[f"{type(each).__name__} {getattr(each, 'name', '')}".strip()] += 1
        found["segments"] += len(made)
        found["instructions"] += len(code)
        return made

    emitting.graph_segments.stretches = watched  # type: ignore[assignment]
    return found


def main(names: list[str], device: str = "cuda:0") -> None:
    """Print all of each model."""
    outside = watch_segments()
    for name in names or MODELS:
        print(f"== {name}", flush=True)
        outside.clear()
        step, ran = plans.steps(device, program(name))
        for _ in range(WARM):
            step()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(TIMED):
            step()
        torch.cuda.synchronize()
        print(f"{(time.perf_counter() - began) / TIMED * 1e3:.2f} ms a step; {ran.describe()}")
        print(f"refused: {sorted(ran.refused)}; outside of segments: {dict(outside.most_common(40))}")
        print(kernels(step, SEEN, device) if device != "cpu" else "")
        print(host(step, SEEN), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
