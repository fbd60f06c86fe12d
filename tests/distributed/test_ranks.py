"""Ranks that exchange tensors, on one server: what each has afterwards, and what one that fails does to the others."""

from __future__ import annotations

import pytest

from .conftest import PROGRAMS


@pytest.mark.parametrize("size", [2, 4])
def test_each_collective_gives_each_rank_what_it_has_to(launch, size):
    done = launch("--nproc", str(size), str(PROGRAMS / "exchanging.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[rank {i}] done" for i in range(size)]


FAILING = """
import torch, torch.distributed as dist
dist.init_process_group()
x = torch.ones(3)
dist.all_reduce(x)
x.tolist()
if dist.get_rank() == 1:
    raise ValueError("the data of this rank are bad")
dist.all_reduce(x)
print(x)
"""


def test_a_rank_that_raises_ends_the_others_with_an_error_that_names_it(launch):
    done = launch("--nproc", "2", "-c", FAILING)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "[rank 1] ValueError: the data of this rank are bad" in done.stderr
    assert "[rank 0] gradwire_protocol.errors.CollectiveError:" in done.stderr
    of_rank_0 = [line for line in done.stderr.splitlines() if line.startswith("[rank 0]") and "CollectiveError" in line]
    assert "rank 1" in of_rank_0[-1]
    report = done.stderr[done.stderr.index("gradwire run:") :]
    assert report.startswith("gradwire run: rank 1 failed first, with exit code 1")
    assert "    ValueError: the data of this rank are bad" in report


SKIPPING = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group()
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loss = model(torch.ones(2, 2)).sum()
if dist.get_rank() == 1:
    loss = loss * torch.linalg.inv(torch.zeros(2, 2)).sum()
loss.backward()
optimizer.step()
try:
    print(model.module.weight.sum().item())
except RuntimeError as error:
    print(type(error).__name__, str(error).splitlines()[0])
"""


def test_a_rank_whose_backward_fails_takes_no_gradient_of_the_others(launch):
    done = launch("--nproc", "2", "-c", SKIPPING)
    assert done.returncode == 0, done.stdout + done.stderr
    told = dict(line.split("] ", 1) for line in done.stdout.splitlines())
    assert "singular" in told["[rank 1"].lower()
    assert told["[rank 0"].startswith("CollectiveError") and "rank 1" in told["[rank 0"]


UNEQUAL = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group()
x = torch.ones(3 + dist.get_rank())
try:
    dist.all_reduce(x)
    print(x)
except RuntimeError as error:
    print(type(error).__name__, str(error).splitlines()[0])
"""


def test_tensors_of_other_shapes_end_a_collective_with_an_error_that_names_a_rank(launch):
    done = launch("--nproc", "2", "-c", UNEQUAL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all("CollectiveError" in line and "rank" in line for line in done.stdout.splitlines())
