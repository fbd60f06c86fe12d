"""A node that was drained takes workers again, also those that Ray was asked for before."""

from __future__ import annotations

from typing import Any

from ..live_server import ADMIN_KEY
from .running_fleet import RunningFleet, running_fleet

PATIENCE_S = 600
"""Longer than the test waits: a worker that stays where it was asked for fails it."""


def drain(fleet: RunningFleet, node: str, method: str = "POST") -> None:
    with fleet.http(ADMIN_KEY) as http:
        http.timeout = 60
        assert http.request(method, f"/v1/fleet/nodes/{node}/drain").status_code == 200


def warm(state: dict[str, Any], node: str) -> int:
    return sum(each["state"] == "warm" and each["node"] == node for each in state["workers"])


def test_workers_that_found_no_room_beside_a_drained_node_start_there_afterwards() -> None:
    with running_fleet(worker_cpus=2, warm_workers=3, placement_timeout_s=PATIENCE_S) as fleet:
        first, other = [each["id"] for each in fleet.wait(lambda state: len(state["nodes"]) == 2, "two nodes")["nodes"]]
        drain(fleet, first)
        full = fleet.wait(lambda state: warm(state, other) == 2, "no worker on the other node")
        assert [each["state"] for each in full["workers"]].count("starting") == 1
        drain(fleet, first, "DELETE")
        fleet.wait(lambda state: warm(state, first) == 1, "no worker on the node that is in use again")
