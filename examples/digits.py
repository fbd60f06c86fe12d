"""Train a small convolutional network on scikit-learn's handwritten digits. ``make demo`` runs this.

Every tensor is on a server: the one that ``GRADWIRE_URL`` (and ``GRADWIRE_API_KEY``) name, or an embedded one. The code
is the same as for a local GPU. A training step reads no value, so it costs no round trip.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gradwire as torch
from gradwire import nn

BATCH = 64
WANTED = 0.96


def digits(device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """1,797 images of 8x8 pixels, a quarter of them held out, sent to the server once."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    parts = train_test_split(images, labels, test_size=0.25, stratify=labels, random_state=0)
    train_x, test_x, train_y, test_y = (torch.tensor(part, device=device) for part in parts)
    return train_x, train_y, test_x, test_y


def network() -> nn.Module:
    """Two convolutions and a linear layer: 10,346 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 10),
    )


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of correctly labelled images. One round trip."""
    model.eval()
    with torch.no_grad():
        right: float = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return right


def train(epochs: int, device: str, console: Console) -> float:
    """Train, and print the accuracy on held-out digits after each epoch. Returns the last one."""
    torch.manual_seed(0)
    train_x, train_y, test_x, test_y = digits(device)
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    criterion = nn.CrossEntropyLoss()
    steps = len(train_x) // BATCH
    reached = 0.0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=epochs * steps)
        for epoch in range(1, epochs + 1):
            order = torch.randperm(len(train_x), device=device)
            total = torch.zeros((), device=device)
            for at in range(0, steps * BATCH, BATCH):
                chosen = order[at : at + BATCH]
                optimizer.zero_grad()
                loss = criterion(model(train_x[chosen]), train_y[chosen])
                loss.backward()
                optimizer.step()
                total += loss.detach()
                progress.advance(task)
            reached = accuracy(model, test_x, test_y)
            progress.console.print(
                f"epoch {epoch:2}  loss {total.item() / steps:.3f}  accuracy on held-out digits {reached:.2%}"
            )
    return reached


def main() -> int:
    """Returns 0 if the network has learned its digits."""
    parser = argparse.ArgumentParser(description="Train a digit classifier on a gradwire server.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--device", default="cpu", help="cpu or cuda, on the server")
    options = parser.parse_args()
    console = Console(highlight=False)
    where = os.environ.get("GRADWIRE_URL") or "an embedded server"
    session = torch.current_session()
    console.print(f"gradwire {torch.__version__}, session {session.id} on {where}")
    started = time.perf_counter()
    reached = train(options.epochs, options.device, console)
    took = time.perf_counter() - started
    stats = session.stats()
    console.print(
        f"{took:.1f} s, {stats['ops']:,} ops in {stats['frames']:,} frames and {stats['round_trips']} round trips, "
        f"{stats['bytes_sent'] / 1e6:.1f} MB sent, {stats['bytes_received'] / 1e6:.2f} MB received"
    )
    if reached <= WANTED:
        console.print(f"{reached:.2%} is less than the {WANTED:.0%} that this network should reach", style="red")
        return 1
    console.print(f"learned: {reached:.2%} of digits it had never seen", style="green")
    return 0


if __name__ == "__main__":
    sys.exit(main())
