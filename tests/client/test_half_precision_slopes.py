"""Gradients of activations in half precision: rounded once, as PyTorch's, although their slopes take several steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")

ACTIVATIONS = (
    "CELU",
    "ELU",
    "GELU",
    "Hardsigmoid",
    "Hardswish",
    "LogSigmoid",
    "Mish",
    "SELU",
    "SiLU",
    "Softplus",
    "Softsign",
    "Tanhshrink",
)
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def gradient(lib, name, dtype, exactly=False):
    numbers = np.random.default_rng(3)
    x, g = (lib.tensor(numbers.standard_normal((64, 32)).astype(np.float32)).to(getattr(lib, dtype)) for _ in range(2))
    if exactly:
        x, g = x.double(), g.double()
    x.requires_grad_()
    getattr(lib.nn, name)()(x).backward(g)
    return x.grad.double().numpy()


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_slope_is_rounded_once(name, dtype):
    exact = gradient(torch, name, dtype, exactly=True)
    step = abs(exact) * ROUNDING[dtype] + 1e-6
    theirs, ours = (abs(gradient(lib, name, dtype) - exact) / step for lib in (torch, gradwire))
    assert ours.max() < max(1.1, 1.1 * theirs.max())
