"""Activations that draw random numbers."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes

from ..autograd.registry import derivative, kernel
from ..runtime.arrays import Array, Namespace
from ..runtime.random import Generator


@kernel("rrelu")
def rrelu(
    xp: Namespace, random: Generator, x: Array, lower: float, upper: float, training: bool
) -> tuple[Array, Array]:
    slope: Any = (lower + upper) / 2
    if training:
        fine = dtypes.float64 if x.dtype == "d" else dtypes.float32
        slope = random.uniform(xp, x.shape, fine) * (upper - lower) + lower
    slopes = xp.where(x > 0, 1, slope).astype(x.dtype)
    return x * slopes, slopes


derivative("rrelu", self=("result1", lambda s, g, _: g * s.result1))
