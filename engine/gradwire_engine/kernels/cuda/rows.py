"""Softmax, layer normalization and their gradients: a block for each row."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import DType

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import FLOATS, arithmetic, kernel, row_block
from ...runtime.cuda.registry import fused

MOST_ROWS: Final = (1 << 31) - 1
PARTS: Final = 64
"""In so many parts at most, and in a fixed order, are the gradients of a normalization's parameters added up."""


def in_rows(x: Array, dims: int) -> tuple[int, int] | None:
    """Rows and their length, where the last ``dims`` dimensions lie side by side; else ``None``."""
    if not x.flags.c_contiguous or x.dtype.name not in FLOATS or not x.size:
        return None
    cols = prod(x.shape[x.ndim - dims :])
    rows = x.size // cols
    return (rows, cols) if rows <= MOST_ROWS else None


def _of_last(x: Array, dim: int) -> tuple[int, int] | None:
    return in_rows(x, 1) if x.ndim and dim in (-1, x.ndim - 1) else None


def _softmax(xp: Namespace, x: Array, dim: int, logarithm: int) -> Array:
    found = _of_last(x, dim)
    if found is None:
        return NotImplemented
    rows, cols = found
    out = xp.empty(x.shape, x.dtype)
    kernel(xp, "softmax", "rows", x.dtype.name)((rows,), row_block(cols), (x, out, np.int64(cols), np.int32(logarithm)))
    return out


@fused("softmax", half=True)
def softmax(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
    return _softmax(xp, x, dim, 0)


@fused("log_softmax", half=True)
def log_softmax(xp: Namespace, x: Array, dim: int, dtype: DType | None) -> Array:
    return _softmax(xp, x, dim, 1)


def through_softmax(xp: Namespace, g: Array, y: Array, out: Array, cols: int, logarithm: int, scale: float) -> None:
    """The gradient through a softmax of rows, times ``scale``, into ``out``, which may be ``g``."""
    function = kernel(xp, "softmax_backward", "rows", y.dtype.name)
    numbers = (np.int64(cols), np.int32(logarithm), arithmetic(y.dtype.name)(scale))
    function((y.size // cols,), row_block(cols), (g, y, out, *numbers))


def _backward(xp: Namespace, g: Array, y: Array, dim: int, logarithm: int) -> Array:
    found = _of_last(y, dim)
    if found is None or g.dtype != y.dtype or g.shape != y.shape or not g.flags.c_contiguous:
        return NotImplemented
    out = xp.empty(y.shape, y.dtype)
    through_softmax(xp, g, y, out, found[1], logarithm, 1.0)
    return out


@fused("softmax_backward", half=True)
def softmax_backward(xp: Namespace, g: Array, output: Array, dim: int) -> Array:
    return _backward(xp, g, output, dim, 0)


@fused("log_softmax_backward", half=True)
def log_softmax_backward(xp: Namespace, g: Array, output: Array, dim: int) -> Array:
    return _backward(xp, g, output, dim, 1)


def _fits(parameter: Array | None, x: Array, cols: int) -> bool:
    """Whether a weight or a bias is one that the kernels take."""
    return parameter is None or (
        parameter.dtype == x.dtype and parameter.size == cols and bool(parameter.flags.c_contiguous)
    )


@fused("layer_norm", "layer_norm_training", half=True)
def layer_norm(
    xp: Namespace, x: Array, normalized_shape: Sequence[int], weight: Array, bias: Array, eps: float
) -> tuple[Array, Array, Array]:
    found = in_rows(x, len(normalized_shape))
    if found is None or not _fits(weight, x, found[1]) or not _fits(bias, x, found[1]):
        return NotImplemented
    rows, cols = found
    kind = arithmetic(x.dtype.name)
    out, mean, rstd = xp.empty(x.shape, x.dtype), xp.empty((rows, 1), kind), xp.empty((rows, 1), kind)
    arguments = (x, weight, bias, out, mean, rstd, np.int64(cols), kind(eps))
    kernel(xp, "layer_norm", "rows", x.dtype.name)((rows,), row_block(cols), arguments)
    return out, mean, rstd


@fused("layer_norm_backward")
def layer_norm_backward(
    xp: Namespace, g: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, bias: bool
) -> Any:
    rows = mean.size
    cols = x.size // max(rows, 1)
    alike = all(a.dtype == x.dtype and a.flags.c_contiguous for a in (g, x, mean, rstd))
    if in_rows(x, 1) is None or not alike or g.shape != x.shape or not _fits(weight, x, cols):
        return NotImplemented
    element, kind = x.dtype.name, x.dtype
    out = xp.empty(x.shape, kind)
    kernel(xp, "layer_norm_backward", "rows", element)(
        (rows,), row_block(cols), (g, x, mean, rstd, weight, out, np.int64(cols))
    )
    if weight is None:
        return out
    parts = min(PARTS, rows)
    of_weight, of_bias = xp.empty((parts, cols), kind), xp.empty((parts, cols), kind)
    columns = -(-cols // 128)
    kernel(xp, "layer_norm_parts", "rows", element)(
        (columns, parts), (128,), (g, x, mean, rstd, of_weight, of_bias, np.int64(rows), np.int64(cols))
    )
    found = [out]
    for part in (of_weight, of_bias) if bias else (of_weight,):
        whole = xp.empty(weight.shape, kind)
        kernel(xp, "sum_parts", "rows", element)((columns,), (128,), (part, whole, np.int32(parts), np.int64(cols)))
        found.append(whole)
    return tuple(found)
