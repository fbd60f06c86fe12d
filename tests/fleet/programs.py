"""Programs of their own processes that train in sessions of a fleet, for the long tests.

``python -m tests.fleet.programs URL SEED`` is such a program. At the end its weights must be those of an undisturbed
run, bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypedDict

from ..live_server import API_KEY, SOURCES, live_server
from .training import train

KERNELS: Final[dict[str, Any]] = {"compiled_kernels": "off"}
"""Of all servers: a session switches to compiled kernels, which round differently, when its process has loaded them."""

SETTINGS: Final[dict[str, Any]] = KERNELS | {
    "log_level": "error", "max_key_sessions": 0, "placement_timeout_s": 120, "sessions_per_worker": 3, "lease_s": 6,
}  # fmt: skip
"""Of the fleet; the lease is the default one, since such a run keeps a small machine busy."""

PAUSE_S = 0.5
"""A step that takes longer is a pause: it waited for something that was killed or moved."""


class Trained(TypedDict):
    """What a program comes to: the digest of its weights, and the loss of each step."""

    weights: str
    losses: list[float]


@dataclass
class Plan:
    """How each program trains.

    Attributes:
        pace: seconds between steps.
    """

    steps: int
    pace: float

    def start(self, url: str, seed: int, durability: str = "durable") -> subprocess.Popen[str]:
        """Start a program."""
        given = [url, str(seed), "--steps", str(self.steps), "--pace", str(self.pace), "--durability", durability]
        command = [sys.executable, "-m", "tests.fleet.programs", *given]
        environment = os.environ | {"PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def undisturbed(self, seeds: range) -> list[Trained]:
        """What undisturbed runs come to."""
        import gradwire

        with live_server(max_sessions=len(seeds) + 1, **KERNELS) as server:
            found = []
            for seed in seeds:
                losses: list[float] = []
                with gradwire.connect(server.url, server.api_key):
                    weights = train(steps=self.steps, seed=seed, losses=losses)
                found.append({"weights": hashlib.sha256(weights).hexdigest(), "losses": losses})
            return found


def summary(programs: Sequence[subprocess.Popen[str]], expected: Sequence[Trained]) -> dict[str, Any]:
    """Wait for programs: how many have the right weights, their pauses and errors, and where wrong ones went wrong."""
    outcomes = [_outcome(each) for each in programs]
    pauses = sorted(pause for each in outcomes for pause in each.get("pauses", ()))
    pairs = list(zip(outcomes, expected, strict=True))
    right = [found.get("weights") == wanted["weights"] for found, wanted in pairs]
    wrong = [_difference(found, wanted) for (found, wanted), same in zip(pairs, right, strict=True) if not same]
    return {
        "sessions": len(programs), "identical": sum(right), "pauses": len(pauses), "median_s": _part(pauses, 0.5),
        "p95_s": _part(pauses, 0.95), "longest_s": pauses[-1] if pauses else 0.0,
        "errors": [each["error"] for each in outcomes if "error" in each], "wrong": wrong,
    }  # fmt: skip


def _difference(found: dict[str, Any], wanted: Trained) -> dict[str, Any]:
    """The first step whose loss is another one."""
    losses = found.get("losses", [])
    for step, (had, should) in enumerate(zip(losses, wanted["losses"], strict=False)):
        if had != should:
            return {"step": step, "losses": losses[step : step + 3], "wanted": wanted["losses"][step : step + 3]}
    return {"step": len(losses)}


def _outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate()
    if process.returncode == 0:
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found
    if process.returncode == -signal.SIGKILL:
        return {"error": "the program was killed"}
    return {"error": errors[-1500:]}


def _part(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def main() -> None:
    """Train, and print the weights' digest and the pauses."""
    import gradwire

    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("url")
    command.add_argument("seed", type=int)
    command.add_argument("--steps", type=int, required=True)
    command.add_argument("--pace", type=float, required=True)
    command.add_argument("--durability", required=True)
    options = command.parse_args()
    times: list[float] = []
    losses: list[float] = []

    def step(number: int) -> None:
        time.sleep(options.pace)
        times.append(time.monotonic())

    with gradwire.connect(options.url, API_KEY, durability=options.durability, patience=300):
        weights = train(step, options.steps, options.seed, losses)
    longest = [b - a - options.pace for a, b in pairwise(times)]
    pauses = [round(each, 3) for each in longest if each > PAUSE_S]
    print(json.dumps({"weights": hashlib.sha256(weights).hexdigest(), "losses": losses, "pauses": pauses}))


if __name__ == "__main__":
    main()
