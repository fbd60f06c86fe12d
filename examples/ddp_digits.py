"""Several ranks learn handwritten digits together, each on a share of the data.

    gradwire run --nproc 2 examples/ddp_digits.py

It is written for PyTorch, and torchrun runs it just as well. With gradwire each rank is a session of its own, and their
gradients are averaged between the sessions, on the server's side.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

BATCH = 64
WANTED = 0.9


def digits() -> list[torch.Tensor]:
    """1,797 images of 64 pixels, a quarter of them held out: images and labels to train with, and to test with."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split((images / 16).astype(np.float32), labels, test_size=0.25, random_state=0)
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in parts)
    return [train_x, train_y, test_x, test_y]


def main() -> int:
    """Returns 0 if the network has learned its digits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    epochs = parser.parse_args().epochs

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    train_x, train_y, test_x, test_y = digits()
    data = TensorDataset(train_x, train_y)
    sampler: DistributedSampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=BATCH // ranks, sampler=sampler)

    torch.manual_seed(rank)  # whatever each rank begins with, DistributedDataParallel starts from what rank 0 has
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    reached = 0.0
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        with torch.no_grad():
            reached = (model(test_x).argmax(1) == test_y).float().mean().item()
        if rank == 0:
            mean = total.item() / len(loader) / ranks
            print(f"epoch {epoch}  loss {mean:.3f}  accuracy on held-out digits {reached:.2%}")
    dist.destroy_process_group()
    return 0 if reached > WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
