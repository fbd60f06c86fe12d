"""``torch.nn.grad``: the gradients of convolutions as functions, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import grad as tgrad

import gradwire as gw
from gradwire.nn import grad as ggrad

GEOMETRIES = [
    dict(),
    dict(stride=2),
    dict(stride=3, padding=1),
    dict(dilation=2, padding=2),
    dict(groups=2),
    dict(stride=2, padding=1, dilation=2, groups=2),
]


def operands(count: int, groups: int, geometry: dict) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(count)
    x = torch.randn(3, 4, *(8, 7, 6)[:count], dtype=torch.float64)
    weight = torch.randn(6, 4 // groups, *(3, 2, 2)[:count], dtype=torch.float64)
    result = getattr(torch.nn.functional, f"conv{count}d")(x, weight, **geometry)
    return x, weight, torch.randn_like(result)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_gradients_of_convolutions_agree_and_can_be_differentiated(count: int, geometry: dict) -> None:
    x, weight, grad = operands(count, geometry.get("groups", 1), geometry)
    found = []
    for lib, module in ((torch, tgrad), (gw, ggrad)):
        a, w, g = (lib.tensor(t.numpy(), requires_grad=True) for t in (x, weight, grad))
        for_input = getattr(module, f"conv{count}d_input")(tuple(x.shape), w, g, **geometry)
        for_weight = getattr(module, f"conv{count}d_weight")(a, tuple(weight.shape), g, **geometry)
        seconds = lib.autograd.grad((for_input**2).sum() + (for_weight**2).sum(), [a, w, g])
        found.append([t.detach().numpy() for t in (for_input, for_weight, *seconds)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [(3, 4, 20), (3, 5, 8)])
def test_an_input_that_does_not_give_the_result_is_refused(size: tuple[int, ...]) -> None:
    _, weight, grad = operands(1, 1, {})
    with pytest.raises(RuntimeError):
        tgrad.conv1d_input(size, weight, grad)
    with pytest.raises(RuntimeError):
        ggrad.conv1d_input(size, gw.tensor(weight.numpy()), gw.tensor(grad.numpy()))


def test_nn_functional_has_them_as_well() -> None:
    assert gw.nn.functional.grad is gw.nn.grad
