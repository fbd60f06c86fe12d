"""Filling where a mask says so, with a mask that is the same for all leading entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace
from ..native import Byte1, Count, Double, In2, Out2, dense, native
from ..threads import split


@native("float32", "float64")
def filled_rows(x: In2, mask: Byte1, value: Double, out: Out2, start: Count, stop: Count) -> None:
    fill = x.dtype.type(value)
    for i in range(start, stop):
        row, done = x[i], out[i]
        for j in range(row.size):
            done[j] = fill if mask[j] else row[j]


@compiled("masked_fill")
def masked_fill(xp: Namespace, x: Any, mask: Any, value: Any) -> Array:
    if x.dtype.char not in "fd" or type(value) not in (int, float) or mask.dtype.kind != "b" or mask.ndim > x.ndim:
        return NotImplemented
    lead = 0
    while lead < mask.ndim and mask.shape[lead] == 1:
        lead += 1
    shape = mask.shape[lead:]
    if not x.size or not shape or x.shape[x.ndim - len(shape) :] != shape:
        return NotImplemented
    hidden = dense(mask).reshape(-1).view(np.uint8)
    width = hidden.size
    if width == x.size:
        return NotImplemented
    rows = dense(x).reshape(-1, width)
    out = np.empty(rows.shape, x.dtype)
    split(filled_rows, *rows.shape, rows, hidden, float(value), out)
    return out.reshape(x.shape)
