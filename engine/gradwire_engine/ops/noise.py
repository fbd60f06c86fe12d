"""Activations that draw random numbers."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes

from ..registry import derivative, kernel


@kernel("rrelu")
def rrelu(xp: Any, random: Any, x: Any, lower: float, upper: float, training: bool) -> Any:
    slope: Any = (lower + upper) / 2
    if training:
        fine = dtypes.float64 if x.dtype == "d" else dtypes.float32
        slope = random.uniform(xp, x.shape, fine) * (upper - lower) + lower
    slopes = xp.where(x > 0, 1, slope).astype(x.dtype)
    return x * slopes, slopes


derivative("rrelu", self=("result1", lambda s, g, _: g * s.result1))
