"""Numbers from NumPy's generator, the same under any library, and the line of results that a program prints."""

import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

Some = TypeVar("Some", bound=nn.Module)
DEVICE = os.environ.get("DEVICE", "cpu")
"""Where a program computes."""


def fill(module: Some, seed: int = 0, scale: float = 1.0, device: str = DEVICE) -> Some:
    """Fill every parameter: weights of norms with numbers around 1, biases with small ones, matrices and filters with
    the wider ones the fewer inputs they have. Returns the module, on the device."""
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            values = random.uniform(-1.0, 1.0, tuple(parameter.shape))
            if parameter.ndim > 1:
                values *= scale / np.sqrt(max(1, int(np.prod(parameter.shape[1:]))))
            else:
                values = 0.1 * values + ("bias" not in name.rpartition(".")[2])
            parameter.copy_(torch.from_numpy(np.asarray(values)).to(parameter.dtype))
    return module.to(device)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32, device: str = DEVICE) -> torch.Tensor:
    """Numbers of the normal distribution."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).to(device, dtype)


def uniform(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32, device: str = DEVICE) -> torch.Tensor:
    """Numbers from 0 to 1."""
    return torch.from_numpy(np.random.default_rng(seed).uniform(size=shape)).to(device, dtype)


def integers(below: int, *shape: int, seed: int = 0, device: str = DEVICE) -> torch.Tensor:
    """Integers from 0 to ``below - 1``."""
    return torch.from_numpy(np.random.default_rng(seed).integers(below, size=shape)).to(device)


def train(
    model: nn.Module, loss_of: Callable[[], torch.Tensor], steps: int = 3, lr: float = 0.05, momentum: float = 0.9
) -> list[float]:
    """Train by gradient descent. Returns the loss of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tell(**results: Any) -> None:
    """Print the results as one line of JSON. A tensor is told by its shape, its norm and its first numbers."""
    print(json.dumps({name: told(value) for name, value in results.items()}), flush=True)


def told(value: Any) -> Any:
    """A result as JSON has it."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().double().flatten()
        return {"shape": list(value.shape), "norm": flat.norm().item(), "first": flat[:6].tolist()}
    if isinstance(value, np.ndarray):
        return told(torch.from_numpy(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): told(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [told(item) for item in value]
    return value


def norms_of_gradients(module: nn.Module) -> list[float]:
    """The norm of each parameter's gradient."""
    return [p.grad.norm().item() for p in module.parameters() if p.grad is not None]
