"""Gradients of activations in half precision are rounded once, as in PyTorch, although they take several steps."""

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


BOUNDED = {
    "hardshrink": lambda lib, x, bound: lib.nn.functional.hardshrink(x, bound),
    "softshrink": lambda lib, x, bound: lib.nn.functional.softshrink(x, bound),
    "hardtanh": lambda lib, x, bound: lib.nn.functional.hardtanh(x, -bound, bound),
    "threshold": lambda lib, x, bound: lib.nn.functional.threshold(x, bound, 20.0),
    "clamp": lambda lib, x, bound: x.clamp(-bound, bound),
}


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("name", BOUNDED)
def test_what_lies_at_a_bound_that_the_dtype_does_not_hold(name, dtype):
    def outcome(lib, bound):
        x = lib.tensor([bound, -bound, bound * 1.02, bound * 0.98, 1.0, 0.0]).to(getattr(lib, dtype)).requires_grad_()
        y = BOUNDED[name](lib, x, bound)
        y.sum().backward()
        kept = y.detach().double() != 0 if "shrink" in name else y.detach().double()
        return kept.tolist(), x.grad.tolist()

    for bound in (0.1, 0.3, 1 / 3, 0.7, 0.999):
        assert outcome(gradwire, bound) == outcome(torch, bound)
