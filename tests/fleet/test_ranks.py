"""Groups of ranks whose sessions are on workers of several nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ..distributed.conftest import inherited
from ..live_server import API_KEY, SOURCES, LiveServer, live_server
from ..server.ranks import WAIT_S, Ranks, ranks, until
from ..server.test_recovered_ranks import begin, step
from .running_fleet import RunningFleet, kill, running_fleet

STEPS = 5
NODE = {"num_cpus": 4, "num_gpus": 0, "object_store_memory": 100_000_000}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """Three nodes with room for one worker each, and a worker for each session."""
    store = tmp_path_factory.mktemp("store")
    with running_fleet(store=store, worker_per="session", worker_cpus=2.5, max_key_sessions=0) as found:
        found.nodes.append(found.cluster.add_node(**NODE))
        found.wait_warm()
        yield found


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    """What undisturbed ranks of one server find in each step."""
    with live_server() as server, ranks(server, 2) as pair:
        tensors = begin(pair)
        return [pair.do(lambda rank: step(rank, tensors)) for _ in range(STEPS)]


@pytest.fixture(scope="module")
def pair(wide: RunningFleet) -> Iterator[Ranks]:
    """Two ranks on two nodes."""
    with ranks(wide.gateway, 2, durability="durable") as found:
        workers = [wide.worker_of(rank.id) for rank in found]
        assert workers[0]["node"] != workers[1]["node"]
        yield found


def test_ranks_on_two_nodes_exchange_values(pair: Ranks) -> None:
    pair.open("first")
    replies = pair.do(lambda rank: rank.run("all_reduce_", [1.0, 2.0 + rank.rank], "first"))
    assert [reply["values"][0]["values"] for reply in replies] == [[2.0, 5.0]] * 2
    assert [rank.counts("first")["connected"] for rank in pair] == [1, 1]
    assert pair.http.delete(f"{pair[1].session}/groups/first").status_code == 204
    reply = pair[0].run("all_reduce_", [1.0], "first")
    assert "closed the group" in json.dumps(reply["errors"])


def test_missing_ranks_are_named(pair: Ranks) -> None:
    answer = pair[0].open(3, "three", timeout_s=1.5)
    assert answer.status_code >= 400
    assert "ranks 1, 2 did not come within 1.5 s" in answer.json()["detail"]


def test_killed_workers_and_a_new_directory_are_a_delay_for_all_ranks(
    wide: RunningFleet, pair: Ranks, expected: list[Any]
) -> None:
    """One waits in a collective while the worker of the other, which it waits for, is killed."""
    import ray

    def fail_once(victim: int, at: int) -> None:
        waiting = pair.pool.submit(lambda: step(pair[1 - victim], tensors))
        former = wide.worker_of(pair[victim].id)
        kill(former["pid"])
        wide.wait(lambda state: all(each["id"] != former["id"] for each in state["workers"]), "the worker is there")
        found = [step(pair[victim], tensors)] * 2
        found[1 - victim] = waiting.result(WAIT_S)
        assert found == expected[at]

    tensors = begin(pair)
    assert pair.do(lambda rank: step(rank, tensors)) == expected[0]
    fail_once(0, at=1)
    aside = ThreadPoolExecutor(1)
    early = aside.submit(lambda: pair[0].open(2, "late", timeout_s=60))
    until(lambda: early.running(), "a rank that waits")
    ray.kill(ray.get_actor("gradwire-directory", namespace="gradwire"), no_restart=False)
    assert pair.do(lambda rank: step(rank, tensors)) == expected[2]
    assert pair[1].open(2, "late", timeout_s=60).status_code == 201
    assert early.result(WAIT_S).status_code == 201
    fail_once(1, at=3)
    assert pair.do(lambda rank: step(rank, tensors)) == expected[4]


TRAINING = """
import json, torch
import numpy as np
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
rng = np.random.default_rng(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).double()
with torch.no_grad():
    for param in model.parameters():
        param.copy_(torch.from_numpy(rng.standard_normal(tuple(param.shape)) * 0.5))
model = DistributedDataParallel(model) if size > 1 else model
optimizer = torch.optim.Adam(model.parameters(), 0.05)
losses = []
for _ in range(6):
    x = torch.from_numpy(rng.standard_normal((24, 6)))[rank::size]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
    loss.backward()
    optimizer.step()
    found = loss.detach().clone()
    if size > 1:
        dist.all_reduce(found)
    losses.append((found / size).item())
if rank == 0:
    print("RESULT", json.dumps(losses), flush=True)
dist.destroy_process_group()
"""


def losses(server: LiveServer, size: int) -> list[float]:
    """What the program prints, with this many ranks."""
    command = [sys.executable, "-m", "gradwire", "run", "--nproc", str(size), "-c", TRAINING]
    known = {"PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": API_KEY}
    known["GRADWIRE_PATIENCE"] = str(WAIT_S)  # a busy machine takes its time to start workers
    most = 3 * WAIT_S
    done = subprocess.run(command, env=inherited() | known, capture_output=True, text=True, timeout=most, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if "RESULT" in line)
    found: list[float] = json.loads(line[line.index("RESULT") + len("RESULT") :])
    return found


def test_a_launched_job_has_the_losses_of_one_large_batch(wide: RunningFleet) -> None:
    """``gradwire run --nproc 2`` at a gateway."""
    for _ in range(2):  # the others are taken
        wide.nodes.append(wide.cluster.add_node(**NODE))
    with live_server() as server:
        large = losses(server, 1)
    np.testing.assert_allclose(losses(wide.gateway, 2), large, 1e-12)
