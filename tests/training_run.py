"""A small training run with all features of training, for tests that disturb it; its result shows a single lost bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import gradwire
from gradwire import nn

BATCH, FEATURES, HIDDEN = 32, 6, 16


@dataclass(frozen=True)
class End:
    """What a run ends with: the weights' bytes, and the losses on the way."""

    weights: bytes
    losses: list[float]


def train(steps: int, read_every: int = 1) -> End:
    """Train in the current session, which has a seed.

    Random numbers of the server, uploads of 768 and of 128 bytes in each step, dropout, Adam with its state on the
    server, a read in every ``read_every``-th step, and at the end one of all the weights, of 516 bytes.
    """
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Dropout(0.2), nn.Linear(HIDDEN, 1))
    adam = gradwire.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for step in range(steps):
        x = gradwire.from_numpy(rng.standard_normal((BATCH, FEATURES)).astype(np.float32))
        y = gradwire.from_numpy(rng.standard_normal((BATCH, 1)).astype(np.float32))
        adam.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        adam.step()
        if step % read_every == 0:
            losses.append(loss.item())
    weights = gradwire.cat([p.detach().flatten() for p in model.parameters()]).numpy()
    return End(weights.tobytes(), losses)
