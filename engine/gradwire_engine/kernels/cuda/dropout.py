"""Dropout that draws its numbers where it uses them: the numbers, and the state after them, are the generator's own."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import FLOATS, arithmetic, kernel, strided
from ...runtime.cuda.registry import fused
from ...runtime.random import Generator

ALL: Final = 1 << 32
PER_BLOCK: Final = 8
"""Elements that one block of the generator decides."""


@fused("dropout", half=True)
def dropout(xp: Namespace, random: Generator, x: Array, p: float, training: bool) -> tuple[Array, Array]:
    if not training or not x.flags.c_contiguous or x.dtype.name not in FLOATS or not x.size:
        return NotImplemented
    kind = arithmetic(x.dtype.name)
    out, kept = xp.empty(x.shape, x.dtype), xp.empty(x.shape, bool)
    limit = min(round((1 - p) * ALL), ALL)
    first, base = random.take(-(-x.size // PER_BLOCK))
    numbers = (np.int64(x.size), np.uint64(random.seed), np.uint64(first), base, np.uint64(limit))
    grid, block = strided(x.size, each=PER_BLOCK)
    kernel(xp, "dropout", "dropout", x.dtype.name)(
        grid, block, (x, out, kept, *numbers, kind(1 / (1 - p) if p < 1 else 1.0))
    )
    return out, kept
