"""``python -m tests.fleet.soak_kills``: kill workers, nodes and gateways at random under training programs.

Each program is a process with a ``durable`` session. At the end its weights must be those of an undisturbed run, bit by
bit. Prints one line of JSON: the kills, the longest pauses of programs, and whether all weights were right.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from contextlib import suppress

from .forwarder import forwarder
from .programs import SETTINGS, Plan, summary
from .running_fleet import RunningFleet, kill, running_fleet


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
    command.add_argument("--steps", type=int, default=1500)
    command.add_argument("--pace", type=float, default=0.2, help="seconds between a program's steps")
    command.add_argument("--every", type=float, default=5.0, help="seconds between kills")
    command.add_argument("--seconds", type=float, default=3600.0, help="stop killing after this time")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--store", required=True, help="an empty directory, or s3://bucket/prefix")
    options = command.parse_args()
    plan, seeds = Plan(options.steps, options.pace), range(options.sessions)
    expected = plan.undisturbed(seeds)
    chance = random.Random(options.seed)
    kills: dict[str, int] = {}
    with running_fleet(store=options.store, warm_workers=4, **SETTINGS) as fleet:
        fleet.start_gateway()
        with forwarder(lambda: [each.url for each in fleet.gateways if each.alive]) as url:
            programs = [plan.start(url, seed) for seed in seeds]
            end = time.monotonic() + options.seconds
            while any(each.poll() is None for each in programs):
                time.sleep(options.every)
                if sum(kills.values()) < options.kills and time.monotonic() < end:
                    with suppress(Exception):  # the gateway that was asked may just have been killed
                        if what := kill_something(fleet, chance):
                            kills[what] = kills.get(what, 0) + 1
                            print(f"{sum(kills.values())} kills, the last of a {what}", file=sys.stderr, flush=True)
            found = summary(programs, expected)
    print(json.dumps({"kills": kills, "total": sum(kills.values()), "steps": options.steps, **found}))
    return 0 if found["identical"] == len(seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
