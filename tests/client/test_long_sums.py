"""Sums over millions of float32 elements are as accurate as PyTorch's, for every op that sums."""

from __future__ import annotations

import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")

LENGTH = 1 << 21

SUMS = {
    "var": lambda lib, x: x.var(-1),
    "std": lambda lib, x: x.std(-1),
    "var_mean": lambda lib, x: lib.var_mean(x, dim=-1)[0],
    "var of all": lambda lib, x: x.var(),
    "mse_loss": lambda lib, x: lib.nn.functional.mse_loss(x, x * 0),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (LENGTH,))[:, ::4097],
    "group_norm": lambda lib, x: lib.nn.functional.group_norm(x[None], 1)[..., ::4097],
    "batch_norm": lambda lib, x: lib.nn.functional.batch_norm(x[None], None, None, training=True)[..., ::4097],
}


def rows(lib, dtype):
    return ((lib.arange(2 * LENGTH) * 7919 % 10007).reshape(2, LENGTH).to(lib.float32) / 10007 + 1).to(dtype)


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_millions_rounds_little(name):
    exact = SUMS[name](torch, rows(torch, torch.float64)).numpy()
    found = SUMS[name](gradwire, rows(gradwire, gradwire.float32)).numpy()
    assert abs(found - exact).max() < 3e-6


def test_gradients_of_a_long_layer_norm_round_little():
    found = []
    for lib, dtype in ((torch, torch.float64), (gradwire, gradwire.float32)):
        x = rows(lib, dtype).requires_grad_()
        weights = (x.detach() * 3) ** 2
        made = lib.nn.functional.layer_norm(x, (LENGTH,))
        found.append(lib.autograd.grad((made * weights).sum(), [x])[0][:, ::4097].numpy())
    assert abs(found[1] - found[0]).max() < 2e-5 * abs(found[0]).max()
