"""DistributedDataParallel: the losses of one large batch, and of PyTorch's own on the same data."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from .conftest import PROGRAMS, inherited

TRAINING = PROGRAMS / "training.py"
EXACT = 1e-12


def result(output: str) -> dict[str, Any]:
    """What the program printed on rank 0."""
    line = next(line for line in output.splitlines() if "RESULT" in line)
    found: dict[str, Any] = json.loads(line[line.index("{") :])
    return found


def of_pytorch(size: int) -> dict[str, Any]:
    """What the program finds with PyTorch's own module, over gloo."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(TRAINING)], env=inherited() | shared | {"RANK": str(i), "LOCAL_RANK": str(i)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for i in range(size)
    ]  # fmt: skip
    try:
        told = [rank.communicate(timeout=240) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * size, told[0][1]
    return result(told[0][0])


def closest(ours: Any, theirs: Any, place: str = "") -> None:
    """Compare nested results: numbers within 1e-12, all else exactly."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), place
        for name, value in ours.items():
            closest(value, theirs[name], f"{place}.{name}")
    elif isinstance(ours, list) and ours and isinstance(ours[0], (list, dict)):
        assert len(ours) == len(theirs), place
        for i, value in enumerate(ours):
            closest(value, theirs[i], f"{place}[{i}]")
    else:
        np.testing.assert_allclose(np.array(ours, float), np.array(theirs, float), EXACT, EXACT, err_msg=place)


@pytest.fixture(scope="module")
def of_two(launch) -> dict[str, Any]:
    done = launch("--nproc", "2", str(TRAINING))
    assert done.returncode == 0, done.stdout + done.stderr
    return result(done.stdout)


def test_two_ranks_compute_what_two_ranks_of_pytorch_do(of_two):
    theirs = of_pytorch(2)
    for name, ours in of_two.items():
        closest(ours, theirs[name], name)


def numbers(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def of_one_large_batch() -> tuple[list[float], list[torch.Tensor]]:
    """The program's first training in one process, with whole batches."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    with torch.no_grad():
        for i, param in enumerate(model.parameters()):
            param.copy_(numbers(10 + i, *param.shape) * 0.5)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    losses = []
    for step in range(5):
        x = numbers(100 + step, 24, 6)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [param.detach() for param in model.parameters()]


def test_ranks_have_the_losses_of_one_large_batch(of_two, launch):
    losses, params = of_one_large_batch()
    done = launch("--nproc", "4", str(TRAINING))
    assert done.returncode == 0, done.stdout + done.stderr
    for found in (of_two, result(done.stdout)):
        closest(found["plain"][0], losses)
        for ours, theirs in zip(found["plain"][1].values(), params, strict=True):
            closest(ours, theirs.tolist())


ROUND_TRIPS = """
import torch, gradwire
import torch.distributed as dist
from torch import nn
dist.init_process_group("nccl")
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
optimizer = torch.optim.AdamW(model.parameters())
session, x = gradwire.current_session(), torch.randn(8, 4)
def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
for _ in range(4):
    step().item()
before = session.stats()["round_trips"], session.stats()["structure_new"]
for _ in range(10):
    step().item()
after = session.stats()["round_trips"], session.stats()["structure_new"]
print(after[0] - before[0], after[1] - before[1])
"""


def test_a_step_costs_one_round_trip_and_repeats(launch):
    done = launch("--nproc", "2", "-c", ROUND_TRIPS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["[rank 0] 10 0", "[rank 1] 10 0"]


LEFT_OUT = """
import torch
import torch.distributed as dist
from torch import nn
dist.init_process_group()
layers = nn.ModuleDict({"used": nn.Linear(2, 2), "idle": nn.Linear(2, 2)})
layers.forward = lambda x: layers["used"](x)
model = nn.parallel.DistributedDataParallel(layers)
x = torch.ones(1, 2)
model(x).sum().backward()
try:
    model(x)
except RuntimeError as error:
    print(error)
with model.join(enable=False):
    pass
for refused in (model.join, lambda: model.register_comm_hook(None, None)):
    try:
        refused()
    except NotImplementedError as error:
        print("refused")
print(dist.is_torchelastic_launched(), dist.get_node_local_rank() == dist.get_rank())
"""


def test_parameters_that_a_loss_leaves_out_are_named(launch):
    done = launch("--nproc", "2", "-c", LEFT_OUT)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith("[rank 0]")]
    assert "idle.weight, idle.bias" in told[0]
    assert "find_unused_parameters=True" in told[0]
    assert told[1:] == ["[rank 0] refused", "[rank 0] refused", "[rank 0] True True"]


NORMALIZED = """
import torch
import torch.distributed as dist
from torch import nn
dist.init_process_group()
torch.set_default_dtype(torch.float64)
torch.manual_seed(3)
x, weights = torch.randn(12, 3, 5), torch.randn(12, 3, 5)
whole = nn.BatchNorm1d(3)
ranks = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3)))
both = []
for model, rows, times in ((whole, slice(None), 1), (ranks, slice(dist.get_rank(), None, 2), 2)):
    inputs = x.clone().requires_grad_()
    for _ in range(2):
        (model(inputs[rows]) * weights[rows]).sum().mul(times).backward()
    both.append([inputs.grad[rows] / times, *[p.grad for p in model.parameters()], *[b for b in model.buffers()]])
for ours, theirs in zip(both[1], both[0]):
    if theirs.shape == x.shape:
        theirs = theirs[dist.get_rank() :: 2]
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
print("equal", len(both[0]))
"""


def test_a_synchronized_normalisation_is_that_of_the_whole_batch(launch):
    done = launch("--nproc", "2", "-c", NORMALIZED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["[rank 0] equal 6", "[rank 1] equal 6"]


SPAWNING = """
import os, sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def main(rank, size, fails):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=size)
    x = torch.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2.0, 2.0]
    if fails and rank == 1:
        raise ValueError("no")
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(main, args=(2, False), nprocs=2)
    try:
        mp.spawn(main, args=(2, True), nprocs=2)
    except mp.ProcessRaisedException as error:
        print(error.error_index, error.exit_code)
"""


def test_ranks_are_spawned_by_a_program_itself(launch, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SPAWNING)
    done = launch(str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "1 1\n"
    assert "ValueError: no" in done.stderr
