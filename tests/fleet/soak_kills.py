"""``python -m tests.fleet.soak_kills``: kill workers, nodes and gateways at random under training programs.

Each program is a process with a ``durable`` session. At the end its weights must be those of an undisturbed run, bit by
bit. Prints one line of JSON: the kills, the longest pauses of programs, and whether all weights were right.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from typing import Any

from ..live_server import API_KEY, SOURCES, live_server
from .forwarder import forwarder
from .running_fleet import RunningFleet, kill, running_fleet
from .training import train

PAUSE_S = 0.5
"""A step that takes longer is a pause: it waited for something that was killed."""


def program(url: str, seed: int, steps: int, pace: float) -> None:
    """Train, and print the weights' digest and the pauses."""
    import gradwire

    times: list[float] = []

    def step(number: int) -> None:
        time.sleep(pace)
        times.append(time.monotonic())

    with gradwire.connect(url, API_KEY, durability="durable", patience=300):
        weights = train(step, steps, seed)
    longest = [b - a - pace for a, b in pairwise(times)]
    pauses = [round(each, 3) for each in longest if each > PAUSE_S]
    print(json.dumps({"weights": hashlib.sha256(weights).hexdigest(), "pauses": pauses}))


def undisturbed(seeds: range, steps: int) -> list[str]:
    """The digests of the weights of undisturbed runs."""
    import gradwire

    with live_server(max_sessions=len(seeds) + 1) as server:
        found = []
        for seed in seeds:
            with gradwire.connect(server.url, server.api_key):
                found.append(hashlib.sha256(train(steps=steps, seed=seed)).hexdigest())
        return found


def kill_something(fleet: RunningFleet, chance: random.Random) -> str:
    """Kill a worker, a gateway or a node, and replace what a cluster's operator would replace."""
    what = chance.choices(("worker", "gateway", "node", "directory"), (12, 3, 1, 1))[0]
    if what == "worker":
        workers = [each for each in fleet.state()["workers"] if each["sessions"]]
        if not workers:
            return ""
        with suppress(ProcessLookupError):
            kill(chance.choice(workers)["pid"])
    elif what == "gateway":
        doomed = fleet.gateway
        fleet.start_gateway()
        kill(doomed.pid)
    elif what == "node":
        fleet.replace_node()
    else:
        import ray

        ray.kill(ray.get_actor("gradwire-directory", namespace="gradwire"), no_restart=False)
    return what


def main() -> int:
    """Run. Returns the exit status: 1 when a program failed or had other weights."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("--kills", type=int, default=200)
    command.add_argument("--sessions", type=int, default=20)
    command.add_argument("--steps", type=int, default=400)
    command.add_argument("--pace", type=float, default=0.2, help="seconds between a program's steps")
    command.add_argument("--every", type=float, default=2.0, help="seconds between kills")
    command.add_argument("--seconds", type=float, default=3600.0, help="stop killing after this time")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--store", required=True, help="an empty directory, or s3://bucket/prefix")
    command.add_argument("--program", nargs=2, metavar=("URL", "SEED"), help=argparse.SUPPRESS)
    options = command.parse_args()
    if options.program:
        url, seed = options.program
        program(url, int(seed), options.steps, options.pace)
        return 0
    seeds = range(options.sessions)
    expected = undisturbed(seeds, options.steps)
    chance = random.Random(options.seed)
    kills: dict[str, int] = {}
    limits = {"max_key_sessions": 0, "placement_timeout_s": 120, "sessions_per_worker": 3, "warm_workers": 2}
    settings: dict[str, Any] = {"store": options.store, "log_level": "error", **limits}
    with running_fleet(**settings) as fleet:
        fleet.start_gateway()
        with forwarder(lambda: [each.url for each in fleet.gateways if each.alive]) as url:
            programs = [_start(url, seed, options) for seed in seeds]
            end = time.monotonic() + options.seconds
            while any(each.poll() is None for each in programs):
                time.sleep(options.every)
                if sum(kills.values()) < options.kills and time.monotonic() < end:
                    with suppress(Exception):  # the gateway that was asked may just have been killed
                        if what := kill_something(fleet, chance):
                            kills[what] = kills.get(what, 0) + 1
                            print(f"{sum(kills.values())} kills, the last of a {what}", file=sys.stderr, flush=True)
            outcomes = [_outcome(each) for each in programs]
    pauses = sorted(pause for each in outcomes for pause in each.get("pauses", ()))
    right = [each.get("weights") == digest for each, digest in zip(outcomes, expected, strict=True)]
    print(
        json.dumps(
            {
                "kills": kills, "total": sum(kills.values()), "sessions": len(seeds), "steps": options.steps,
                "identical": sum(right), "pauses": len(pauses), "median_s": _part(pauses, 0.5),
                "p95_s": _part(pauses, 0.95), "longest_s": pauses[-1] if pauses else 0.0,
                "errors": [each["error"] for each in outcomes if "error" in each],
            }
        )
    )  # fmt: skip
    return 0 if all(right) else 1


def _start(url: str, seed: int, options: argparse.Namespace) -> subprocess.Popen[str]:
    given = ["--program", url, str(seed), "--steps", str(options.steps), "--pace", str(options.pace)]
    command = [sys.executable, "-m", "tests.fleet.soak_kills", "--store", options.store, *given]
    environment = os.environ | {"PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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


if __name__ == "__main__":
    sys.exit(main())
