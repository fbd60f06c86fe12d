"""Nodes are drained while sessions train: alone, or as ranks that wait for each other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import gradwire

from ..distributed.conftest import inherited
from ..live_server import ADMIN_KEY, API_KEY, SOURCES, LiveServer, live_server
from ..server.ranks import WAIT_S, ranks
from ..server.test_recovered_ranks import begin, step
from .running_fleet import RunningFleet, running_fleet
from .training import train

DRAIN_AT = 4
PATIENT: Final = {"placement_timeout_s": 60}
"""A busy machine takes its time to start workers."""

TRAINING = """
import json, os, sys, time
import gradwire
rank = int(os.environ["RANK"])
levels = os.environ["LEVELS"].split(",")
gradwire.connect(durability=levels[rank % len(levels)])
import torch
import numpy as np
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
size = dist.get_world_size()
rng = np.random.default_rng(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), 0.05)
losses = []
for number in range(120):
    x = torch.from_numpy(rng.standard_normal((24, 6)).astype(np.float32))[rank::size]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach())
    losses.append(loss.item())
    print("STEP", number, gradwire.current_session().id, flush=True)
    over = torch.tensor(float(os.path.exists(os.environ["OVER"])))
    dist.all_reduce(over)
    if over.item():
        break
    time.sleep(float(os.environ["PACE"]))
print("RESULT", json.dumps(losses), flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """Two nodes, two sessions a worker."""
    store = tmp_path_factory.mktemp("store")
    with running_fleet(store=store, sessions_per_worker=2, max_key_sessions=0, park_after_s=1.5, **PATIENT) as found:
        found.wait_warm()
        yield found


@contextmanager
def drained(fleet: RunningFleet, session: str) -> Iterator[dict[str, Any]]:
    """Drain the node that has a session, for a while."""
    node = fleet.worker_of(session)["node"]
    with fleet.http(ADMIN_KEY) as http:
        http.timeout = WAIT_S
        answer = http.post(f"/v1/fleet/nodes/{node}/drain")
        assert answer.status_code == 200, answer.text
        try:
            yield answer.json()
        finally:
            assert http.delete(f"/v1/fleet/nodes/{node}/drain").status_code == 200


def train_ranks(
    server: LiveServer, size: int, levels: str, over: Path, fleet: RunningFleet | None = None
) -> list[list[float]]:
    """The losses of each rank. Of a ``fleet``, the node of one of them is drained in the middle, and they end a while
    after ``over`` is there."""
    command = [sys.executable, "-m", "gradwire", "run", "--nproc", str(size), "-c", TRAINING]
    known = {"PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": API_KEY, "LEVELS": levels}
    known |= {"GRADWIRE_PATIENCE": str(WAIT_S), "PACE": "0.25" if fleet is not None else "0", "OVER": str(over)}
    found = {}
    with subprocess.Popen(
        command, env=inherited() | known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        lines, last = [], 0
        try:
            assert run.stdout is not None
            for line in run.stdout:
                lines.append(line)
                words = line.split()
                if f"STEP {DRAIN_AT} " in line and fleet is not None:
                    with drained(fleet, words[-1]) as answer:
                        assert words[-1] in answer["moved"], answer
                        assert not answer["kept"], answer
                        assert fleet.worker_of(words[-1])["node"] != answer["node"]
                    fleet, last = None, DRAIN_AT + 8
                if last and "STEP" in words and int(words[-2]) >= last:
                    over.touch()
                if "RESULT" in line:
                    found[line.partition("RESULT")[0]] = json.loads(line.partition("RESULT")[2])
            assert run.wait(WAIT_S) == 0, "".join(lines)
        finally:
            run.kill()
    assert len(found) == size, "".join(lines)
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize(("size", "levels"), [(2, "durable"), (2, "none"), (4, "durable,none")])
def test_a_drained_rank_is_a_delay_for_all(fleet: RunningFleet, size: int, levels: str, tmp_path: Path) -> None:
    with live_server() as server:
        expected = train_ranks(server, size, "none", tmp_path / "never")
    fleet.wait_warm()
    found = train_ranks(fleet.gateway, size, levels, tmp_path / "over", fleet)
    assert len(found[0]) > DRAIN_AT + 4
    assert found == [each[: len(found[0])] for each in expected]


def test_a_rank_that_waits_in_a_collective_is_drained(fleet: RunningFleet) -> None:
    """Its frame is given up, and its client sends it again."""
    with live_server() as server, ranks(server, 2) as pair:
        tensors = begin(pair)
        expected = [pair.do(lambda rank: step(rank, tensors)) for _ in range(3)]
    with ranks(fleet.gateway, 2, durability="durable") as pair, ThreadPoolExecutor(1) as aside:
        tensors = begin(pair)
        assert pair.do(lambda rank: step(rank, tensors)) == expected[0]
        waiting = aside.submit(lambda: step(pair[0], tensors))
        time.sleep(0.5)
        with drained(fleet, pair[0].id) as answer:
            assert pair[0].id in answer["moved"]
            assert step(pair[1], tensors) == expected[1][1]
            assert waiting.result(WAIT_S) == expected[1][0]
            assert pair.do(lambda rank: step(rank, tensors)) == expected[2]


def test_ranks_are_put_away_and_come_back(fleet: RunningFleet) -> None:
    """Idle members of a group are parked, and their groups go on."""
    with live_server() as server, ranks(server, 2) as pair:
        tensors = begin(pair)
        expected = [pair.do(lambda rank: step(rank, tensors)) for _ in range(2)]
    with ranks(fleet.gateway, 2, durability="durable") as pair:
        tensors = begin(pair)
        assert pair.do(lambda rank: step(rank, tensors)) == expected[0]
        fleet.wait(lambda state: state["dormant"] >= 2, "the ranks are not parked")
        assert pair.do(lambda rank: step(rank, tensors)) == expected[1]


def test_a_session_in_memory_moves(fleet: RunningFleet) -> None:
    """With its graph, its random numbers and its clients."""
    before = gradwire._core.session.current_session._current
    with live_server() as server, gradwire.connect(server.url, server.api_key):
        expected = train()
    gradwire._core.session.current_session._current = before
    with gradwire.connect(fleet.url, API_KEY, durability="none") as session:
        x = gradwire.ones(3, requires_grad=True)
        y = (x * 3).exp().sum()
        y.item()

        def drain(number: int) -> None:
            if number in (8, 16):
                with drained(fleet, session.id) as answer:
                    assert session.id in answer["moved"]
                    assert fleet.worker_of(session.id)["node"] != answer["node"]

        assert train(drain) == expected
        y.backward()
        assert x.grad is not None
        assert x.grad.tolist() == pytest.approx([3 * 2.718281828**3] * 3, 1e-5)
        assert session.durability == "none"
