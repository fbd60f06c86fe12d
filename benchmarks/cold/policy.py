"""A policy gradient: each step's action is read, since the world's next state follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch

import gradwire

from ..report import Plan, Row, Target
from ..servers import Server, session
from ..timing import interleave, seconds

STEPS: Final = 50


def episode(torch: Any, steps: int) -> Callable[[], Any]:
    """A cart that is pushed left or right; REINFORCE with Adam at the end of each episode."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    drawn = np.random.default_rng(0)

    def run() -> float:
        state, logs, rewards = np.array([0.0, 0.0, 0.05, 0.0], np.float32), [], []
        for _ in range(steps):
            chances = torch.log_softmax(model(torch.tensor(state)), 0)
            action = int(drawn.random() > chances[0].exp().item())
            logs.append(chances[action])
            push = np.float32(action * 2 - 1)
            state = state + np.float32(0.02) * np.array([state[1], push, state[3], 9.8 * state[2] - push], np.float32)
            rewards.append(1.0 - abs(float(state[2])))
        returns = np.cumsum(rewards[::-1])[::-1].astype(np.float32)
        optimizer.zero_grad()
        loss = -(torch.stack(logs) * torch.tensor((returns - returns.mean()) / (returns.std() + 1e-6))).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return run


def rows(plan: Plan, server: Server) -> Iterator[Row]:
    """One row: milliseconds a step of the world."""
    steps = plan.of(STEPS, 3)
    with session(server):
        sides = {"ours": episode(gradwire, steps), "theirs": episode(torch, steps)}
        for run in sides.values():
            for _ in range(3):
                run()
        found = interleave({name: _timed(run, steps) for name, run in sides.items()}, plan.rounds)
    yield Row("cold", "policy gradient, an action read each step", "ms", found["ours"], found["theirs"], Target(0.6))


def _timed(run: Callable[[], Any], steps: int) -> Callable[[], float]:
    return lambda: seconds(run) / steps * 1e3
