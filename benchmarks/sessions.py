"""Two programs that train at once on one server: the rate of each relative to running alone.

Each program is a process with its own session. On two processors they share everything: their own work, the server's,
and the threads of its numeric libraries. From the shell, this module is one such program::

    python -m benchmarks.sessions URL KEY

Each line of its standard input is a number of seconds to train; it answers with steps per second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from .report import Plan, Row, Target
from .servers import Server
from .timing import PAUSE_S, Figures, paired_ratios

HOSTS: Final = ("inline", "process")
THREADS: Final = 2
SHARE: Final = 0.45
SECONDS: Final = 1.0


class Program:
    """A program that trains the perceptron on request."""

    def __init__(self, server: Server) -> None:
        command = [sys.executable, "-m", "benchmarks.sessions", server.url, server.key]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, seconds: float) -> None:
        """Start training for this many seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def rate(self) -> float:
        """Steps per second, after its time is over.

        Raises:
            RuntimeError: if it ended early.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a program that trains ended with exit code {self._process.wait()}")
        return float(json.loads(line))

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def run(plan: Plan) -> Iterator[Row]:
    """One row per kind of host, with the slower of the two programs."""
    for host in HOSTS:
        with ExitStack() as stack:
            # Two tenants, who share no worker process.
            server = stack.enter_context(Server(THREADS, session_host=host, worker_per="session"))
            programs = [stack.enter_context(Program(server)) for _ in range(2)]
            seconds = SECONDS if not plan.quick else 0.05
            _together(programs, 2 * seconds)
            alone: list[float] = []
            shared: list[float] = []
            for number in range(plan.rounds):
                rates = [_together([each], seconds)[0] for each in programs]
                time.sleep(PAUSE_S)
                both = _together(programs, seconds)
                slower = min((0, 1), key=lambda i: both[i] / rates[i])
                alone.append(rates[slower])
                shared.append(both[slower])
                if number + 1 < plan.rounds:
                    time.sleep(PAUSE_S)
        rate, beside = Figures(tuple(alone)), Figures(tuple(shared))
        yield Row("sessions", f"MLP alone, {host}", "steps/s", rate, note=f"{THREADS} threads")
        yield Row(
            "sessions", f"MLP, two at once, {host}: the slower over alone", "share", paired_ratios(beside, rate), None,
            Target(SHARE, at_least=True), f"{THREADS} threads",
        )  # fmt: skip


def _together(programs: list[Program], seconds: float) -> list[float]:
    for program in programs:
        program.begin(seconds)
    return [program.rate() for program in programs]


def _train_when_told(url: str, key: str) -> None:
    import gradwire

    from . import mlp
    from .training import READ_EVERY

    with gradwire.connect(url, key):
        training = mlp.build(gradwire)
        for line in sys.stdin:
            steps, began = 0, time.perf_counter()
            until = began + float(line)
            while time.perf_counter() < until:
                training.step(steps)
                steps += 1
                if not steps % READ_EVERY:
                    training.step(steps).item()
                    steps += 1
            training.step(steps).item()
            print(json.dumps((steps + 1) / (time.perf_counter() - began)), flush=True)


if __name__ == "__main__":
    _train_when_told(sys.argv[1], sys.argv[2])
