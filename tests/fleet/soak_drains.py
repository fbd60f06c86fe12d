"""``python -m tests.fleet.soak_drains``: drain a node with all sessions on it, again and again, under programs.

Each program is a process with a session of its own; every fifth has no durability. At the end its weights must be those
of an undisturbed run, bit by bit. Prints one line of JSON: the drains, what they took, the longest pauses of programs,
and whether all weights were right.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..live_server import ADMIN_KEY
from .programs import SETTINGS, Plan, summary
from .running_fleet import RunningFleet, running_fleet

FIRST_STEPS_S = 5.0
"""How long programs train before the first drain, and between two."""

MOST_S = 300.0


def sessions_on(fleet: RunningFleet, node: str) -> int:
    """How many sessions the workers of a node have."""
    return sum(each["sessions"] for each in fleet.state()["workers"] if each["node"] == node)


def drain(fleet: RunningFleet, node: str) -> dict[str, Any]:
    """Move the sessions of a node to the others."""
    began = time.monotonic()
    with fleet.http(ADMIN_KEY) as http:
        http.timeout = MOST_S
        answer = http.post(f"/v1/fleet/nodes/{node}/drain")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
    return {"moved": len(found["moved"]), "kept": len(found["kept"]), "seconds": round(time.monotonic() - began, 2)}


def permit(fleet: RunningFleet, node: str) -> None:
    """Let a node take workers again."""
    with fleet.http(ADMIN_KEY) as http:
        assert http.delete(f"/v1/fleet/nodes/{node}/drain").status_code == 200


def rounds(fleet: RunningFleet, programs: Sequence[subprocess.Popen[str]], most: int) -> list[dict[str, Any]]:
    """Drain the node that has the sessions, while all programs train."""
    found = []
    while len(found) < most and all(each.poll() is None for each in programs):
        time.sleep(FIRST_STEPS_S)
        nodes = [each["id"] for each in fleet.state()["nodes"]]
        node = max(nodes, key=lambda each: sessions_on(fleet, each))
        found.append(drain(fleet, node))
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
        permit(fleet, node)
    return found


def main() -> int:
    """Run. Returns the exit status: 1 when a program failed or had other weights, or a session stayed."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("--drains", type=int, default=4)
    command.add_argument("--sessions", type=int, default=20)
    command.add_argument("--steps", type=int, default=300)
    command.add_argument("--pace", type=float, default=0.2, help="seconds between a program's steps")
    command.add_argument("--store", required=True, help="an empty directory, or s3://bucket/prefix")
    options = command.parse_args()
    plan, seeds = Plan(options.steps, options.pace), range(options.sessions)
    expected = plan.undisturbed(seeds)
    with running_fleet(store=options.store, worker_cpus=0.4, **SETTINGS) as fleet:
        other = fleet.state()["nodes"][0]["id"]
        drain(fleet, other)  # so that all sessions begin on one node
        programs = [plan.start(fleet.url, seed, "none" if seed % 5 == 4 else "durable") for seed in seeds]
        end = time.monotonic() + MOST_S
        while fleet.state()["sessions"] < len(seeds) and all(each.poll() is None for each in programs):
            assert time.monotonic() < end, fleet.state()
            time.sleep(0.5)
        permit(fleet, other)
        drains = rounds(fleet, programs, options.drains)
        found = summary(programs, expected)
    print(json.dumps({"drains": drains, "steps": options.steps, **found}))
    return 0 if found["identical"] == len(seeds) and drains and not any(each["kept"] for each in drains) else 1


if __name__ == "__main__":
    sys.exit(main())
