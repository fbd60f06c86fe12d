"""A process that has just begun: when its first loss is there, what its next seconds are like, and what it takes.

Each figure is of new processes. Ours are the program's and that of its embedded server, with default settings. Memory
is that of a server whose kernels are compiled. Torch's process does the same with torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures

MODELS: Final = {"GPT": ("models.language", "gpt"), "ResNet-18": ("models.vision", "resnet")}
ROUNDS: Final = 3
SECONDS: Final = 10.0
MEMORY_STEPS: Final = 20

_ROOT: Final = Path(__file__).parents[1]

Answer = dict[str, float]


def run(plan: Plan) -> Iterator[Row]:
    """For each model: the first loss, the first step, the next ten seconds while kernels are compiled, memory."""
    rounds = plan.of(min(ROUNDS, plan.rounds), 1)
    for model in list(MODELS)[: plan.of(len(MODELS), 1)]:
        ours = [_child("gradwire", model, 0.0, {}) for _ in range(rounds)]
        theirs = [_child("torch", model, 0.0, {}) for _ in range(rounds)]
        for key, unit, case in (
            ("loss", "s", "from the start of a process to its first loss"),
            ("first", "s", "first step of a process, once it is connected"),
        ):
            found = [Figures(tuple(each[key] for each in side)) for side in (ours, theirs)]
            yield Row("fresh", f"{model}: {case}", unit, *found, Target(1.0, of="ratio"))
        yield _while_compiling(model, plan, rounds)
        yield _memory(model, plan, rounds)


def _while_compiling(model: str, plan: Plan, rounds: int) -> Row:
    """Steps of the first seconds of a process whose kernels are being compiled, against one that compiles none."""
    with_kernels, without = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            empty = {"XDG_CACHE_HOME": cache}
            with_kernels.append(_child("gradwire", model, plan.of(10, 1) / 10 * SECONDS, empty)["step"] * 1e3)
        off = {"GRADWIRE_COMPILED_KERNELS": "off"}
        without.append(_child("gradwire", model, plan.of(10, 1) / 10 * SECONDS, off)["step"] * 1e3)
    ratio = Figures(tuple(a / b for a, b in zip(with_kernels, without, strict=True)))
    case = f"{model}: a step in the first ten seconds, kernels being compiled / no compiled kernels"
    return Row("fresh", case, "x", ratio, None, Target(1.05))


def _memory(model: str, plan: Plan, rounds: int) -> Row:
    """The highest memory of the server, and of torch's process, in MB."""
    steps = plan.of(MEMORY_STEPS, 1)
    ours, theirs = [], []
    for _ in range(rounds):
        with Server(None) as server, session(server):
            import gradwire

            training = _built(gradwire, model)
            for number in range(steps):
                training.step(number % 10).item()
            ours.append(server.peak() / 1e6)
        theirs.append(_child("torch", model, 0.0, {"BENCHMARK_STEPS": str(steps)})["peak"] / 1e6)
    found = Figures(tuple(ours)), Figures(tuple(theirs))
    return Row("fresh", f"{model}: peak memory of the server", "MB", *found, Target(1.1, of="ratio"))


def _child(library: str, model: str, seconds: float, settings: Mapping[str, str]) -> Answer:
    """What a new process tells, and in ``loss`` the time until it had its first loss."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")} | settings
    command = [sys.executable, "-m", "benchmarks.fresh", library, model, str(seconds)]
    began = time.time()
    answered = subprocess.run(command, env=environment, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: Answer = json.loads(answered.stdout.splitlines()[-1])
    answer["loss"] -= began
    return answer


def _built(torch: Any, model: str) -> Any:
    module, name = MODELS[model]
    return getattr(import_module(f"benchmarks.{module}"), name)(torch)


def main(library: str, model: str, seconds: float) -> None:
    """The child: build a model, train, and tell."""
    torch = import_module(library)
    training = _built(torch, model)
    float(torch.ones(1).sum().item())  # what was sent is there, and the session is open
    began = time.perf_counter()
    training.step(0).item()
    first, loss = time.perf_counter() - began, time.time()
    steps = int(os.environ.get("BENCHMARK_STEPS", "1"))
    for number in range(1, steps):
        training.step(number % 10).item()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        training.step(count % 10).item()
        count += 1
    step = (time.perf_counter() - begin) / max(count, 1)
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    print(json.dumps({"loss": loss, "first": first, "step": step, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
