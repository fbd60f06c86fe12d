"""``embedding_bag`` with ``include_last_offset`` whose last offset is not the end, as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire as gw


@pytest.mark.parametrize("offsets", [[0, 3, 3], [0, 2, 3], [0, 2, 4]], ids=str)
@pytest.mark.parametrize("padding_idx", [None, 1, 5])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_lies_behind_the_last_offset_is_where_pytorch_has_it(dtype, mode, padding_idx, offsets):
    found = []
    for lib in (torch, gw):
        weight = lib.arange(12.0, dtype=getattr(lib, dtype)).reshape(6, 2).requires_grad_()
        out = lib.nn.functional.embedding_bag(
            lib.tensor([0, 1, 2, 3]), weight, lib.tensor(offsets), mode=mode, include_last_offset=True,
            padding_idx=padding_idx,
        )  # fmt: skip
        found.append(out.detach().numpy())
    np.testing.assert_allclose(found[1], found[0])


@pytest.mark.parametrize("offsets", [[0, 3, 3], [0, 2, 4]], ids=str)
@pytest.mark.parametrize("padding_idx", [None, 1])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_gradients_of_bags_that_end_early_agree(mode, padding_idx, offsets):
    found = []
    for lib in (torch, gw):
        weight = lib.arange(12.0, dtype=lib.float64).reshape(6, 2).requires_grad_()
        out = lib.nn.functional.embedding_bag(
            lib.tensor([0, 1, 2, 3]), weight, lib.tensor(offsets), mode=mode, include_last_offset=True,
            padding_idx=padding_idx,
        )  # fmt: skip
        (out**2).sum().backward()
        found.append(weight.grad.numpy())
    np.testing.assert_allclose(found[1], found[0])
