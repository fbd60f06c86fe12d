"""A fleet on this machine: two nodes of a Ray cluster with logical GPUs, and any number of gateways."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from ..live_server import ADMIN_KEY, API_KEY, SOURCES, LiveServer, server_process

MODEL: Final = "H100"
GPU_NODE: Final = {
    "num_cpus": 4, "num_gpus": 2, "resources": {f"accelerator_type:{MODEL}": 1}, "labels": {"zone": "east"},
    "object_store_memory": 100_000_000,
}  # fmt: skip
MAX_KEY_SESSIONS: Final = 6
SETTINGS: Final = {
    "placement_timeout_s": 12, "max_key_sessions": MAX_KEY_SESSIONS, "lease_s": 2, "sessions_per_worker": 4,
}  # fmt: skip
PATIENCE_S: Final = 60.0
QUIET: Final = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "PYTHONPATH": SOURCES,
}
"""The environment of Ray's processes."""


@dataclass
class RunningFleet:
    """A fleet.

    Attributes:
        cluster: Ray's.
        nodes: beside the head; the last has GPUs.
        gateways: all that were started, the first one first.
    """

    cluster: Any
    nodes: list[Any]
    settings: dict[str, Any]
    stack: ExitStack
    gateways: list[LiveServer] = field(default_factory=list)

    @property
    def gateway(self) -> LiveServer:
        """The first gateway that runs."""
        return next(each for each in self.gateways if each.alive)

    @property
    def url(self) -> str:
        return self.gateway.url

    def start_gateway(self, sources: str = SOURCES) -> LiveServer:
        """One gateway more. ``sources`` is its ``PYTHONPATH``."""
        found = self.stack.enter_context(server_process("--session-host", "ray", sources=sources, **self.settings))
        self.gateways.append(found)
        return found

    def replace_node(self) -> None:
        """Add a node like the last one, and end that without warning: its raylet dies, as with a machine."""
        self.nodes.append(self.cluster.add_node(**GPU_NODE))
        self.cluster.remove_node(self.nodes.pop(-2), allow_graceful=False)

    def http(self, key: str = API_KEY) -> httpx.Client:
        """A client of the first gateway."""
        return self.gateway.http(key)

    def state(self) -> dict[str, Any]:
        """What the Directory says of the fleet."""
        with self.http(ADMIN_KEY) as http:
            answer = http.get("/v1/fleet")
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

    def worker_of(self, session: str) -> dict[str, Any]:
        """The worker that has a session, as the Directory describes it."""
        import ray

        directory = ray.get_actor("gradwire-directory", namespace="gradwire")
        tenant = ray.get(directory.tenant_of.remote(session))["tenant"]
        place = ray.get(directory.locate.remote(session, tenant))
        return next(each for each in self.state()["workers"] if each["id"] == place["worker"])

    def wait(self, condition: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        """Wait until the state of the fleet meets a condition."""
        end = time.monotonic() + PATIENCE_S
        while True:
            state = self.state()
            if condition(state):
                return state
            assert time.monotonic() < end, f"{what}: {state}"
            time.sleep(0.2)

    def wait_warm(self) -> dict[str, Any]:
        """Wait until a worker is warm."""
        return self.wait(lambda state: any(each["state"] == "warm" for each in state["workers"]), "no warm worker")


def kill(pid: int) -> None:
    """End a process at once."""
    os.kill(pid, signal.SIGKILL)


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended."""
    end = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end, f"process {pid} still runs"
        time.sleep(0.05)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Environment variables for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def running_fleet(**settings: Any) -> Iterator[RunningFleet]:
    """A fleet with a gateway; ``settings`` are those of the server."""
    ray = pytest.importorskip("ray", reason="a fleet needs Ray: pip install 'gradwire[cluster]'")
    from ray.cluster_utils import Cluster

    with environment(**QUIET), ExitStack() as stack:
        head = {"num_cpus": 4, "num_gpus": 0, "include_dashboard": False, "object_store_memory": 100_000_000}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        stack.callback(cluster.shutdown)
        node = cluster.add_node(**GPU_NODE)
        stack.enter_context(environment(RAY_ADDRESS=cluster.address))
        ray.init(address=cluster.address, namespace="gradwire", log_to_driver=False)
        stack.callback(ray.shutdown)
        fleet = RunningFleet(cluster, [node], {**SETTINGS, **settings}, stack)
        fleet.start_gateway()
        yield fleet
