"""A fleet is upgraded to the next version of the protocol, node by node and then its gateway, while programs of both
versions train."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import gradwire
from gradwire_protocol.frames import PROTOCOL_VERSION

from ..live_server import ADMIN_KEY, API_KEY, SOURCES, live_server
from .forwarder import forwarder
from .running_fleet import GPU_NODE, PATIENCE_S, RunningFleet, running_fleet
from .training import train

NEXT: Final = os.pathsep.join([str(Path(__file__).with_name("next_version")), SOURCES])
"""The path of a process of the next version."""

STEPS = 60
STAGES: Final = {20: "drained", 40: "upgraded"}
"""The steps before which a program waits for a stage of the upgrade, if that is not over yet."""

PROGRAM: Final = """
import sys, time
from pathlib import Path
import gradwire
from tests.fleet.test_upgrade import STAGES, STEPS
from tests.fleet.training import train
url, key, folder, seed = sys.argv[1:]
with gradwire.connect(url, key, durability="durable", patience=120) as session:
    def step(number):
        print(number, session.id, flush=True)
        time.sleep(0.05)
        while number in STAGES and not Path(folder, STAGES[number]).exists():
            time.sleep(0.05)
    print("weights", train(step, STEPS, int(seed)).hex(), flush=True)
"""


class Program:
    """A program that trains, and what it has printed."""

    def __init__(self, url: str, sources: str, folder: Path, seed: int) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, API_KEY, str(folder), str(seed)],
            env=os.environ | {"PYTHONPATH": sources}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(iter(self._process.stdout.readline, ""))

    def wait_for_step(self, number: int) -> str:
        """Wait until a step has begun; returns the id of the session."""
        end = time.monotonic() + PATIENCE_S
        while not any(line.startswith(f"{number} ") for line in self.lines):
            assert time.monotonic() < end, self.lines
            assert self._process.poll() is None, self.lines
            time.sleep(0.05)
        return self.lines[-1].split()[1]

    def weights(self) -> bytes:
        """What it has learned."""
        assert self._process.wait(PATIENCE_S) == 0
        self._reader.join(PATIENCE_S)
        return bytes.fromhex(self.lines[-1].split()[1])

    def end(self) -> None:
        self._process.kill()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    with running_fleet(store=tmp_path / "store", max_key_sessions=0, placement_timeout_s=60) as found:
        found.wait_warm()
        yield found


@pytest.fixture
def start(fleet: RunningFleet, tmp_path: Path) -> Iterator[Callable[[str, int], Program]]:
    """Start a program by its path and seed. The newest gateway serves it."""
    programs: list[Program] = []
    with forwarder(lambda: [each.url for each in reversed(fleet.gateways) if each.alive]) as url:

        def begin(sources: str, seed: int) -> Program:
            programs.append(Program(url, sources, tmp_path, seed))
            return programs[-1]

        yield begin
        for each in programs:
            each.end()


def expected(seed: int) -> bytes:
    with live_server() as server, gradwire.connect(server.url, server.api_key):
        return train(steps=STEPS, seed=seed)


def spoken_by(fleet: RunningFleet, worker: dict[str, Any]) -> int:
    """The newest version of the protocol that a worker speaks."""
    with fleet.http(ADMIN_KEY) as http:
        text = http.get(f"/v1/fleet/workers/{worker['id']}/metrics").text
    line = next(line for line in text.splitlines() if line.startswith("gradwire_build_info{"))
    return int(line.partition('protocol="')[2].partition('"')[0])


def test_an_upgrade_is_no_event_for_programs_of_both_versions(
    fleet: RunningFleet, start: Callable[[str, int], Program], tmp_path: Path
) -> None:
    programs = [start(SOURCES, 0), start(NEXT, 1)]
    sessions = [each.wait_for_step(5) for each in programs]
    old = {each["id"] for each in fleet.state()["nodes"]}
    assert {spoken_by(fleet, fleet.worker_of(each)) for each in sessions} == {PROTOCOL_VERSION}

    fleet.nodes.append(fleet.cluster.add_node(**GPU_NODE, env_vars={"PYTHONPATH": NEXT}))
    fleet.wait(lambda state: len(state["nodes"]) > len(old), "the new node is not there")
    with fleet.http(ADMIN_KEY) as http:
        http.timeout = PATIENCE_S
        for node in old:
            answer = http.post(f"/v1/fleet/nodes/{node}/drain")
            assert answer.status_code == 200, answer.text
            assert not answer.json()["kept"]
    workers = [fleet.worker_of(each) for each in sessions]
    assert not old & {each["node"] for each in workers}
    assert {spoken_by(fleet, each) for each in workers} == {PROTOCOL_VERSION + 1}
    (tmp_path / "drained").touch()
    for each in programs:
        each.wait_for_step(21)

    former = fleet.gateway
    assert fleet.start_gateway(NEXT).alive
    assert former.process is not None
    former.process.terminate()
    assert former.process.wait(PATIENCE_S) == 0
    with fleet.http() as http:
        assert http.get("/v1/version").json()["protocol"] == PROTOCOL_VERSION + 1
    (tmp_path / "upgraded").touch()
    programs += [start(SOURCES, 2), start(NEXT, 3)]
    for seed, each in enumerate(programs):
        assert each.weights() == expected(seed)
