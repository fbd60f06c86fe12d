"""Trains with DistributedDataParallel in the ways that programs do, and prints what came out as JSON.

It is written for PyTorch: the tests run it with gradwire's ``torch`` and with PyTorch's own.
"""

import json
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

ROWS = 24
DTYPE = torch.float64


def numbers(seed, *shape):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(DTYPE)


def fill(model, seed):
    with torch.no_grad():
        for i, param in enumerate(model.parameters()):
            param.copy_(numbers(seed + i, *param.shape) * 0.5)
    return model


def mlp(seed):
    return fill(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 1)).to(DTYPE), seed)


def mean_over_ranks(value):
    found = value.detach().clone()
    dist.all_reduce(found)
    return (found / dist.get_world_size()).item()


def state(model):
    return {name: value.tolist() for name, value in model.state_dict().items()}


def share(rows):
    return rows[dist.get_rank() :: dist.get_world_size()]


def plain():
    """Each rank has a share of each batch; many small buckets."""
    model = DistributedDataParallel(mlp(10 + dist.get_rank()), bucket_cap_mb=0.0002)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    losses = []
    for step in range(5):
        x = share(numbers(100 + step, ROWS, 6))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
        loss.backward()
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    return losses, state(model)


def accumulating():
    """Gradients of two small batches come together before they are averaged."""
    model = DistributedDataParallel(mlp(30))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for step in range(3):
        first, second = share(numbers(200 + step, ROWS, 6)).chunk(2)
        optimizer.zero_grad()
        with model.no_sync():
            (model(first).square().mean() / 2).backward()
        loss = model(second).square().mean() / 2
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    return losses, state(model)


class Branches(nn.Module):
    """Uses ``even`` or ``odd``, never ``idle``, and ``shared`` always."""

    def __init__(self):
        super().__init__()
        self.shared, self.even, self.odd, self.idle = (nn.Linear(6, 6, dtype=DTYPE) for _ in range(4))

    def forward(self, x, even):
        return (self.even if even else self.odd)(self.shared(x).tanh())


def branching():
    """Ranks use other parameters; some are used by one rank, one by none."""
    model = DistributedDataParallel(fill(Branches(), 50), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step in range(4):
        x = share(numbers(300 + step, ROWS, 6))
        optimizer.zero_grad()
        even = step == 2 or (step < 2 and dist.get_rank() == 0)
        loss = model(x, even).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    return losses, state(model), [param.grad is None for _, param in model.named_parameters()]


def normalizing():
    """Buffers are those of rank 0 in each step."""
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).to(DTYPE)
    model = DistributedDataParallel(fill(model, 70))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for step in range(3):
        x = share(numbers(400 + step, ROWS, 6))
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    model.eval()
    with torch.no_grad():
        losses.append(mean_over_ranks(model(numbers(499, 8, 6)).mean()))
    return losses, list(state(model)["module.1.running_mean"]) if dist.get_rank() == 0 else []


def sampling():
    """All ranks together visit all rows."""
    sampler = DistributedSampler(range(10), shuffle=True)
    sampler.set_epoch(3)
    seen = [None] * dist.get_world_size()
    dist.all_gather_object(seen, list(sampler))
    return [len(rows) for rows in seen], sorted({row for rows in seen for row in rows})


def main():
    dist.init_process_group("gloo")
    found = {each.__name__: each() for each in (plain, accumulating, branching, normalizing, sampling)}
    dist.barrier()
    if dist.get_rank() == 0:
        print("RESULT", json.dumps(found), flush=True)
    assert os.environ["LOCAL_RANK"] == str(dist.get_rank())
    dist.destroy_process_group()


main()
