"""A neural ordinary differential equation learns a spiral. Its gradient comes from the adjoint equation, solved
backward in time, so memory does not grow with the number of steps.

Chen et al., "Neural Ordinary Differential Equations" (2018).
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn as nn
from numpy_weights import draw

State = tuple[torch.Tensor, ...]


def runge_kutta(f: Callable[[State], State], y: State, step: float) -> State:
    """One classical fourth-order Runge-Kutta step. ``y`` is a tuple of tensors."""

    def moved(slope: State, factor: float) -> State:
        return tuple(a + factor * step * b for a, b in zip(y, slope))

    k1 = f(y)
    k2 = f(moved(k1, 0.5))
    k3 = f(moved(k2, 0.5))
    k4 = f(moved(k3, 1.0))
    return tuple(a + step / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4))


class Solve(torch.autograd.Function):
    """The states at all times, from the one at the first."""

    @staticmethod
    def forward(
        ctx: Any, field: nn.Module, times: Sequence[float], start: torch.Tensor, *parameters: torch.Tensor
    ) -> torch.Tensor:
        ctx.field, ctx.times = field, times
        states = [start]
        for t0, t1 in pairwise(times):
            states.append(runge_kutta(lambda y: (field(y[0]),), (states[-1],), t1 - t0)[0])
        solution = torch.stack(states)
        ctx.save_for_backward(solution, *parameters)
        return solution

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        solution, *parameters = ctx.saved_tensors
        field, times = ctx.field, ctx.times

        def backward_in_time(y: State) -> State:
            state, adjoint = y[0], y[1]
            with torch.enable_grad():
                state = state.detach().requires_grad_()
                slope = field(state)
                products = torch.autograd.grad(slope, [state, *parameters], adjoint)
            return (slope.detach(), *(-p for p in products))

        adjoint = gradient[-1]
        sums = [torch.zeros_like(p) for p in parameters]
        for i in range(len(times) - 1, 0, -1):
            y = runge_kutta(backward_in_time, (solution[i], adjoint, *sums), times[i - 1] - times[i])
            adjoint, sums = y[1] + gradient[i - 1], list(y[2:])
        return (None, None, adjoint, *sums)


class Field(nn.Module):
    """The velocity of a point."""

    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, point: torch.Tensor) -> torch.Tensor:
        velocity: torch.Tensor = self.layers(point**3)
        return velocity


def spiral(start: npt.NDArray[np.float64], times: Sequence[float]) -> npt.NDArray[np.float64]:
    """The true curves: d/dt y = A y^3, in small NumPy steps."""
    matrix = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    found, y = [start], start
    for t0, t1 in pairwise(times):
        for _ in range(100):
            y = y + (t1 - t0) / 100 * (y**3) @ matrix
        found.append(y)
    return np.stack(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    random = np.random.default_rng(1)
    times = np.linspace(0, 1.0, 11).tolist()
    starts = random.uniform(-2, 2, (32, 2))
    truth = torch.from_numpy(spiral(starts, times).astype(np.float32)).to(device)
    field = draw(Field()).to(device)
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)

    for step in range(1, args.steps + 1):
        start = truth[0]
        solution = Solve.apply(field, times, start, *field.parameters())
        loss = (solution - truth).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.8g}")


if __name__ == "__main__":
    main()
