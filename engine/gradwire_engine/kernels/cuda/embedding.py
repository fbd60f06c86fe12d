"""The gradient of an embedding's table, added up in one order. CuPy's scattered sums are in none."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import element_of, kernel
from ...runtime.cuda.registry import fused

TYPES: Final = ("float32", "float64")
MOST_ROWS: Final = 1 << 14
"""Each row looks at all others' indices."""


@fused("embedding_backward")
def embedding_backward(
    xp: Namespace, g: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    cols, count = g.shape[-1], indices.size
    usable = element_of(g.dtype) in TYPES and element_of(indices.dtype) == "int64"
    if not usable or scale_grad_by_freq or not 0 < count <= MOST_ROWS or not cols:
        return NotImplemented
    # Tokens are often a slice of a longer text: copying them is cheaper than sorting all elements of `g`.
    g, indices = xp.ascontiguousarray(g), xp.ascontiguousarray(indices)
    made = xp.zeros((num_weights, cols), g.dtype)
    threads = min(256, -(-cols // 32) * 32)
    numbers = (np.int32(count), np.int64(cols), np.int64(num_weights), np.int64(padding_idx))
    kernel(xp, "embedding_backward", "embedding", element_of(g.dtype))(
        (count,), (threads,), (g, indices, made, *numbers)
    )
    return made
