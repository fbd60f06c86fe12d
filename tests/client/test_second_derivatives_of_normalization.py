"""Second derivatives of normalizations with running statistics: which exist, and their values, in both libraries."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")
RNG = np.random.default_rng(0)
X, W, B, G = (RNG.standard_normal(shape) for shape in ((2, 3, 4), 3, 3, (2, 3, 4)))


def second_derivatives(lib, name, own_statistics, affine):
    """By first gradient, what it depends on and how; None where there is no gradient."""
    x, w, b, go = (lib.tensor(a, dtype=lib.float64, requires_grad=True) for a in (X, W, B, G))
    mean, var = lib.zeros(3, dtype=lib.float64), lib.full((3,), 2.0, dtype=lib.float64)
    given = (w, b) if affine else (None, None)
    inputs = [x, w, b] if affine else [x]
    y = getattr(lib.nn.functional, name)(x, mean, var, *given, own_statistics)
    found = []
    for first in lib.autograd.grad(y, inputs, go, create_graph=True):
        seconds = lib.autograd.grad(first.pow(2).sum(), [*inputs, go], retain_graph=True, allow_unused=True)
        found.append([None if second is None else second.numpy() for second in seconds])
    return found


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("own_statistics", [True, False])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_second_derivatives_are_there_where_torch_has_them(name, own_statistics, affine):
    theirs = second_derivatives(torch, name, own_statistics, affine)
    ours = second_derivatives(gradwire, name, own_statistics, affine)
    assert [[g is None for g in row] for row in ours] == [[g is None for g in row] for row in theirs]
    for mine, expected in zip(chain(*ours), chain(*theirs), strict=True):
        if expected is not None:
            np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)
