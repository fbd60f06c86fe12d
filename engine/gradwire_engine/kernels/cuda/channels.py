"""Batch norm, one block per channel, and sums over leading dimensions, whose columns threads take side by side."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from ...numerics.axes import axes_of
from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import arithmetic, kernel
from ...runtime.cuda.registry import fused

TYPES: Final = ("float32", "float64")
MOST: Final = 1 << 31
"""Places are counted in 32 bits."""

THREADS: Final = 512
PARTS: Final = 64
"""Sums of columns that are added up in a second launch."""

SHORTEST: Final = 32
"""Rows below which a sum of columns is not worth two launches."""


def _laid(x: Array) -> tuple[int, int, int] | None:
    """Batch, channels and size of an array that the kernels take."""
    if x.dtype.name not in TYPES or x.ndim < 2 or not 0 < x.size < MOST or not x.flags.c_contiguous:
        return None
    return x.shape[0], x.shape[1], prod(x.shape[2:])


def _fits(parameter: Array | None, x: Array) -> bool:
    return parameter is None or (parameter.dtype == x.dtype and bool(parameter.flags.c_contiguous))


def _block(batch: int, size: int) -> tuple[int]:
    threads = 32
    while threads < THREADS and threads < batch * size:
        threads *= 2
    return (threads,)


@fused("batch_norm_training")
def batch_norm_training(xp: Namespace, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Any:
    laid = _laid(x)
    if laid is None or not _fits(weight, x) or not _fits(bias, x):
        return NotImplemented
    batch, channels, size = laid
    out, mean, var = xp.empty(x.shape, x.dtype), xp.empty((channels,), x.dtype), xp.empty((channels,), x.dtype)
    arguments = (x, weight, bias, out, mean, var, *map(np.uint32, laid), arithmetic(x.dtype.name)(eps))
    kernel(xp, "batch_norm_training", "channels", x.dtype.name)((channels,), _block(batch, size), arguments)
    return out, mean, var


@fused("batch_norm_backward")
def batch_norm_backward(
    xp: Namespace, g: Array, x: Array, mean: Array, var: Array, weight: Array | None, training: bool, eps: float
) -> Any:
    laid = _laid(x)
    alike = all(a.dtype == x.dtype and a.flags.c_contiguous for a in (g, mean, var))
    if laid is None or not alike or g.shape != x.shape or not _fits(weight, x):
        return NotImplemented
    batch, channels, size = laid
    out = xp.empty(x.shape, x.dtype)
    of_weight, of_bias = xp.empty((channels,), x.dtype), xp.empty((channels,), x.dtype)
    numbers = (*map(np.uint32, laid), np.int32(training), arithmetic(x.dtype.name)(eps))
    kernel(xp, "batch_norm_backward", "channels", x.dtype.name)(
        (channels,), _block(batch, size), (g, x, mean, var, weight, out, of_weight, of_bias, *numbers)
    )
    return out, of_weight, of_bias


def sum_of_columns(xp: Namespace, x: Array) -> Array:
    """The sums over the first dimension of a row-major matrix."""
    rows, cols = x.shape
    element, columns = x.dtype.name, -(-cols // 128)
    count = min(PARTS, rows)
    parts, out = xp.empty((count, cols), arithmetic(element)), xp.empty((cols,), x.dtype)
    kernel(xp, "column_parts", "channels", element)(
        (columns, count), (128,), (x, parts, np.int64(rows), np.int64(cols))
    )
    kernel(xp, "sum_parts", "rows", element)((columns,), (128,), (parts, out, np.int32(count), np.int64(cols)))
    return out


def _over_leading(xp: Namespace, x: Array, axes: tuple[int, ...]) -> Any:
    """The sum over the first dimensions; ``NotImplemented`` where these are not all that goes, or for few rows."""
    count = len(axes)
    rows, cols = prod(x.shape[:count]), prod(x.shape[count:])
    if axes != tuple(range(count)) or count == x.ndim or x.dtype.name not in TYPES or not x.flags.c_contiguous:
        return NotImplemented
    if rows < SHORTEST or not cols:
        return NotImplemented
    return sum_of_columns(xp, x.reshape(rows, cols)).reshape(x.shape[count:])


@fused("sum")
def sum_(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, dtype: Any) -> Any:
    return _over_leading(xp, x, axes_of(x, dim))


@fused("sum_to_size")
def sum_to_size(xp: Namespace, x: Array, size: tuple[int, ...]) -> Any:
    lead = x.ndim - len(size)
    return _over_leading(xp, x, tuple(range(lead))) if x.shape[lead:] == tuple(size) else NotImplemented
