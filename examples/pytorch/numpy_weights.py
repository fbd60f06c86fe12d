"""Initial weights drawn by NumPy, so that a program starts with the same weights under any library."""

from typing import TypeVar

import numpy as np
import torch
from torch import nn

Some = TypeVar("Some", bound=nn.Module)


def draw(module: Some, seed: int = 0, scale: float = 1.0) -> Some:
    """Fill every parameter with uniform numbers: matrices and filters the wider the fewer inputs they have, biases
    narrow ones; the weights of norms stay 1. Returns the module."""
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim == 1 and not name.rpartition(".")[2].startswith("bias"):
                continue
            fan_in = int(np.prod(parameter.shape[1:])) if parameter.ndim > 1 else 100
            bound = scale / np.sqrt(fan_in)
            values = random.uniform(-bound, bound, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))
    return module
