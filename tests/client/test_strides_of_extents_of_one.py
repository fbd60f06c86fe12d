"""Strides of dimensions of extent 1, which influence the memory order that a later op chooses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import gradwire

GEOMETRIES = {
    "channels innermost": ((1, 3, 2, 1), (3, 1, 3, 3)), "a gap of extent 1": ((2, 3, 1, 4), (12, 1, 5, 3)),
    "transposed": ((1, 3, 1, 2), (3, 1, 3, 3)), "three dimensions": ((1, 3, 2), (3, 1, 3)),
}  # fmt: skip
OPS = {
    "a product with itself": lambda lib, x: x * x, "with a number": lambda lib, x: x * 0.5,
    "sin": lambda lib, x: x.sin(), "a power": lambda lib, x: x**2, "clamp": lambda lib, x: x.clamp(0, 1),
    "clamp_min": lambda lib, x: x.clamp_min(0), "compared": lambda lib, x: x > 0,
    "where": lambda lib, x: lib.where(x > 0, x, x), "a copy": lambda lib, x: x.clone(),
    "zeros": lambda lib, x: lib.zeros_like(x), "joined": lambda lib, x: lib.cat([x.sin(), x * x], -2 % x.ndim),
    "with a scalar tensor": lambda lib, x: x * lib.ones(()),
}  # fmt: skip


INTO = {
    "sin": lambda lib, x, out: lib.sin(x, out=out), "add": lambda lib, x, out: lib.add(x, x, out=out),
    "eq": lambda lib, x, out: lib.eq(x, x, out=out), "a sum": lambda lib, x, out: lib.sum(x, 0, out=out),
}  # fmt: skip


@pytest.mark.parametrize("op", INTO)
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_an_empty_out_takes_them(order: tuple[int, ...], op: str) -> None:
    theirs, ours = (
        INTO[op](lib, lib.zeros(1, 1, 4, 12)[..., ::2].permute(order), lib.empty(0)) for lib in (torch, gradwire)
    )
    assert ours.stride() == theirs.stride()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_as_in_torch(geometry: str, op: str) -> None:
    shape, stride = GEOMETRIES[geometry]
    theirs, ours = (OPS[op](lib, lib.arange(30.0).as_strided(shape, stride)) for lib in (torch, gradwire))
    assert ours.stride() == theirs.stride()
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
