"""A convolutional network learns scikit-learn's handwritten digits."""

import argparse
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from numpy_weights import draw
from sklearn.datasets import load_digits
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        scores: torch.Tensor = self.head(x.flatten(1))
        return scores


class Shuffled:
    """Batches of indices in an order that NumPy draws."""

    def __init__(self, count: int, batch: int, steps: int, seed: int = 0) -> None:
        self.count, self.batch, self.steps, self.random = count, batch, steps, np.random.default_rng(seed)

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.steps):
            chosen: list[int] = self.random.choice(np.arange(self.count), self.batch, replace=False).tolist()
            yield chosen

    def __len__(self) -> int:
        return self.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, labels = load_digits(return_X_y=True)
    images = torch.from_numpy((images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8))
    labels = torch.from_numpy(labels.astype(np.int64))
    held_out = len(images) // 5
    train = TensorDataset(images[held_out:], labels[held_out:])
    loader = DataLoader(train, batch_sampler=Shuffled(len(train), args.batch, args.steps))

    model = draw(Net()).to(device)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    scheduler = OneCycleLR(optimizer, max_lr=1e-2, total_steps=args.steps + 1)

    model.train()
    for step, (x, y) in enumerate(loader, start=1):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"step {step} loss {loss.item():.8g}")

    model.eval()
    with torch.no_grad():
        right = model(images[:held_out].to(device)).argmax(1) == labels[:held_out].to(device)
    print(f"accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
