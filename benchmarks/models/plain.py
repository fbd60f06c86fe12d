"""Models without a family: a wide perceptron, a physics-informed network, many tiny ops."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..training import BATCHES, Build, Training


def perceptron(torch: Any) -> Training:
    """Three layers, 2048 wide, batches of 128, Adam."""
    nn = torch.nn
    random = np.random.default_rng(0)
    data = torch.tensor(random.standard_normal((BATCHES * 128, 784), dtype=np.float32))
    labels = torch.tensor(random.integers(0, 10, BATCHES * 128))
    model = nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step(number: int) -> Any:
        at = number % BATCHES * 128
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data[at : at + 128]), labels[at : at + 128])
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


def physics(torch: Any) -> Training:
    """Burgers' equation: first and second derivatives of a tanh network at 2,000 points, Adam."""
    nn = torch.nn
    random = np.random.default_rng(0)
    points = torch.tensor(random.uniform(-1, 1, (BATCHES * 2000, 2)).astype(np.float32))
    model = nn.Sequential(
        nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(number: int) -> Any:
        at = number % BATCHES * 2000
        x = points[at : at + 2000, :1].clone().requires_grad_()
        t = points[at : at + 2000, 1:].clone().requires_grad_()
        u = model(torch.cat([x, t], 1))
        ones = torch.ones_like(u)
        u_x, u_t = torch.autograd.grad(u, (x, t), ones, create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x, x, ones, create_graph=True)
        optimizer.zero_grad()
        loss = ((u_t + u * u_x - 0.01 / np.pi * u_xx) ** 2).mean() + ((u + torch.sin(np.pi * x)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


def tiny(torch: Any) -> Training:
    """Sixty ops on a hundred numbers, SGD."""
    weight = torch.nn.Parameter(torch.full((100,), 0.5))
    model = torch.nn.ParameterList([weight])
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    inputs = torch.tensor(np.random.default_rng(0).standard_normal((BATCHES, 100), dtype=np.float32))

    def step(number: int) -> Any:
        optimizer.zero_grad()
        h = inputs[number % BATCHES]
        for _ in range(20):
            h = torch.tanh(h * weight + 0.1)
        loss = h.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


MODELS: Final[dict[str, Build]] = {"60 tiny ops": tiny, "MLP, 2048 wide": perceptron, "PINN": physics}
