"""Dropout that draws its numbers where it uses them: the numbers, and the state after them, are the generator's own."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .launching import FLOATS, arithmetic, kernel, strided
from .registry import fused

ALL: Final = 1 << 32
PER_BLOCK: Final = 8
"""Elements that one block of the generator decides."""


@fused("dropout", half=True)
def dropout(xp: Any, random: Any, x: Any, p: float, training: bool) -> Any:
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
