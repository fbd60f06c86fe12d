"""REINFORCE learns to keep carts near the middle of their tracks, many at once, without a model of how they move.

Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement learning" (1992). The world
consists of tensors, so a whole batch of episodes runs before any value is read.
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from numpy_weights import draw
from torch.distributions import Categorical


class Track:
    """Carts on tracks with wind. Actions push left, not at all, or right; staying at the middle is rewarded."""

    def __init__(self, start: torch.Tensor, wind: torch.Tensor) -> None:
        self.position = start[:, 0]
        self.speed = start[:, 1]
        self.wind = wind

    def state(self) -> torch.Tensor:
        return torch.stack([self.position, self.speed], dim=1)

    def step(self, action: torch.Tensor, time: int) -> torch.Tensor:
        self.speed = 0.95 * self.speed + 0.1 * (action - 1) + 0.02 * self.wind[time]
        self.position = (self.position + 0.2 * self.speed).clamp(-2, 2)
        return torch.exp(-(self.position**2)) - 0.01 * (action != 1)


def returns_of(rewards: list[torch.Tensor], discount: float) -> torch.Tensor:
    """Discounted returns."""
    total, found = torch.zeros_like(rewards[0]), []
    for reward in reversed(rewards):
        total = reward + discount * total
        found.append(total)
    return torch.stack(found[::-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--carts", type=int, default=64)
    parser.add_argument("--horizon", type=int, default=25)
    args = parser.parse_args()

    torch.set_default_dtype(torch.float64)  # an action is a threshold, so rounding could change it between machines
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy = draw(nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))).to(device)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=3e-3)
    random = np.random.default_rng(1)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.from_numpy(random.uniform(size=shape)).to(device)

    for step in range(1, args.steps + 1):
        track = Track(4 * drawn(args.carts, 2) - 2, 2 * drawn(args.horizon, args.carts) - 1)
        chances = drawn(args.horizon, args.carts)
        log_probabilities, rewards, entropies = [], [], []
        for time in range(args.horizon):
            choice = Categorical(logits=policy(track.state()))
            bounds = choice.probs.detach().cumsum(1)
            action = (chances[time].unsqueeze(1) > bounds[:, :-1]).sum(1)
            log_probabilities.append(choice.log_prob(action))
            entropies.append(choice.entropy())
            with torch.no_grad():
                rewards.append(track.step(action, time))
        returns = returns_of(rewards, 0.9)
        advantage = (returns - returns.mean(1, keepdim=True)) / (returns.std(1, keepdim=True) + 1e-6)
        loss = -(torch.stack(log_probabilities) * advantage).mean() - 0.01 * torch.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told = torch.stack([loss.detach(), torch.stack(rewards).mean()]).tolist()
        print(f"step {step} loss {told[0]:.8g} reward {told[1]:.8g}")


if __name__ == "__main__":
    main()
