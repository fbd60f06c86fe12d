"""Cross entropy of class indices, without class weights and label smoothing: all logarithms and losses in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import FLOATS, arithmetic, kernel, row_block
from ...runtime.cuda.registry import fused
from .rows import in_rows


@fused("cross_entropy", half=True)
def cross_entropy(
    xp: Namespace, x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> tuple[Array, Array]:  # fmt: skip
    plain = weight is None and not label_smoothing and x.ndim == 2
    found = in_rows(x, 1) if plain else None
    if found is None or target.dtype != np.int64 or target.shape != x.shape[:1] or not target.flags.c_contiguous:
        return NotImplemented
    rows, cols = found
    element, kind = x.dtype.name, arithmetic(x.dtype.name)
    losses, logs = xp.empty((rows,), kind), xp.empty(x.shape, kind)
    kernel(xp, "cross_entropy", "losses", element)(
        (rows,), row_block(cols), (x, target, losses, logs, np.int64(cols), np.int64(ignore_index))
    )
    if reduction == "none":
        return losses, logs
    return _total(xp, element, losses, target, ignore_index, reduction == "mean"), logs


def _total(xp: Namespace, element: str, losses: Any, target: Array, ignore_index: int, mean: bool) -> Array:
    """The sum or mean of the losses, 0-dim; without losses, how many targets count."""
    out = xp.empty((), arithmetic(element))
    places = (None, out) if losses is None else (out, None)
    arguments = (losses, target, np.int64(target.size), np.int64(ignore_index), np.int32(mean), *places)
    kernel(xp, "total_loss", "losses", element)((1,), row_block(target.size), arguments)
    return out


@fused("cross_entropy_backward")
def cross_entropy_backward(
    xp: Namespace, g: Array, logs: Array, target: Array, weight: Array | None, ignore_index: int, mean: bool,
    label_smoothing: float,
) -> Array:  # fmt: skip
    plain = weight is None and not label_smoothing and logs.ndim == 2 and logs.dtype.itemsize > 2
    found = in_rows(logs, 1) if plain else None
    whole = target.dtype == np.int64 and target.flags.c_contiguous and g.flags.c_contiguous
    if found is None or not whole or target.shape != logs.shape[:1] or g.dtype.name not in FLOATS:
        return NotImplemented
    rows, cols = found
    element = logs.dtype.name
    g = g.astype(logs.dtype) if g.dtype != logs.dtype else g
    count = _total(xp, element, None, target, ignore_index, False) if mean else None
    out = xp.empty(logs.shape, logs.dtype)
    arguments = (g, np.int32(g.size > 1), logs, target, count, out, np.int64(cols), np.int64(ignore_index))
    kernel(xp, "cross_entropy_backward", "losses", element)((rows,), row_block(cols), arguments)
    return out
